"""Compares a claim's tokens with those of a few sentences, and says what keeps them apart.

The rules refuse one after the other; what none of them refuses is supported. A refusal is a denial
only where the claim is the source's own sentence but for the one difference that the rule found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.clauses import (
    Pairs,
    active,
    borrowed,
    elsewhere,
    exchanged,
    reversed_,
    swapped,
    undated,
    written,
)
from searchloop.agent.verdicts.cover import LEAST, begins, enough, scattered
from searchloop.agent.verdicts.degrees import bounded, modified, other_quantity, said, surer
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import OPPOSITES, Token

FEWER = 6  # words of a short claim
SAME = 0.95  # share of the claim's content in the window, in whatever order: likewise
NEAR = 0.80  # share of the claim's tokens in the window's order: it is the source's own sentence
NEAR_LETTERS = 0.65  # the same in scripts without spaces, where one change breaks two pairs

FEW = "Too few of the claim's words stand together in the source."
NUMBER = "The source gives another number."
MISSING_NUMBER = "A number of the claim does not stand there."
NAME = "A name of the claim does not stand there."
OPPOSITE = "The source says the opposite."
DENIAL = "One of them denies what the other says."
CROSSED = "Two words of the source have changed places."
TURNED = "Names or numbers stand the other way round."
ELSEWHERE = "What the claim joins stands in two clauses of the source, each with its own words."
REPLACED = "One word of the source's sentence is replaced by another."
DEGREE = "The source says it of more or fewer, or less surely."
# What a claim is refused for although its words stand in the source.
FAULTS = frozenset((NUMBER, OPPOSITE, DENIAL, CROSSED, TURNED, REPLACED, ELSEWHERE, DEGREE))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one window bears on a claim.

    `cover` is the share of the claim's content in the window, 0 to 1; `fault` is one sentence, or
    empty where nothing keeps them apart; `near` tells that the claim is nearly a sentence of the
    source, `denied` that it is one but for the fault, `whole` that all its content stands in order.
    """

    cover: float
    fault: str = ""
    near: bool = False
    denied: bool = False
    whole: bool = False


class Gap(NamedTuple):
    """A place where the claim goes on with other tokens than the window."""

    ours: Sequence[Token]
    theirs: Sequence[Token]

    def content(self) -> tuple[list[Token], list[Token]]:
        """Returns both sides without function words."""
        ours, theirs = ([t for t in side if t.kind != "stop"] for side in self)
        return ours, theirs

    @property
    def turns(self) -> bool:
        """Tells whether one side denies and the other does not, within a few words."""
        ours, theirs = self.content()
        odd = sum(t.kind == "not" for t in (*ours, *theirs)) % 2 == 1
        return odd and len(ours) <= 5 and len(theirs) <= 5


def compare(
    claim: Sequence[Token],
    window: Sequence[Token],
    weights: Mapping[str, float],
    page: Page,
) -> Comparison:
    """Compares a claim with the tokens of a window of one to three sentences.

    `weights` gives what each key of the claim's content counts. A window need not repeat what the
    page is about.
    """
    claim = active(claim, window)
    alone = page.sentence_of(window[0].start) == page.sentence_of(window[-1].start)
    window = active(window, claim) if alone else window
    lost = _lost([t for t in claim if t.key in weights], window)
    absent = {t.key for t in lost}
    cover = 1 - sum(weights[key] for key in absent) / sum(weights.values())
    if cover < LEAST:
        return Comparison(cover, FEW)
    apart, paired = _gaps(claim, window, _aligned(claim, window))
    near = paired >= _near(claim) * len(claim)
    letters = _near(claim) == NEAR_LETTERS
    short = len(weights) <= FEWER * (3 if letters else 1)
    few = cover < enough(len(weights), letters)
    if few and not near:
        return Comparison(cover, FEW)
    ours, theirs = ([t for t in side if t.kind != "stop"] for side in (claim, window))
    pairs = _aligned(ours, theirs)
    content, matched = _gaps(ours, theirs, pairs)
    same = sum((Counter(t.key for t in ours) & Counter(t.key for t in theirs)).values())
    shuffled = same >= (SAME if _near(claim) == NEAR else NEAR_LETTERS) * len(ours)
    close = matched >= NEAR_LETTERS * sum(t.kind != "not" for t in ours)
    fault = (
        (MISSING_NUMBER if any(t.number for t in lost) else "")
        or _opposite(claim, window, apart)
        or _denial(ours, theirs, (*content, *apart) if close else ())
        or (DENIAL if borrowed(ours, theirs, pairs, page) else "")
        or _crossed(content)
        or _degree(claim, window, (*apart, *content), page.lang)
        or _replaced(_dateless(claim, window), near, short, absent & page.about)
        or (NAME if any(t.named and t.key not in page.about for t in lost) else "")
        or _order(claim, window, near or (shuffled and alone), page.lang)
        or (ELSEWHERE if elsewhere(ours, theirs, pairs, page) else "")
        or (FEW if few or (not letters and scattered(ours, theirs)) else "")
    )
    near = near or shuffled or matched >= _near(ours) * len(ours)
    denied = near and bool(fault) and _only(apart, fault)
    told = NUMBER if near and fault == MISSING_NUMBER else fault
    return Comparison(cover, told, near, denied, _whole(content))


def _lost(claim: Sequence[Token], window: Sequence[Token]) -> list[Token]:
    """Returns the claim's tokens that do not stand in the window, in whatever form."""
    have = {t.key for t in window}
    begun = {begins(t.key) for t in window if t.kind == "word"}
    values = [t.number for t in window if t.number]
    lost = [t for t in claim if not (_stands(t.number, values) if t.number else t.key in have)]
    return [t for t in lost if t.kind != "word" or begins(t.key) not in begun]


def _stands(number: numbers.Number, values: list[numbers.Number]) -> bool:
    """Tells whether a number is there; a bare one counts where the value has no other unit."""
    units = {v.unit for v in values if number._replace(unit="").same(v)}
    return bool(units) and (not number.unit or number.unit in units or units == {""})


def _degree(
    claim: Sequence[Token], window: Sequence[Token], apart: Sequence[Gap], lang: str
) -> str:
    """Finds `all` for `some`, `is` for `may be`, `below` for `at`."""
    amounts = any(other_quantity(*gap) or modified(*gap) for gap in apart)
    surely = surer(claim, window, _aligned(claim, window), lang)
    return DEGREE if amounts or surely or bounded(claim, window) else ""


def _whole(content: Sequence[Gap]) -> bool:
    """Tells whether all of the claim stands in order, and hardly anything is left out."""
    left_out = [t for gap in content for t in gap.theirs]
    if any(gap.ours for gap in content) or len(left_out) > 2:
        return False
    return not any(t.number or t.kind == "not" for t in left_out)


@lru_cache(maxsize=8)  # the rules ask for the same two again
def align(ours: tuple[str, ...], theirs: tuple[str, ...]) -> list[tuple[int, int]]:
    """Returns the index pairs of a longest common subsequence.

    Hyyrö's algorithm: one addition of long integers for each key of `theirs`.
    """
    masks: dict[str, int] = {}
    for i, key in enumerate(ours):
        masks[key] = masks.get(key, 0) | 1 << i
    full = (1 << len(ours)) - 1
    row, rows = full, []
    for key in theirs:
        same = row & masks.get(key, 0)
        row = ((row + same) | (row - same)) & full
        rows.append(row)
    pairs = []
    i, j = len(ours) - 1, len(theirs) - 1
    while i >= 0 and j >= 0:
        if rows[j] >> i & 1:
            i -= 1
        elif j and not rows[j - 1] >> i & 1:
            j -= 1
        else:
            pairs.append((i, j))
            i, j = i - 1, j - 1
    return pairs[::-1]


def _aligned(ours: Sequence[Token], theirs: Sequence[Token]) -> Pairs:
    return align(tuple(t.key for t in ours), tuple(t.key for t in theirs))


def _gaps(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs) -> tuple[list[Gap], int]:
    """Returns the places that differ, and how many tokens stand in order.

    What the window has before and behind the claim does not count, but for the tokens that stand
    where the claim has others.
    """
    if not pairs:
        return [Gap(ours, theirs)], 0
    (lead, first), (end, last) = pairs[0], pairs[-1]
    tail = len(ours) - 1 - end
    found = [Gap(ours[:lead], theirs[max(0, first - lead - 1) : first] if lead else ())]
    found += [Gap(ours[i + 1 : k], theirs[j + 1 : m]) for (i, j), (k, m) in pairwise(pairs)]
    found.append(Gap(ours[end + 1 :], theirs[last + 1 : last + 2 + tail] if tail else ()))
    return [gap for gap in found if gap.ours or gap.theirs], len(pairs)


def _dateless(claim: Sequence[Token], window: Sequence[Token]) -> list[Gap]:
    """Returns the places that differ but for a date, where the numbers of both stand in order."""
    one, other = ([t.key for t in side if t.number] for side in (claim, window))
    if [key for key in one if key in other] == [key for key in other if key in one]:
        claim, window = undated(claim, window)
    return _gaps(claim, window, _aligned(claim, window))[0]


def turned_by_gap(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether one side denies where the other goes on: `did … expect` for `did not expect`.

    A long gap may hold a denial of its own, unless that is the first or last word left out.
    """
    for gap in _gaps(ours, theirs, _aligned(ours, theirs))[0]:
        edge = gap.theirs if len(gap.theirs) <= 4 else (gap.theirs[0], gap.theirs[-1])
        if any(t.kind == "not" for t in (*gap.ours, *edge)):
            return True
    return False


def _near(tokens: Sequence[Token]) -> float:
    return NEAR_LETTERS if sum(t.kind == "letter" for t in tokens) * 2 > len(tokens) else NEAR


def _only(apart: Sequence[Gap], fault: str) -> bool:
    """Tells whether the fault is the one difference between the claim and the source."""
    if fault == CROSSED:
        return len(apart) == 2 and all(len(g.ours) <= 3 and len(g.theirs) <= 3 for g in apart)
    if len(apart) != 1:
        return False
    ours, theirs = apart[0].content()
    if fault == MISSING_NUMBER:
        return sum(t.number is not None for t in ours) == 1 == sum(bool(t.number) for t in theirs)
    if fault == DENIAL:
        return apart[0].turns
    return fault == OPPOSITE and len(ours) == 1 == len(theirs)


def _opposite(claim: Sequence[Token], window: Sequence[Token], apart: Sequence[Gap]) -> str:
    """Finds a word whose opposite stands in the window in its stead."""
    own, have = {t.word for t in claim}, {t.word for t in window}
    places = [(own - have, have - own)]
    places += [({t.word for t in g.ours}, {t.word for t in g.theirs}) for g in apart if g.ours]
    for gap in apart:  # `fell by` for `fell to`, `will be` for `was`
        ours, theirs = ({said(t) for t in side[-_CLOSE:]} for side in gap)
        if any(one in theirs and other in ours for one, other in _CONTRASTS):
            return OPPOSITE
    for ours, theirs in places:
        for one in ours:
            if any(_reverse(one, other) for other in theirs):
                return OPPOSITE
    return ""


def _reverse(one: str, other: str) -> bool:
    """Tells whether two words begin like opposites of the table, or one is the other with `un-`."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.removesuffix(short) in _PREFIXES:
        return True
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


def _denial(ours: Sequence[Token], theirs: Sequence[Token], apart: Sequence[Gap]) -> str:
    """Finds a word that stands denied on one side and plain on the other."""
    denied, there = _denied(ours), _denied(theirs)
    plainly, plainly_there = {t.key for t in ours} - denied, {t.key for t in theirs} - there
    if denied & plainly_there or there & plainly or any(gap.turns for gap in apart):
        return DENIAL
    return ""


def _denied(tokens: Sequence[Token]) -> set[str]:
    """Returns the keys of the words behind a negation; of the one before it at the end.

    In scripts without spaces a negation may follow, so that both sides count.
    """
    found: set[str] = set()
    for i, token in enumerate(tokens):
        if token.kind != "not":
            continue
        behind = [t for t in tokens[i + 1 : i + 9] if t.start >= token.end][:3]
        behind = [t for t in behind if t.kind != "not"]
        before = [t for t in tokens[max(0, i - 4) : i] if t.kind != "not" and _clear(t, token)]
        found.update(t.key for t in behind[:1])
        if not behind or (before and before[-1].kind == "letter"):
            found.update(t.key for t in before[-2:])
    return found


def _clear(token: Token, negation: Token) -> bool:
    """Tells whether a token, two letters wide in scripts without spaces, ends before a negation."""
    return token.end + (token.kind == "letter") <= negation.start


def _crossed(apart: Sequence[Gap]) -> str:
    """Finds two places whose tokens have changed places with each other."""
    swaps = [({t.key for t in g.ours}, {t.key for t in g.theirs}) for g in apart]
    swaps = [(ours - {"not"}, theirs - {"not"}) for ours, theirs in swaps]
    for place, (ours, theirs) in enumerate(swaps):
        if any(theirs & left and ours & right for left, right in swaps[place + 1 :]):
            return CROSSED
    return ""


def _order(claim: Sequence[Token], window: Sequence[Token], alike: bool, lang: str) -> str:
    """Finds what stands in another order; a date or `In Oslo` at the front may stand behind."""
    if swapped(claim, window) or reversed_(claim, window, lang):
        return TURNED
    claim, window = undated(claim, window)
    if exchanged(claim, window):
        return TURNED
    apart, _ = _gaps(claim, window, _aligned(claim, window))
    return _moved(window, apart) if alike else ""


def _moved(window: Sequence[Token], apart: Sequence[Gap]) -> str:
    """Finds names, numbers or letters that stand elsewhere in a sentence that is otherwise equal.

    A phrase of the source may move as a whole.
    """
    have, place = {t.key for t in window}, " ".join(t.key for t in window)
    loose = {t.key for gap in apart for t in gap.theirs}
    for gap in apart:
        there = {t.key for t in gap.theirs}
        moved = [t for t in gap.ours if t.key in (have if t.kind == "letter" else loose) - there]
        content, _ = gap.content()
        if len(content) > 1 and not there:
            if (
                content[0].kind != "letter"
                and not _caseless(content[0])
                and " ".join(t.key for t in gap.ours) in place
            ):
                continue
            if all(t.key in have for t in content):
                moved = content
        if any(t.capital or t.number or written(t) or _caseless(t) for t in moved):
            return TURNED
    return ""


def _caseless(token: Token) -> bool:
    """Tells whether a word is of a script that writes names like other words."""
    return token.kind == "word" and not token.word[0].islower()


def _replaced(apart: Sequence[Gap], near: bool, short: bool, known: Set[str]) -> str:
    """Finds a word, name or number in place of another: in the source's sentence, or a part of it.

    In a part it is one word; what the page is about may stand there for a pronoun.
    """
    own = [sides for gap in apart if any(map(_tells, (sides := gap.content())[0]))]
    for ours, theirs in own:
        if not theirs or numbers.ABOUT.issuperset(t.word for t in (*ours, *theirs)):
            continue
        if any(_alike(a, b) for a in ours for b in theirs) or _bridges(ours, theirs):
            continue
        marked = [any(t.capital or t.number for t in side) for side in (ours, theirs)]
        if near and (len(apart) == 1 or all(marked)):
            return REPLACED
        if ours[0].kind == "letter":
            one = len(theirs) <= 5 and any(map(written, theirs))
        else:
            one = len(ours) == 1 and len(theirs) <= 3 and not ours[0].number
        if short and len(own) == 1 and one and ours[0].key not in known:
            return REPLACED
    return ""


def _tells(token: Token) -> bool:
    """Tells whether a token is more than an ending in hiragana."""
    return token.kind != "letter" or not all("ぁ" <= c <= "ゟ" for c in token.key)


def _bridges(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells of one pair of letters where the source has more: the claim leaves something out."""
    edges = ours[0].key[0] == theirs[0].key[0] or ours[-1].key[-1] == theirs[-1].key[-1]
    return ours[0].kind == "letter" and edges and len(ours) == 1 < len(theirs)


def _alike(one: Token, other: Token) -> bool:
    """Tells whether two words or pairs of letters are forms of one; scales are not."""
    if one.kind == other.kind == "letter":
        return one.key[0] == other.key[0] and all("ぁ" <= t.key[-1] <= "ゟ" for t in (one, other))
    if one.key[0] in "#~" or any(numbers.scale(t.word, "") for t in (one, other)):
        return False
    same = 2 if one.key[0] >= "\uac00" else 4  # syllables, letters
    return len(one.key) >= same and one.key[:same] == other.key[:same]
