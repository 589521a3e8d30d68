"""Says how much of a claim must stand in a few sentences, and how close together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from searchloop.agent.verdicts.numbers import ABOUT
from searchloop.agent.verdicts.text import Token

LEAST = 0.5  # share of the claim's content, by weight, below which a window is not looked at
_FEW, _LEAST_OF_FEW = 3, 0.65  # sentences of a short source, and the least share there
_LETTERS = 0.64  # the share that must stand there in scripts without spaces
_BESIDE, _TOGETHER = 5, 0.3  # words from a neighbour to the next, and the share of the neighbours


def enough(words: int, letters: bool, sentences: int) -> float:
    """Returns the share of a claim's content that must stand in the window.

    A few words stand together by chance or leave out what counts; of many, more may differ.
    A source of few sentences is about the claim's subject and holds some of its words anyway.
    """
    least = _LEAST_OF_FEW if sentences <= _FEW else LEAST
    return _LETTERS if letters else max(least, min(0.4 + 2.5 / words, 0.7))


def content(tokens: Sequence[Token]) -> list[Token]:
    """Returns what tells something: no grammar, no "about", no unit or sign that a number has."""
    found = []
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        unit = before and token.key[0] == "~" and (before.number or before.key[0] == "~")
        minus = after and after.number and after.number.value < 0 and after.start - token.end < 2
        said = token.kind in ("word", "number", "letter") and token.word not in ABOUT
        if said and not unit and not minus:
            found.append(token)
    return found


def scattered(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether hardly any neighbours of the claim stand near each other in the window."""
    keys = [token.key for token in content(theirs)]
    near = {pair for far in range(1, _BESIDE + 1) for pair in zip(keys, keys[far:], strict=False)}
    neighbours = [(a.key, b.key) for a, b in pairwise(content(ours))]
    together = sum((a, b) in near or (b, a) in near for a, b in neighbours)
    return together < _TOGETHER * len(neighbours)


def begins(stem: str, letters: int = 6) -> str:
    """Returns what the forms of a word have in common: so many letters, or two Korean syllables."""
    return stem[: 2 if "\uac00" <= stem[:1] <= "\ud7a3" else letters]
