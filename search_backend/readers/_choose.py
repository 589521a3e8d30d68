"""Which blocks of a page are its main text: an additive guess by names, then a forest of trees.

The numbers lie in `main_text.json`, made by `bench/extraction_fit.py` from the development part of
a public benchmark. The trees are compiled to one Python function of the features of a block: that
takes a quarter of the time of walking them, and 40 ms once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from search_backend.readers._blocks import Layout
from search_backend.readers._features import Columns, columns, name_scores

# A leaf's value, or (feature, threshold, branch up to it, branch above it).
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"
# The sum of the leaves that a block reaches, from its features in the order of the columns.
Score: TypeAlias = Callable[..., float]
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
    score: Score
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
    score = compiled(data["trees"])
    low, below, above = data["cut"]
    return Model(path, near, data["bias"], score, (low, below, above))


def compiled(trees: Sequence[Tree]) -> Score:
    """One function for all trees; a block beyond CLEAR after some of them leaves early.

    Nothing but numbers goes from the model into the source that is compiled.
    """
    used: set[int] = set()
    sums = [f"    score += {_expression(tree, used)}" for tree in trees]
    for at in range((len(sums) - 1) // EARLY_TREES * EARLY_TREES, 0, -EARLY_TREES):
        sums.insert(at, f"    if not {-CLEAR!r} < score < {CLEAR!r}: return score")
    names = ", ".join(f"f{number}" for number in range(max(used, default=-1) + 1))
    lines = [f"def score_of({names}{', ' if names else ''}*_):", "    score = 0.0", *sums]
    space: dict[str, Any] = {}
    exec("\n".join([*lines, "    return score"]), space)
    score: Score = space["score_of"]
    return score


def _expression(tree: Tree, used: set[int]) -> str:
    if isinstance(tree, (int, float)):
        return repr(float(tree))
    number, most, small, large = tree
    used.add(int(number))
    yes, no = _expression(small, used), _expression(large, used)
    return f"({yes} if f{int(number)} <= {float(most)!r} else {no})"


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
    odds = likelihoods(columns(page, guesses, kind), by.score)
    words = [block.words for block in page.blocks]
    limit, below, above = by.cut
    hope = expected(odds, words)
    least = above if hope >= limit else below
    return Choice([i for i, odd in enumerate(odds) if odd > least], hope)


def likelihoods(features: Columns, score: Score) -> list[float]:
    """For each block how likely it is main text, 0 to 1."""
    return [1.0 / (1.0 + math.exp(-value)) for value in map(score, *features)]


def expected(odds: Sequence[float], words: Sequence[int]) -> float:
    """The best F1 that a cut through these odds is expected to have."""
    whole = sum(odd * word for odd, word in zip(odds, words, strict=True))
    right = taken = best = 0.0
    for odd, word in sorted(zip(odds, words, strict=True), reverse=True):
        right += odd * word
        taken += word
        best = max(best, 2 * right / (taken + whole))
    return best
