"""Searches the index: FTS5 proposes the best passage of each document, BM25F orders them.

Work is bounded whatever is asked: the rarest words propose, at most PROPOSED passages are looked
at, and RANKED documents are scored with all words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from searchloop.analysis.terms import Wanted, wanted
from searchloop.search_backend.library.index import MOST_PASSAGES, Index, is_old
from searchloop.search_backend.text.ranking import HEADING, TITLE, Scorer, excerpt, rarity

PASSAGES_PER_DOCUMENT = 3
PROPOSED, RANKED = 20_000, 60
OURS = 0.5  # what a passage of this project's own documents counts: people ask about their texts
MOST_WORDS, COUNTED = 32, 200  # words searched for, and words looked up to find the rarest

_PROPOSE = f"""
SELECT t.rowid, t.title, t.heading, t.body, d.digest, r.kind = 'docs' FROM (
    SELECT rowid AS row, min(score) AS best FROM (
        SELECT rowid, bm25(terms, {TITLE}, {HEADING}, 1.0) AS score FROM terms
        WHERE terms MATCH ? ORDER BY rowid DESC LIMIT {PROPOSED})
    GROUP BY {{each}} ORDER BY best LIMIT {{most}}) p
JOIN terms t ON t.rowid = p.row JOIN documents d ON d.id = p.row / {MOST_PASSAGES}
JOIN roots r ON r.id = d.root
"""
_BY_DOCUMENT = _PROPOSE.format(each=f"rowid / {MOST_PASSAGES}", most=RANKED)
_BY_PASSAGE = _PROPOSE.format(each="rowid", most=2 * RANKED)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by a search. `url` ends in the anchor of its heading."""

    title: str
    url: str
    snippet: str


class _Scored(NamedTuple):
    score: float
    row: int
    digest: str

    @property
    def document(self) -> int:
        return self.row // MOST_PASSAGES


def search(index: Index, text: str, limit: int) -> list[Hit]:
    """Returns the best passages for a question in plain words.

    Each document comes once before any comes twice, at most PASSAGES_PER_DOCUMENT times.
    """
    with index.open() as connection:
        langs = [lang for (lang,) in connection.execute("SELECT lang FROM languages")]
        for every in (False, True):  # function words count if no other word is known
            words = wanted(text, langs, every=every)[:COUNTED]
            if found := _best(connection, words, limit):
                break
        hits = [_hit(connection, each.row, words) for each in found]
        if len(hits) < limit and is_old(connection):
            hits += _hits_of_version_1(connection, words, limit - len(hits))
    return hits


def _best(connection: sqlite3.Connection, words: Sequence[Wanted], limit: int) -> list[_Scored]:
    every, length = connection.execute("SELECT passages, length FROM totals").fetchone()
    counts = [min(_count(connection, word), every) for word in words]
    known = sorted((n for n, count in enumerate(counts) if count), key=lambda n: counts[n])
    chosen = sorted(known[:MOST_WORDS])
    if not chosen:
        return []
    worth = [rarity(counts[n], every) for n in chosen]
    ranking = Scorer([words[n] for n in chosen], worth, length / max(1, every))
    # Words that stand everywhere change the order of what the others find; they find nothing new.
    sums = accumulate(counts[n] for n in known)
    asked = [n for n, total in zip(known, sums, strict=True) if total <= PROPOSED] or known[:1]
    match = " OR ".join(f'"{term}"' for n in asked[:MOST_WORDS] for term in words[n].terms)
    spread = _distinct(_ranked(connection, _BY_DOCUMENT, match, ranking))[:limit]
    if len(spread) < limit:
        allowed = {each.document: PASSAGES_PER_DOCUMENT - 1 for each in spread}
        taken = {each.row for each in spread}
        for each in _ranked(connection, _BY_PASSAGE, match, ranking):
            if each.row not in taken and allowed.get(each.document, 0) and len(spread) < limit:
                allowed[each.document] -= 1
                spread.append(each)
    return spread


def _count(connection: sqlite3.Connection, word: Wanted) -> int:
    """Returns in how many passages a word stands, in any of its forms; an upper bound."""
    marks = ",".join("?" * len(word.terms))
    query = f"SELECT coalesce(sum(doc), 0) FROM vocabulary WHERE term IN ({marks})"
    count: int = connection.execute(query, word.terms).fetchone()[0]
    return count


def _ranked(
    connection: sqlite3.Connection, query: str, match: str, ranking: Scorer
) -> list[_Scored]:
    found = []
    for row, title, heading, body, digest, is_ours in connection.execute(query, (match,)):
        score = ranking.score(title.split(), heading.split(), body.split())
        found.append(_Scored(score * (OURS if is_ours else 1.0), row, digest))
    return sorted(found, key=lambda each: (-each.score, each.row))


def _distinct(found: Sequence[_Scored]) -> list[_Scored]:
    """Removes copies of one file: only the best of them is shown."""
    first = {each.digest or each.row: each for each in reversed(found)}
    return [each for each in found if first[each.digest or each.row] is each]


def _hit(connection: sqlite3.Connection, row: int, words: Sequence[Wanted]) -> Hit:
    title, url, text, headings, anchor, lang = connection.execute(
        "SELECT d.title, d.url, substr(d.text, t.begins + 1, t.ends - t.begins), t.headings, "
        "t.anchor, t.lang FROM terms t JOIN documents d ON d.id = ? WHERE t.rowid = ?",
        (row // MOST_PASSAGES, row),
    ).fetchone()
    return Hit(*_shown(title, url, headings, anchor), excerpt(text, words, lang))


def _shown(title: str, url: str, headings: str, anchor: str) -> tuple[str, str]:
    own = headings.rpartition(" > ")[2]
    full = f"{title}: {own}" if own and own != title else title
    # Only our own addresses have our own anchors.
    return full, f"{url}#{anchor}" if anchor and url.startswith("library:") else url


def _hits_of_version_1(
    connection: sqlite3.Connection, words: Sequence[Wanted], limit: int
) -> Iterator[Hit]:
    """Yields passages that are not analysed again yet, found by the rules of SQLite alone."""
    every = dict.fromkeys(term for word in words[:MOST_WORDS] for term in word.terms)
    match = " OR ".join(f'"{term}"' for term in every)
    for *row, text in connection.execute(
        "SELECT d.title, d.url, p.heading, p.anchor, p.body "
        f"FROM passages p JOIN documents d ON d.id = p.rowid / {MOST_PASSAGES} "
        "WHERE passages MATCH ? ORDER BY bm25(passages, 4.0, 3.0, 1.0) LIMIT ?",
        (match or '""', limit),
    ).fetchall():
        yield Hit(*_shown(*row), excerpt(text, words))
