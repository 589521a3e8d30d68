"""Chooses the sentences of pages that answer a question best, or none if none answers it.

Each word of the question counts by how rare it is in what was read, names and numbers more. It
counts whole in the sentence itself, less beside it or in the heading, least further away. Words
are compared by the groups of three letters that they share, so that endings, articles and compounds
match; Arabic, Korean and scripts without spaces are compared by the terms of a search.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from searchloop.agent.verdicts.check import TICKED, check
from searchloop.agent.verdicts.page import CELL, TABLE, Page
from searchloop.agent.verdicts.text import Token, blanked, tokens
from searchloop.analysis.language import language
from searchloop.analysis.terms import terms, wanted

_QUOTES = 5
_WORSE = 0.5  # what scores less than this share of the best is not quoted
_ECHO = 5  # words; a page that repeats a question of at least so many words quotes it
_ALIKE = 0.5  # share of common letter groups from which on two words count as one
_SHORT = 3  # letters of a word that is compared as a whole
_KINDS = ("word", "number", "letter")
_OWN, _NEAR, _WIDE = 0.5, 0.2, 0.3
_BY_TERMS = frozenset(("ar", "ja", "km", "ko", "lo", "my", "th", "zh"))
_LETTER = 0.4  # what a letter counts beside the pairs that it is part of
# The score from which on a sentence answers, measured with bench.extractive.
_LEAST = "ar:.31 el:.26 en:.34 es:.35 hi:.28 ja:.25 ro:.29 ru:.23 th:.53 tr:.30 vi:.41 zh:.24"
_ENOUGH, _ENOUGH_IN = 0.29, {pair[:2]: float(pair[3:]) for pair in _LEAST.split()}
_WORDS = re.compile(r"\w+")
_MARKS = re.compile(
    r"^\s*(?:>+|[-*+]|\d+[.)]|\|)\s*|\s{0,99}\|\s*$"
    r"|(?<!\w)_{1,3}|_{1,3}(?!\w)|(?<!\s)[*`]{1,3}|[*`]{1,3}(?!\s)"
)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*\)")
_INSIDE = str.maketrans("“”", '""')
_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟", "۔")


_CELLS = " · "


class Quote(NamedTuple):
    """A sentence of a page, or a row of a table with its heads, with the number of its source."""

    n: int
    text: str

    @property
    def said(self) -> str:
        """The words of the page in quotation marks; the heads of a table stand before its cells."""
        return self.text if _CELLS in self.text else quoted(self.text)


class _Row(NamedTuple):
    """A sentence with the keys of its words, of those near it, and of those around it."""

    n: int
    text: str
    own: frozenset[str]
    near: frozenset[str]
    wide: frozenset[str]


def best_quotes(
    question: str, pages: Sequence[tuple[int, str]], spare: frozenset[str] = frozenset()
) -> list[Quote]:
    """Returns at most _QUOTES sentences of the pages, in their order; `pages` are (number, text).

    `spare` are words of the question that no answer holds.
    """
    lang, rows, scored = _scored(question, pages, spare)
    chosen: dict[frozenset[str], int] = {}  # by words: the same sentence once
    sources = {n: Page(text) for n, text in pages}
    for score, place in scored:
        least, row = max(_ENOUGH_IN.get(lang, _ENOUGH), scored[0][0] * _WORSE), rows[place]
        if score < least or len(chosen) == _QUOTES:
            break
        if row.own not in chosen and _stands_in(sources[row.n], Quote(row.n, row.text)):
            chosen[row.own] = place
    return [Quote(rows[place].n, rows[place].text) for place in sorted(chosen.values())]


def _scored(
    question: str, pages: Sequence[tuple[int, str]], spare: frozenset[str]
) -> tuple[str, list[_Row], list[tuple[float, int]]]:
    """Returns the language asked in, the sentences, and (score, place) of each, the best first."""
    read = [(n, Page(_plain(text))) for n, text in pages]
    for (_, page), (_, text) in zip(read, pages, strict=True):
        page.lang = language(text)  # heads that stand in each row are of any language
    rows = [row for n, page in read for row in _rows(n, page)]
    lang = language(question) or min((page.lang for _, page in read), default="")
    asked = _asked(question, lang, spare)
    hits = _hits(asked, frozenset().union(*(row.own for row in rows)))
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(_credit(row.own, hits))
    weights = {k: w * math.log(1 + len(rows) / (0.5 + counts[k])) for k, w in asked.items()}
    words = _WORDS.findall(question.casefold())
    scored = [
        (score, place)
        for place, row in enumerate(rows)
        if (score := _score(row, hits, asked, weights)) and _quotable(row.text)
        if not _repeats(words, row.text)
    ]
    return lang, rows, sorted(scored, key=lambda pair: (-pair[0], pair[1]))


def _asked(question: str, lang: str, spare: frozenset[str]) -> dict[str, float]:
    """Returns the words of a question and what each is worth."""
    if lang in _BY_TERMS:
        asked = (word[0] for word in wanted(question))
        return {t: 2.0 if t.isascii() else 1.0 if len(t) > 1 else _LETTER for t in asked}
    kept = (t for t in tokens(question, lang) if t.kind in _KINDS and t.word not in spare)
    return {t.key: _worth(t) for t in kept}


def _stands_in(page: Page, quote: Quote) -> bool:
    """Tells whether a check finds the words again in the page as it was read."""
    return check(quote.said, page).verdict in TICKED


def quoted(text: str) -> str:
    """Returns a sentence in quotation marks, with other ones inside."""
    return f"“{text.translate(_INSIDE)}”"


def _worth(token: Token) -> float:
    """Returns the weight of a word: names and numbers tell most, short words least."""
    if token.named or token.number:
        return 2.0
    return 0.5 if token.kind == "word" and len(token.word) <= _SHORT else 1.0


def _plain(text: str) -> str:
    """Returns the paragraphs of a page without code and Markdown marks; headings keep their `#`."""
    kept, code = [], False
    for line in TABLE.sub(_with_heads, text).split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        code ^= fence
        if not fence:
            heading = line.lstrip().startswith("#")
            kept.append("" if code else f"\n{line}\n" if heading else line)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|]|\d+[.)])\s)", "\n".join(kept))
    said = (" ".join(each.split()) for each in paragraphs)
    flat = (_MARKS.sub("", _LINK.sub(r"\1", each)) for each in said if not _is_menu(each))
    return "\n\n".join(" ".join(blanked(each).split()) for each in flat)


def _with_heads(table: re.Match[str]) -> str:
    """Writes each row of a table as a paragraph, each cell in quotation marks behind its head."""
    heads, *rows = (
        [cell.strip() for cell in CELL.findall(row)]
        for row in (table["heads"], *table["rows"].splitlines())
    )
    told = (
        (
            f"{head.strip('*_ ')}: {quoted(cell)}".removeprefix(": ")
            for head, cell in zip(heads, row, strict=True)
        )
        for row in rows
        if len(row) == len(heads)
    )
    return "\n\n".join(map(_CELLS.join, told)) + "\n\n"


def _is_menu(paragraph: str) -> bool:
    """Tells whether most of a paragraph's words are links."""
    return 2 * len(_LINK.sub("", paragraph)) < len(_LINK.sub(r"\1", paragraph))


def _quotable(text: str) -> bool:
    """A sentence may be short; text without its end (a label, a menu entry) may not."""
    words = text.count(" ") > 1 or not text.isascii()
    ended = _CELLS in text or (text.endswith(_ENDS) and words)
    return (
        (8 if not text.isascii() and ended else 12 if ended else 30) <= len(text) <= 600
        and text.count("|") < 2
        and not text.startswith("#")
    )


def _rows(n: int, page: Page) -> Iterable[_Row]:
    keys = page.keys
    if page.lang in _BY_TERMS:
        keys = [frozenset(terms(page.text[slice(*span)], page.lang)) for span in page.spans]
    heading = title = keys[0] if keys else frozenset()
    for j, span in enumerate(page.spans):
        said = page.text[slice(*span)]
        if said.startswith("#"):
            heading = keys[j]
        near = heading.union(*keys[max(0, j - 1) : j + 2])
        wide = near.union(title, *keys[max(0, j - 4) : j + 5])
        yield _Row(n, said, keys[j], near, wide)


def _hits(asked: Iterable[str], keys: Iterable[str]) -> dict[str, dict[str, float]]:
    """Returns, for each key that matches words of the question, how well it matches which."""
    groups = {word: _groups(word) for word in asked}
    every = frozenset().union(*groups.values())
    found: dict[str, dict[str, float]] = {}
    for key in keys:
        own = _groups(key)
        if key in groups or len(key) == _SHORT or not every.isdisjoint(own):
            shares = {word: _share(key, word, own, others) for word, others in groups.items()}
            found[key] = {word: share for word, share in shares.items() if share >= _ALIKE}
    return found


def _share(key: str, word: str, own: frozenset[str], others: frozenset[str]) -> float:
    """Returns how alike two keys are; the first may be the beginning of the other."""
    ending = word.removeprefix(key) if key[0] != "#" and len(key) >= _SHORT else word
    if key == word or (ending != word and len(ending) <= _SHORT):
        return 1.0
    return 2 * len(own & others) / (len(own) + len(others) or 1)


@lru_cache(maxsize=65536)
def _groups(word: str) -> frozenset[str]:
    """Returns the groups of three letters of a word, none for a short word or a number."""
    if len(word) <= _SHORT or word[0] == "#":
        return frozenset()
    marked = f"^{word}$"
    return frozenset(marked[i : i + 3] for i in range(len(marked) - 2))


def _credit(keys: frozenset[str], hits: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in keys & hits.keys():
        for word, share in hits[key].items():
            found[word] = max(found.get(word, 0.0), share)
    return found


def _score(
    row: _Row,
    hits: Mapping[str, Mapping[str, float]],
    asked: Mapping[str, float],
    weights: Mapping[str, float],
) -> float:
    """Returns the share of the question that stands in and around a sentence, 0 to 1.

    One word of a longer question is no answer, unless it is a name or a number.
    """
    own, near, wide = (_credit(keys, hits) for keys in (row.own, row.near, row.wide))
    if not own or sum(asked[word] for word in wide) < min(2, sum(asked.values())):
        return 0.0
    held = sum(
        weights[k] * (_OWN * own.get(k, 0) + _NEAR * near.get(k, 0) + _WIDE * share)
        for k, share in wide.items()
    )
    return held / (sum(weights.values()) or 1)


def _repeats(asked: list[str], text: str) -> bool:
    """True if the text repeats the question; a short question may be the page's topic."""
    return len(asked) >= _ECHO and " ".join(asked) in " ".join(_WORDS.findall(text.casefold()))
