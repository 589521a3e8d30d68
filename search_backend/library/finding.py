"""Searches the index: FTS5 proposes the best passage of each document, BM25F orders them.

It proposes what holds the rarest word or two of the others, a few of thousands, and only if
these are too few what holds any word: to score each of those takes five times as long.

Work is bounded whatever is asked: the PROPOSING rarest words propose, at most PROPOSED passages are
looked at, and RANKED documents are scored with all words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import urldefrag

from searchloop.analysis.terms import Wanted, wanted
from searchloop.search_backend.library.index import MOST_PASSAGES, Index
from searchloop.search_backend.library.roots import roots_within
from searchloop.search_backend.text.ranking import HEADING, TITLE, Scorer, excerpt, rarity

PASSAGES_PER_DOCUMENT = 3
PROPOSING, PROPOSED, RANKED = 8, 20_000, 30
OURS = 0.5  # what a passage of this project's own documents counts: people ask about their texts
MOST_WORDS, COUNTED = 32, 200  # words searched for, and words looked up to find the rarest

_PROPOSE = f"""
SELECT t.rowid, t.title, t.heading, t.body, d.digest, r.kind = 'docs' FROM (
    SELECT rowid AS row, min(score) AS best FROM (
        SELECT rowid, bm25(terms, {TITLE}, {HEADING}, 1.0) AS score FROM terms
        WHERE terms MATCH ? AND +rowid IN (SELECT rowid FROM terms WHERE terms MATCH ?
            {{within}} ORDER BY rowid DESC LIMIT {PROPOSED}) ORDER BY rowid DESC LIMIT {PROPOSED})
    GROUP BY {{each}} ORDER BY best LIMIT ?) p
JOIN terms t ON t.rowid = p.row JOIN documents d ON d.id = p.row / {MOST_PASSAGES}
JOIN roots r ON r.id = d.root
"""
_BY_DOCUMENT = f"rowid / {MOST_PASSAGES}", RANKED
_BY_PASSAGE = "rowid", 2 * RANKED
_WITHIN = f"AND rowid / {MOST_PASSAGES} IN (SELECT id FROM documents WHERE root IN ({{}}))"


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


def search(
    index: Index,
    text: str,
    limit: int,
    folders: Sequence[str] = (),
    notes: Callable[[sqlite3.Connection, list[str]], Mapping[str, str]] | None = None,
) -> list[Hit]:
    """Returns the best passages for a question in plain words, of these folders if any are named.

    Each document comes once before any comes twice, at most PASSAGES_PER_DOCUMENT times. `notes`
    returns why the texts at some of the addresses are old.
    """
    with index.open() as connection:
        roots = roots_within(connection, folders) if folders else ""
        langs = [lang for (lang,) in connection.execute("SELECT lang FROM languages")]
        for every in (False, True):  # function words count if no other word is known
            words = wanted(text, langs, every=every)[:COUNTED]
            scorer, asked = _asked(connection, words)
            ranked = partial(_ranked, connection, scorer, asked, roots)
            if found := _best(ranked, limit) if asked else []:
                break
        shown = [_hit(connection, each.row, words) for each in found]
        told = notes(connection, [urldefrag(hit.url).url for hit in shown]) if notes else {}
    return [
        replace(hit, snippet=f"{hit.snippet} [{note}: this is its text of before.]")
        if (note := told.get(urldefrag(hit.url).url))
        else hit
        for hit in shown
    ]


def named(index: Index, part: str, limit: int) -> list[dict[str, str]]:
    """Returns url, title and kind of the documents with `part` in their title or address: files
    first, then pages from the newest, then our own."""
    query = """SELECT d.url, d.title, r.kind FROM documents d JOIN roots r ON r.id = d.root
        WHERE instr(lower(d.title), ?1) OR instr(lower(d.url), ?1)
        ORDER BY r.kind = 'docs', r.kind = 'pages', d.added DESC, d.id LIMIT ?2"""
    with index.open() as connection:
        rows = connection.execute(query, (part.lower(), limit)).fetchall()
    return [dict(zip(("url", "title", "kind"), row, strict=True)) for row in rows]


def _asked(connection: sqlite3.Connection, words: Sequence[Wanted]) -> tuple[Scorer, list[str]]:
    """Returns what scores passages, and for each word that FTS5 is asked its terms, the rarest
    first."""
    row = connection.execute("SELECT passages, length FROM totals").fetchone()
    if {*map(type, row or ())} != {int}:  # damaged
        raise sqlite3.DatabaseError("its totals are no numbers")
    every, length = row
    held = _counts(connection, {term for word in words for term in word})
    counts = [min(every, sum(held.get(t, 0) for t in {*word})) for word in words]
    known = sorted((n for n, count in enumerate(counts) if count), key=lambda n: counts[n])
    chosen = sorted(known[:MOST_WORDS])
    worth = [rarity(counts[n], every) for n in chosen]
    scorer = Scorer([words[n] for n in chosen], worth, length / max(1, every))
    # Words that stand everywhere change the order of what the others find; they find nothing new.
    sums = accumulate(counts[n] for n in known)
    asked = [n for n, total in zip(known, sums, strict=True) if total <= PROPOSED] or known[:1]
    return scorer, [
        " OR ".join(f'"{term}"' for term in words[n] if term in held) for n in asked[:PROPOSING]
    ]


def _best(ranked: Callable[[tuple[str, int]], list[_Scored]], limit: int) -> list[_Scored]:
    spread = _distinct(ranked(_BY_DOCUMENT))[:limit]
    if len(spread) < limit:
        allowed = {each.document: PASSAGES_PER_DOCUMENT - 1 for each in spread}
        taken = {each.row for each in spread}
        for each in ranked(_BY_PASSAGE):
            if each.row not in taken and allowed.get(each.document, 0) and len(spread) < limit:
                allowed[each.document] -= 1
                spread.append(each)
    return spread


def _counts(connection: sqlite3.Connection, terms: Iterable[str]) -> dict[str, int]:
    """Returns in how many passages each of these terms stands that the index knows."""
    query = "SELECT doc FROM vocabulary WHERE term = ?"
    rows = ((term, connection.execute(query, (term,)).fetchone()) for term in terms)
    return {term: row[0] for term, row in rows if row}


def _ranked(
    connection: sqlite3.Connection,
    scorer: Scorer,
    asked: Sequence[str],
    roots: str,
    by: tuple[str, int],
) -> list[_Scored]:
    found, (each, most) = list[_Scored](), by
    query = _PROPOSE.format(each=each, within=roots and _WITHIN.format(roots))
    some = " OR ".join(asked)
    pairs = (f"({one}) AND ({' OR '.join(asked[n:])})" for n, one in enumerate(asked[1:-1], 2))
    rows = connection.execute(query, (some, " OR ".join([asked[0], *pairs]), most)).fetchall()
    if len(rows) < most and len(asked) > 1:
        rows = connection.execute(query, (some, some, most)).fetchall()
    for row, title, heading, body, digest, is_ours in rows:
        score = scorer.score(title.split(), heading.split(), body.split())
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
    own = headings.rpartition(" > ")[2]
    full = f"{title}: {own}" if own and own != title else title
    # Only our own addresses have our own anchors.
    address = f"{url}#{anchor}" if anchor and url.startswith("library:") else url
    return Hit(full, address, excerpt(text, words, lang))
