"""Reads what Chinese and Japanese put around a word: only, except, from, one of, it is denied that.

There it is a part of the run of letters, so that no token shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from searchloop.agent.verdicts import numbers

_MILD = ("only", "cause", "though")  # a claim may leave it out
_LETTERS = re.compile("[\u3041-\u30ff\u4e00-\u9fff]")


def marked_apart(claim: str, source: str) -> bool:
    """Tells whether a word that both sides have is marked by one alone, or in another way."""
    if not _LETTERS.search(claim):
        return False
    ours, theirs = list(_marked(claim)), list(_marked(source))
    for kind, word in theirs:
        beside = {k for k, w in ours if w in word or word in w}
        if kind not in beside and (beside or (word in claim and kind not in _MILD)):
            return True
    return any(
        word in source and not any(k == kind and (w in word or word in w) for k, w in theirs)
        for kind, word in ours
        if kind not in ("cause", "though")
    )


@lru_cache(maxsize=1)  # (kind, pattern with the word as its group), compiled when first needed
def _markers() -> list[tuple[str, re.Pattern[str]]]:
    lines = (line.partition(" ") for line in numbers.TABLES["markers"].splitlines())
    return [(kind, re.compile(pattern)) for kind, _, pattern in lines]


def _marked(text: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _markers():
        for found in pattern.finditer(text):
            yield kind, found[1]
