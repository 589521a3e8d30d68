"""Finds what a claim works out from two numbers of the page: a sum, a share, a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from searchloop.agent.verdicts.numbers import MONTH, Number, is_year
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token

_ROWS, _NUMBERS = 40, 12  # of tables that are looked at, and numbers of one sentence or cell
_FEW = 4  # numbers of a sentence that is held against others: many give anything by chance
_COUNTED = 100  # numbers up to this without a unit are days, or come out by chance
_BOUND = 1.05  # times a bound that tells something
_NEARLY = 0.4  # of the words that the best two places hold: less gives anything by chance
_LOOSE, _EXACT = 0.05, 0.02  # share that rounding may take, with "about" and without


class Side(NamedTuple):
    """Numbers of the page, and what stands beside them: a sentence, or a cell with its heads."""

    sentence: int
    said: list[Token]
    numbers: list[Number]


class Pair(NamedTuple):
    """Where the page gives a number, as it stands or worked out from two."""

    one: Side
    other: Side
    worked: bool


def derived(
    wanted: Number, page: Page, near: Sequence[int], weights: Mapping[str, float]
) -> Pair | None:
    """Returns where the page gives the number of a claim, or two numbers that give it, if anywhere.

    Two places must each hold something of the claim that the other does not, and nearly as much of
    it as any two.
    """
    if wanted.value <= (0 if wanted.unit else _COUNTED) or is_year(wanted.value):
        return None
    pairs, plain = list(_sides(page, near)), wanted._replace(kind="")
    sides = {id(side): side for *both, _ in pairs for side in both}
    for side in sides.values():
        if any(n.unit == wanted.unit and plain.held_by(n) for n in side.numbers):
            return Pair(side, side, False)
    held = {key: weights.keys() & {t.key for t in side.said} for key, side in sides.items()}
    found: list[tuple[float, Side, Side, bool]] = []
    for one, other, grew in pairs:
        mine, theirs = held[id(one)], held[id(other)]
        if one.sentence == other.sentence or (mine - theirs and theirs - mine):
            found.append((sum(weights[key] for key in mine | theirs), one, other, grew))
    most = max((cover for cover, *_ in found), default=0.0)
    for cover, one, other, grew in sorted(found, key=lambda each: -each[0]):
        if cover < _NEARLY * most:
            return None
        same = one is other
        numbers = combinations(one.numbers, 2) if same else product(one.numbers, other.numbers)
        if any(_gives(wanted, a, b, grew) for a, b in numbers):
            return Pair(one, other, True)
    return None


def _sides(page: Page, near: Sequence[int]) -> Iterator[tuple[Side, Side, bool]]:
    """Yields two cells of a row (True: one grew into the other), of a column, and what is near."""
    places = {k + by for k in near for by in (-1, 0, 1) if 0 <= k + by < len(page.spans)}
    rows = []
    for k in sorted(page.rows)[:_ROWS]:
        label, *cells = page.cells(k)
        heads = [[*label.said, *cell.head, *cell.said] for cell in cells]
        rows.append([Side(k, said, _numbers(c.said)) for said, c in zip(heads, cells, strict=True)])
    for row in rows:
        yield from ((*pair, True) for pair in combinations(row, 2))
    for above, below in combinations(rows, 2):
        yield from ((*pair, False) for pair in zip(above, below, strict=False))
    sides = [Side(k, page.tokens(k), _numbers(page.tokens(k))) for k in places - page.rows.keys()]
    sides = sorted(side for side in sides if side.numbers)
    yield from ((side, side, False) for side in sides)
    sides = [side for side in sides if len(side.numbers) <= _FEW]
    yield from ((*pair, False) for pair in combinations(sides, 2))


def _numbers(tokens: Sequence[Token]) -> list[Number]:
    found = (t.number for t in tokens if t.number and t.number.unit != MONTH)
    return [number for number in found if number.value > 0][:_NUMBERS]


def _gives(wanted: Number, one: Number, other: Number, grew: bool) -> bool:
    high, low = (one, other) if one.value >= other.value else (other, one)
    if wanted.unit in ("%", "times"):
        return _share(wanted, high, low, grew)
    values: list[tuple[float, str]] = []
    for count, whole in ((one, other), (other, one)):
        if count.unit == "%" != whole.unit and count.value < 100:
            percent = (count.value, 100 - count.value)
            values += [(whole.value * each / 100, whole.unit) for each in percent]
        elif not count.unit and 1 < count.value <= _COUNTED and count.value % 1 == 0:
            times = (whole.value * count.value, whole.value / count.value)
            values += [(each, whole.unit) for each in times]
    if one.unit == other.unit:
        measure = "pp" if one.unit == "%" else one.unit  # percent differ by percentage points
        values += [(high.value - low.value, measure), (high.value + low.value, one.unit)]
    return any(_is(wanted, value, unit) for value, unit in values)


def _share(wanted: Number, high: Number, low: Number, grew: bool) -> bool:
    """Tells whether the two numbers of one measure stand in this relation."""
    measures = {high.unit, low.unit} - {""}
    by = high.value / low.value
    if len(measures) > 1:
        return False
    if wanted.unit == "times":
        return _is(wanted, by, "times")
    changes = [abs(by - 1), abs(1 - 1 / by)]
    return any(_is(wanted, 100 * v, "%") for v in changes + [min(by, 1 / by)] * (not grew))


def _is(wanted: Number, value: float, unit: str) -> bool:
    mine, given, _ = wanted.beside(Number(value, unit)) or (1, 0, 0)
    if value <= 0 or not mine * given:
        return False
    if wanted.kind in ("more", "less"):
        share = given / mine if wanted.kind == "more" else mine / given
        return 1 < share <= _BOUND
    written, most = (wanted.zeros(), _LOOSE) if wanted.kind else (wanted.step, _EXACT)
    slack = min(written * mine / wanted.value / 2, most * mine)
    return abs(mine - given) <= max(1e-9 * mine, slack)
