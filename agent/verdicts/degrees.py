"""Tells claims that say more than their source: all for some, is for may be, below for at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.text import Token
from searchloop.analysis.words import table


def _kinds(name: str) -> Mapping[str, str]:
    """Returns {phrase: its kind} of a table of words; a word may join several by hyphens."""
    found = table(numbers.TABLES[name]).items()
    return {word.replace("-", " "): kind for kind, words in found for word in words}


_QUANTITIES, _BOUNDS = _kinds("quantifiers"), _kinds("bounds")
_HEDGES = {lang: frozenset(words) for lang, words in table(numbers.TABLES["hedges"]).items()}
_WAYS = ("by", "to", "from")  # of which the source may have none
_ALL = {"all"}
_MODIFIERS = frozenset(numbers.TABLES["modifiers"].split())
_NEAR = 2  # tokens between "may" and what it doubts


def said(token: Token) -> str:
    """Returns a token's word, or its two letters in scripts without spaces."""
    return token.key if token.kind == "letter" else token.word


def other_quantity(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether one place speaks of all and the other of some, or of most, or of few."""
    one, other = ({_QUANTITIES.get(said(t)) for t in side} - {None} for side in (ours, theirs))
    counted = [any(t.number for t in side) for side in (ours, theirs)]
    if (one, other, *counted) in ((_ALL, set(), False, True), (set(), _ALL, True, False)):
        return True
    return bool(one and other and not one & other)


def modified(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells of `the largest` for `the second largest`, `the president` for `the vice president`."""
    one, other = (bool(side) and side[-1].word in _MODIFIERS for side in (ours, theirs))
    return one != other


def hedged(tokens: Sequence[Token], lang: str) -> list[int]:
    """Returns the places of words such as "may" and "perhaps"."""
    words = _HEDGES.get(lang, ())
    return [i for i, t in enumerate(tokens) if said(t) in words and not t.capital]


def surer(
    claim: Sequence[Token], window: Sequence[Token], pairs: Sequence[tuple[int, int]], lang: str
) -> bool:
    """Tells whether the source doubts what the claim says without a doubt."""
    if hedged(claim, lang):
        return False
    places = {j for _, j in pairs}
    for at in hedged(window, lang):
        if window[at].kind == "letter" or lang == "ko":
            beside = range(max(0, at - 3), at) if lang in ("ja", "ko") else range(at + 1, at + 4)
        else:
            beside = range(at + 1, at + 1 + _NEAR)
        if min(places, default=at) < at and any(
            j in places and window[j].kind != "stop" for j in beside
        ):
            return True
    return False


def bounded(claim: Sequence[Token], window: Sequence[Token]) -> bool:
    """Tells whether a number of the claim is a bound that the source does not give."""
    for i, token in enumerate(claim):
        if token.number and (bound := _bound(claim, i)):
            there = [_bound(window, j) for j, t in enumerate(window) if t.key == token.key]
            if there and bound not in there and (bound not in _WAYS or "" not in there):
                return True
    return False


def _bound(tokens: Sequence[Token], at: int) -> str:
    words = [said(t) for t in tokens[max(0, at - 3) : at]]
    phrases = [" ".join(words[-n:]) for n in (3, 2, 1)]
    if at + 1 < len(tokens) and tokens[at + 1].kind == "letter":
        phrases += [said(t) for t in tokens[at + 1 : at + 3] if said(t) in ("以上", "以下", "未満")]
    return next((_BOUNDS[phrase] for phrase in phrases if phrase in _BOUNDS), "")
