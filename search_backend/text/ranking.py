"""Ranks passages by the words of a query: BM25F over title, headings and body.

The library ranks what its index proposes, `open_page` the passages of one page. A word counts by
how rare it is, the more the oftener it stands in a passage, up to a limit; a title or heading
counts more than the body, and words that follow each other in the query more if they stand
together. Measured with bench.retrieval.
https://www.staff.city.ac.uk/~sbrp622/papers/foundations_bm25_review.pdf
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise

from searchloop.analysis.language import language
from searchloop.analysis.terms import Wanted, terms, wanted
from searchloop.search_backend.text.passages import Passage, split

K1, B = 0.8, 0.5
TITLE, HEADING = 2.0, 1.5
# What two words count that follow each other in the query and stand at most NEAR places apart.
TOGETHER, NEAR = 0.3, 8
_SPACELESS = "\u0e00"  # from here on scripts without spaces
LENGTH = 480  # characters of an excerpt
TABLE_ROW = 2.0
_END = re.compile(r"[.!?。！？।؟\n](?:(?<![.!?])|(?=\s))")  # of a sentence or line


def rarity(count: int, every: int) -> float:
    """Returns what a word is worth that stands in `count` of `every` passages."""
    return math.log(1 + (every - count + 0.5) / (count + 0.5))


class Scorer:
    """Scores passages for `words` in their order in the query.

    `worth` is what each word counts, `usual` the mean length of a body.
    """

    def __init__(self, words: Sequence[Wanted], worth: Sequence[float], usual: float) -> None:
        self._worth, self._usual = worth, max(usual, 1.0)
        self._numbers = {term: n for n, word in enumerate(words) for term in word}
        self._words = list(words)
        # Neighbouring letters overlap: that they stand together tells nothing new.
        self._pairs = [
            min(one, other) if words[n][0] < _SPACELESS > words[n + 1][0] else 0.0
            for n, (one, other) in enumerate(pairwise(worth))
        ]

    def score(self, title: Sequence[str], heading: Sequence[str], body: Sequence[str]) -> float:
        """Returns the score of a passage whose terms these are; 0 if it holds none of the words."""
        numbers = self._numbers
        held: dict[str, float] = {}
        for field, weight in ((title, TITLE), (heading, HEADING)):
            for term in field:
                if term in numbers:
                    held[term] = held.get(term, 0.0) + weight
        last = [-NEAR - 1] * (len(self._words) + 1)
        together = [0] * len(self._words)  # how often a word stands near the next one of the query
        for place, term in compress(enumerate(body), map(numbers.__contains__, body)):
            held[term] = held.get(term, 0.0) + 1.0
            n = numbers[term]
            together[n] += place - last[n + 1] <= NEAR
            together[n - 1] += place - last[n - 1] <= NEAR
            last[n] = place
        length = K1 * (1 - B + B * len(body) / self._usual)
        score = 0.0
        for forms, worth in zip(self._words, self._worth, strict=True):
            if times := max([held.get(form, 0.0) for form in forms]):
                score += worth * times / (times + length)
        for worth, times in zip(self._pairs, together, strict=False):
            score += TOGETHER * worth * times / (times + length)
        return score


def excerpt(text: str, words: Iterable[Wanted], lang: str | None = None) -> str:
    """Returns the sentences of a passage, about LENGTH characters, with most of the words."""
    if len(text) <= LENGTH:
        return " ".join(text.split())
    lang = language(text) if lang is None else lang
    numbers = {term: n for n, word in enumerate(words) for term in word}
    ends = [0, *(each.end() for each in _END.finditer(text)), len(text)]
    units = [unit for start, end in pairwise(ends) if (unit := text[start:end].strip())]
    held = [[numbers[t] for t in terms(unit, lang) if t in numbers] for unit in units]
    best, best_score, best_end = 0, -1.0, 1
    found: list[int] = []  # words of the units from `at` to `end`
    end, room = 0, LENGTH + 1  # of the units from `at` on, with a space after each
    for at, unit in enumerate(units):
        while end < len(units) and (end <= at or len(units[end]) <= room):
            room -= len(units[end]) + 1
            found += held[end]
            end += 1
        room += len(unit) + 1
        # Different words count most, repetition a little, and what comes first leads into the rest.
        score = len({*found}) + len(found) / 100 - at / len(units)
        del found[: len(held[at])]
        # Rows of a table say little by themselves.
        score -= TABLE_ROW if unit[0] == "|" else 0
        if score > best_score:
            best, best_score, best_end = at, score, end
    told = " ".join(" ".join(units[best:best_end]).split())
    return ("… " if best else "") + told[: 2 * LENGTH]


def best_passages(text: str, query: str) -> list[Passage]:
    """Returns the passages of a text that hold words of a query, the best first."""
    lang = language(text)
    passages = list(split(text))
    bodies = [terms(passage.text, lang) for passage in passages]
    held = [frozenset(body) for body in bodies]
    for every in (False, True):
        words = wanted(query, (lang,), every=every)
        counts = [sum(not one.isdisjoint(word) for one in held) for word in words]
        if any(counts):
            break
    worth = [rarity(count, len(bodies)) for count in counts]
    usual = sum(map(len, bodies)) / max(1, len(bodies))
    ranking = Scorer(words, worth, usual)
    scores = [
        ranking.score((), terms(" ".join(passage.headings), lang), body)
        for passage, body in zip(passages, bodies, strict=True)
    ]
    order = sorted(range(len(passages)), key=lambda n: -scores[n])
    return [passages[n] for n in order if scores[n] > 0]
