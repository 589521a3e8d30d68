"""How a block fits into what a first look at the page took for main text, in numbers.

The numbers are those from which `bench/extraction_fit.py` learned; a change here needs a new fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from search_backend.readers._blocks import Box, Layout
from search_backend.readers._features import Columns, around, within

# Shares of the main text that make a box its home.
MOST, HALF = 0.8, 0.55


def context(page: Layout, odds: Sequence[float], ways: Sequence[int]) -> Columns:
    """One column a feature, one entry a block. `odds` are those of a first look, `ways` by box."""
    weights = [min(block.words, 60) + 1.0 for block in page.blocks]
    mass = [odd * weight for odd, weight in zip(odds, weights, strict=True)]
    often = Counter(block.text for block in page.blocks)
    return [
        odds,
        *_of_boxes(page, mass, weights, ways),
        *_of_neighbours(odds, mass, weights),
        *_of_run(odds, mass, weights),
        *_of_page(odds, [block.words for block in page.blocks]),
        [float(often[block.text]) for block in page.blocks],
    ]


def best_run(odds: Sequence[float], weights: Sequence[float]) -> tuple[int, int, float]:
    """(first, last, gain) of the run of blocks in which main text outweighs the rest most."""
    gain = best = 0.0
    begun = first = last = 0
    for at, (odd, weight) in enumerate(zip(odds, weights, strict=True)):
        gain += (odd - 0.5) * weight
        if gain <= 0.0:
            gain, begun = 0.0, at + 1
        elif gain > best:
            best, first, last = gain, begun, at
    return first, last, best


def _of_boxes(
    page: Layout, mass: list[float], weights: list[float], ways: Sequence[int]
) -> Columns:
    boxes = page.boxes
    own, own_weight = _sums(page, mass), _sums(page, weights)
    held, held_weight = _with_inside(boxes, own), _with_inside(boxes, own_weight)
    total = held[0]
    in_most, in_half, out = _homes(boxes, held)
    group, group_weight = dict[int, float](), dict[int, float]()
    for block, part, weight in zip(page.blocks, mass, weights, strict=True):
        way = ways[block.box]
        group[way] = group.get(way, 0.0) + part
        group_weight[way] = group_weight.get(way, 0.0) + weight
    # The last entry of each is for what is beyond the body, at index -1.
    parents = [*(box.parent for box in boxes), -1]
    levels = [
        part / weight if weight else 0.0 for part, weight in zip(held, held_weight, strict=True)
    ]
    levels.append(-1.0)
    shares = [*(part / total for part in held), 1.0]
    rows: dict[int, tuple[float, ...]] = {}
    found = []
    for block in page.blocks:
        at = block.box
        if (row := rows.get(at)) is None:
            up, way = parents[at], ways[at]
            far = parents[up]
            row = rows[at] = (
                *(own[at] / own_weight[at], levels[at], levels[up], levels[far]),
                *(levels[parents[far]], group[way] / group_weight[way], group[way] / total),
                *(shares[at], shares[up], shares[far], in_most[at], in_half[at], out[at]),
            )
        found.append(row)
    return list(zip(*found, strict=True))


def _sums(page: Layout, values: list[float]) -> list[float]:
    """For each box the sum of what its own blocks have."""
    sums = [0.0] * len(page.boxes)
    for block, value in zip(page.blocks, values, strict=True):
        sums[block.box] += value
    return sums


def _with_inside(boxes: list[Box], own: list[float]) -> list[float]:
    """For each box the sum of its own and of all boxes inside it."""
    sums = own[:]
    for at in range(len(sums) - 1, 0, -1):
        if sums[at]:
            sums[boxes[at].parent] += sums[at]
    return sums


def _homes(boxes: list[Box], held: list[float]) -> tuple[list[float], list[float], list[float]]:
    """How deep each box lies inside the home of most main text, of half of it, and outside that."""
    most, half = MOST * held[0], HALF * held[0]
    homes = [
        max((at for at, part in enumerate(held) if part >= least), default=0)
        for least in (most, half)
    ]
    inside: list[list[float]] = []
    for home in homes:
        depth: list[float] = []
        for at, box in enumerate(boxes):
            above = depth[box.parent] if box.parent >= 0 else 0.0
            depth.append(1.0 if at == home else above + 1.0 if above else 0.0)
        inside.append(depth)
    out: list[float] = []
    for at, box in enumerate(boxes):
        out.append(0.0 if held[at] >= half or box.parent < 0 else out[box.parent] + 1.0)
    return inside[0], inside[1], out


def _of_neighbours(odds: Sequence[float], mass: list[float], weights: list[float]) -> Columns:
    count = len(odds)
    return [
        [0.0, *odds[:-1]],
        [*odds[1:], 0.0],
        [0.0, 0.0, *odds[:-2]][:count],
        [*odds[2:], 0.0, 0.0][:count],
        *(around(mass, weights, reach) for reach in (2, 5, 15)),
    ]


def _of_run(odds: Sequence[float], mass: list[float], weights: list[float]) -> Columns:
    first, last, gain = best_run(odds, weights)
    before = [0.0, *accumulate(weights)]
    whole, total = before.pop(), sum(mass)
    passed = [0.0, *accumulate(mass[:-1])]
    count = range(len(odds))
    return [
        [within(at - first) for at in count],
        [within(at - last) for at in count],
        [(at - before[first]) / whole for at in before],
        [(at - before[last]) / whole for at in before],
        [part / total for part in passed],
        [gain / total] * len(odds),
    ]


def _of_page(odds: Sequence[float], words: list[int]) -> Columns:
    whole = sum(words)
    hoped = sum(odd * word for odd, word in zip(odds, words, strict=True))
    hope = expected(odds, words)
    alike = [[value] * len(odds) for value in (hope, hoped, hoped / whole)]
    return [*alike, [odd - hope / 2 for odd in odds]]


def expected(odds: Sequence[float], words: Sequence[int]) -> float:
    """The best F1 that a cut through these odds is expected to have."""
    whole = sum(odd * word for odd, word in zip(odds, words, strict=True))
    right = taken = best = 0.0
    for odd, word in sorted(zip(odds, words, strict=True), reverse=True):
        right += odd * word
        taken += word
        best = max(best, 2 * right / (taken + whole))
    return best
