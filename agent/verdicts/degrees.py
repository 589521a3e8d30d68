"""Tells claims that say more than their source, or the reverse: all for some, rose for fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.cover import begins
from searchloop.agent.verdicts.text import OPPOSITES, Token
from searchloop.analysis.words import table


def _kinds(name: str) -> Mapping[str, str]:
    """Returns {phrase: its kind} of a table of words; a word may join several by hyphens."""
    found = table(numbers.TABLES[name]).items()
    return {word.replace("-", " "): kind for kind, words in found for word in words}


_QUANTITIES, _BOUNDS = _kinds("quantifiers"), _kinds("bounds")
_HEDGES, _CONDITIONS = (
    {lang: frozenset(words) for lang, words in table(numbers.TABLES[name]).items()}
    for name in ("hedges", "conditions")
)
_WAYS = ("by", "to", "from")  # of which the source may have none
_ALL = {"all"}
_MODIFIERS = frozenset(numbers.TABLES["modifiers"].split())
_NAMES = ("may", "will")  # a month, a man
_SHARES = frozenset(numbers.TABLES["shares"].split())
Tokens = Sequence[Token]


def said(token: Token) -> str:
    """Returns a token's word, or its two letters in scripts without spaces."""
    return token.key if token.kind == "letter" else token.word


def other_quantity(ours: Tokens, theirs: Tokens) -> bool:
    """Tells whether one place speaks of all and the other of some, or of most, or of few."""
    one, other = ({_QUANTITIES.get(said(t)) for t in side} - {None} for side in (ours, theirs))
    counted = [any(t.number for t in side) for side in (ours, theirs)]
    if (one, other, *counted) in ((_ALL, set(), False, True), (set(), _ALL, True, False)):
        return True
    return bool(one and other and not one & other)


def modified(ours: Tokens, theirs: Tokens) -> bool:
    """Tells of `the largest` for `the second largest`, `the president` for `the vice president`."""
    one, other = (bool(side) and side[-1].word in _MODIFIERS for side in (ours, theirs))
    return one != other


def hedged(tokens: Tokens, lang: str) -> list[int]:
    """Returns the places of words such as "may", "perhaps" and "if"."""
    words = _HEDGES.get(lang, frozenset()) | _CONDITIONS.get(lang, frozenset())
    return [
        i
        for i, (t, after) in enumerate(zip(tokens, (*tokens[1:], *tokens[-1:]), strict=True))
        if (said(t) in words or f"{t.word}-{after.word}" in words)
        and not (t.capital and t.word in _NAMES)
    ]


def surer(claim: Tokens, window: Tokens, pairs: Sequence[tuple[int, int]], lang: str) -> bool:
    """Tells whether the source doubts what the claim says without a doubt."""
    held, places = {i for i, _ in pairs}, {j for _, j in pairs}
    if not held.issuperset(hedged(claim, lang)):
        return False  # it doubts in words of its own
    begun = {_beginning(t) for t in claim}
    for at in hedged(window, lang):
        behind = [j for j in range(at + 1, len(window)) if window[j].kind != "stop"]
        if lang in ("ja", "ko"):
            behind = [*range(max(0, at - 4), at)]  # "may" stands at the end
        for j in behind[: 4 if window[at].kind == "letter" or lang == "ko" else 1]:
            if at not in places and (j in places or _beginning(window[j]) in begun):
                return True
    return False


def _beginning(token: Token) -> str:
    """Returns what the forms of a word share, and any other token whole."""
    return begins(token.key, 4) if token.kind == "word" else token.key


def conditional(claim: Tokens, window: Tokens, pairs: Sequence[tuple[int, int]], lang: str) -> bool:
    """Tells whether the source goes on with "unless" or "if" behind what the claim says."""
    words = _CONDITIONS.get(lang, frozenset())
    held = {j for _, j in pairs}
    for at in (at for at, t in enumerate(window) if said(t) in words and not t.capital):
        told = [j for j in range(at) if window[j].kind != "stop"][-1:]
        if not held.isdisjoint(range(at + 1, at + 4) if lang == "ja" else told):
            return not any(said(t) in words for t in claim)
    return False


def bounded(claim: Tokens, window: Tokens) -> bool:
    """Tells whether a number of the claim is a bound that the source does not give."""
    for i, token in enumerate(claim):
        counts = token.number or said(token) in _SHARES
        if counts and (bound := _bound(claim, i)):
            there = [_bound(window, j) for j, t in enumerate(window) if t.key == token.key]
            if there and bound not in there and (bound not in _WAYS or "" not in there):
                return True
    return False


def _bound(tokens: Tokens, at: int) -> str:
    words = [said(t) for t in tokens[max(0, at - 3) : at]]
    phrases = [" ".join(words[-n:]) for n in (3, 2, 1)]
    if at + 1 < len(tokens) and tokens[at + 1].kind == "letter":
        phrases += [said(t) for t in tokens[at + 1 : at + 3] if said(t) in ("以上", "以下", "未満")]
    return next((_BOUNDS[phrase] for phrase in phrases if phrase in _BOUNDS), "")


def opposite(claim: Tokens, window: Tokens, apart: Sequence[tuple[Tokens, Tokens]]) -> bool:
    """Tells of a word whose opposite stands in the window in its stead."""
    own, have = _reversible(claim), _reversible(window)
    places = [(own - have, have - own)]
    places += [(_reversible(one), _reversible(other)) for one, other in apart if one]
    for gap in apart:  # `fell by` for `fell to`, `will be` for `was`
        ours, theirs = ({said(t) for t in side[-_CLOSE:]} for side in gap)
        if any(one in theirs and other in ours for one, other in _CONTRASTS):
            return True
    return any(_reverse(one, other) for own, have in places for one in own for other in have)


def _reversible(tokens: Tokens) -> set[str]:
    """Returns the words, and the pairs of letters that may have an opposite."""
    found = {said(t) for t in tokens}
    letters = {t.key for t in tokens if t.kind == "letter"}
    return found - {key for key in letters if key not in OPPOSITES and key[1:] not in OPPOSITES}


def _reverse(one: str, other: str) -> bool:
    """Tells whether two words begin like opposites of the table, or one is the other with `un-`."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.removesuffix(short) in _PREFIXES:
        return True
    if len(one) == len(other) == 2 and one[0] == other[0] and other[1] in OPPOSITES.get(one[1], ()):
        return True  # `撞前` for `撞后`
    for length in range(len(one), max(1, len(one) - 4), -1):
        for reverse in OPPOSITES.get(one[:length], ()):
            if other.startswith(reverse) and len(other) - len(reverse) <= 3:
                return True
    return False


_CLOSE = 3  # tokens before what both sides have
_CONTRASTS = {
    pair
    for one, _, other in (p.partition("/") for p in numbers.TABLES["contrasts"].split())
    for pair in ((one, other), (other, one))
}
_PREFIXES = frozenset(["un", "in", "im", "ir", "il", "dis", "non", "des", "dés"])
