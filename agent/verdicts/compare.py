"""Compares a claim's tokens with those of a few sentences of its source.

A learned score says whether the sentences hold the claim; a handful of vetoes take the tick away.
A veto accuses only where the claim is the source's own sentence but for one difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token, begins

SAME = 0.95  # share of the claim's content in the window, in whatever order: its own sentence
NEAR = 0.80  # share of the claim's tokens in the window's order: likewise
NEAR_LETTERS = 0.65  # the same in scripts without spaces, where one change breaks two pairs

Pairs = Sequence[tuple[int, int]]


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


@dataclass
class Comparison:
    """A claim beside a window of sentences; `weights` gives what each key of the claim counts."""

    given: Sequence[Token]
    window: Sequence[Token]
    weights: Mapping[str, float]
    page: Page
    derived: int = 0

    @cached_property
    def claim(self) -> Sequence[Token]:
        """The claim's tokens; a number that the window has in another form is given in that."""
        numbers = [t for t in self.window if t.number]
        return [_in_their_form(t, numbers) for t in self.given] if numbers else self.given

    @cached_property
    def ours(self) -> list[Token]:
        """The claim without function words."""
        return [t for t in self.claim if t.kind != "stop"]

    @cached_property
    def theirs(self) -> list[Token]:
        """The window without function words."""
        return [t for t in self.window if t.kind != "stop"]

    @cached_property
    def lost(self) -> list[Token]:
        """The claim's content that does not stand in the window, in whatever form."""
        have = {t.key for t in self.window}
        begun = {begins(t.key) for t in self.window if t.kind == "word"}
        return [
            t
            for ours, t in zip(self.given, self.claim, strict=True)
            if ours.key in self.weights and t.key not in have
            if t.kind != "word" or begins(t.key) not in begun
        ]

    @cached_property
    def cover(self) -> float:
        """The share of the claim's content in the window, by weight."""
        absent = {t.key for t in self.lost}
        return 1 - sum(self.weights.get(key, 0) for key in absent) / sum(self.weights.values())

    @cached_property
    def letters(self) -> bool:
        """Whether most of the claim is in a script without spaces."""
        return sum(t.kind == "letter" for t in self.claim) * 2 > len(self.claim)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The places where the two differ."""
        return _gaps(self.claim, self.window, aligned(self.claim, self.window))

    @cached_property
    def content_gaps(self) -> list[Gap]:
        """The places where the two differ, function words aside."""
        return _gaps(self.ours, self.theirs, aligned(self.ours, self.theirs))

    @cached_property
    def near(self) -> bool:
        """Whether the claim is nearly a sentence of the source."""
        least = NEAR_LETTERS if self.letters else NEAR
        numbers = sum(all(any(t.number for t in side) for side in gap) for gap in self.gaps)
        if len(aligned(self.claim, self.window)) + min(numbers, 1) >= least * len(self.claim):
            return True  # but for a number
        same = Counter(t.key for t in self.ours) & Counter(t.key for t in self.theirs)
        most = NEAR_LETTERS if self.letters else SAME
        in_order = len(aligned(self.ours, self.theirs))
        return max(same.total() / most, in_order / least) >= len(self.ours)

    @cached_property
    def whole(self) -> bool:
        """Whether all of the claim stands in order, and hardly anything is left out."""
        left_out = [t for gap in self.content_gaps for t in gap.theirs]
        if any(gap.ours for gap in self.content_gaps) or len(left_out) > 2:
            return False
        return not any(t.number or t.kind == "not" for t in left_out)


def _in_their_form(token: Token, numbers: Sequence[Token]) -> Token:
    """Returns a number as the source gives it, so that the two have one key."""
    number = token.number
    if number is None:
        return token
    same = [t.key for t in numbers if t.number and number.held_by(t.number)]
    if same:
        return token if token.key in same else token._replace(key=same[0])
    otherwise = any(t.key == token.key for t in numbers)  # in other units, or with another bound
    return token._replace(key=f"{token.key}?") if otherwise else token


@lru_cache(maxsize=8)  # the vetoes ask for the same two again
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


def aligned(ours: Sequence[Token], theirs: Sequence[Token]) -> Pairs:
    """Returns the index pairs of the tokens that both have in one order."""
    return align(tuple(t.key for t in ours), tuple(t.key for t in theirs))


def _gaps(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs) -> list[Gap]:
    """Returns the places that differ.

    What the window has before and behind the claim does not count, but for the tokens that stand
    where the claim has others.
    """
    if not pairs:
        return [Gap(ours, theirs)]
    (lead, first), (end, last) = pairs[0], pairs[-1]
    tail = len(ours) - 1 - end
    head = range(max(0, first - lead - 1) if lead else first, first)
    found = [Gap(ours[:lead], theirs[head.start : head.stop])]
    for (i, j), (k, m) in pairwise(pairs):
        found.append(Gap(ours[i + 1 : k], theirs[j + 1 : m]))
    tail += 3 * (tail > 0 and ours[-1].kind == "letter")  # `ならない` for `よい`
    found.append(Gap(ours[end + 1 :], theirs[last + 1 : last + 2 + tail] if tail else ()))
    return [gap for gap in found if gap.ours or gap.theirs]


def turned_by_gap(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether one side denies where the other goes on: `did … expect` for `did not expect`.

    A long gap may hold a denial of its own, unless that is the first or last word left out.
    """
    for gap in _gaps(ours, theirs, aligned(ours, theirs)):
        edge = gap.theirs if len(gap.theirs) <= 4 else (gap.theirs[0], gap.theirs[-1])
        if any(t.kind == "not" for t in (*gap.ours, *edge)):
            return True
    return False
