"""Which blocks of a page are its main text: an additive guess by names, then a forest of trees.

The numbers lie in `main_text.json`, made by `bench/extraction_fit.py` from the development part of
a public benchmark. Trees are walked by all blocks of a page at once, a list of blocks a branch: in
Python that takes half the time of walking block by block.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from search_backend.readers._blocks import Layout
from search_backend.readers._features import Columns, columns, name_scores

# A leaf's value, or (feature, threshold, branch up to it, branch above it).
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"
# Every so many trees, blocks beyond this score are not argued about any more.
EARLY_TREES = 12
CLEAR = 2.2


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of names on the way to a block (`path`) and next to it (`near`), and the forest.

    `cut` is (expected F1, cut below it, cut from it on): a page that is clear may be choosy.
    """

    path: dict[str, float]
    near: dict[str, float]
    bias: float
    trees: tuple[Tree, ...]
    cut: tuple[float, float, float]


@cache
def model() -> Model:
    """The model of this package; read once."""
    data = json.loads((files(__package__) / "main_text.json").read_text("ascii"))
    return parse(data)


def parse(data: dict[str, Any]) -> Model:
    """The model in the shape of `main_text.json`."""
    path = {name: pair[0] for name, pair in data["names"].items()}
    near = {name: pair[1] for name, pair in data["names"].items()}
    trees = tuple(_tree(tree) for tree in data["trees"])
    low, below, above = data["cut"]
    return Model(path, near, data["bias"], trees, (low, below, above))


def _tree(data: Any) -> Tree:
    if isinstance(data, list):
        return (data[0], data[1], _tree(data[2]), _tree(data[3]))
    return float(data)


@dataclass(frozen=True, slots=True)
class Choice:
    """Indexes of the blocks that are main text, in order, and the F1 they are expected to have."""

    blocks: list[int]
    expected: float


def chosen(page: Layout, kind: int, by: Model | None = None) -> Choice:
    """The main text of a page that says it is of this `kind` (see `_about.kind`)."""
    if not page.blocks:
        return Choice([], 0.0)
    by = by or model()
    guesses = name_scores(page, by.path, by.near, by.bias)
    odds = likelihoods(columns(page, guesses, kind), by.trees)
    words = [block.words for block in page.blocks]
    limit, below, above = by.cut
    hope = expected(odds, words)
    least = above if hope >= limit else below
    return Choice([i for i, odd in enumerate(odds) if odd > least], hope)


def likelihoods(features: Columns, trees: Sequence[Tree]) -> list[float]:
    """For each block how likely it is main text, 0 to 1."""
    scores = [0.0] * len(features[0])
    waiting = list(range(len(scores)))
    for number, tree in enumerate(trees):
        if number and number % EARLY_TREES == 0:
            waiting = [i for i in waiting if -CLEAR < scores[i] < CLEAR]
        for value, blocks in _leaves(tree, waiting, features):
            for i in blocks:
                scores[i] += value
    return [1.0 / (1.0 + math.exp(-score)) for score in scores]


def _leaves(tree: Tree, blocks: list[int], features: Columns) -> Iterator[tuple[float, list[int]]]:
    stack = [(tree, blocks)]
    while stack:
        tree, blocks = stack.pop()
        if not blocks:
            continue
        if isinstance(tree, float):
            yield tree, blocks
            continue
        number, most, small, large = tree
        column = features[number]
        stack.append((small, [i for i in blocks if column[i] <= most]))
        stack.append((large, [i for i in blocks if column[i] > most]))


def expected(odds: Sequence[float], words: Sequence[int]) -> float:
    """The best F1 that a cut through these odds is expected to have."""
    whole = sum(odd * word for odd, word in zip(odds, words, strict=True))
    right = taken = best = 0.0
    for odd, word in sorted(zip(odds, words, strict=True), reverse=True):
        right += odd * word
        taken += word
        best = max(best, 2 * right / (taken + whole))
    return best
