"""Which blocks of a page are its main text: a guess by names, then two forests of trees.

The first forest sees how a block and its neighbours look, the second also how the block fits into
what the first one took. The mean of their scores counts.

The numbers lie in `main_text.json`, made by `bench/extraction_fit.py` from the development part of
a public benchmark. The trees are compiled to one Python function of the features of a block: that
takes a quarter of the time of walking them, and 40 ms once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from search_backend.readers._blocks import Layout
from search_backend.readers._context import context, expected
from search_backend.readers._features import (
    Weights,
    columns,
    name_scores,
    same_ways,
    wrappers,
)
from search_backend.readers._genre import GENRES, genre, page_names
from search_backend.readers._roles import COMMENTS, roles

# A leaf's value, or (feature, threshold, branch up to it, branch above it).
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"
# The sum of the leaves that a block reaches, from its features in the order of the columns.
Score: TypeAlias = Callable[..., float]
# Every so many trees, blocks beyond this score are not argued about any more.
EARLY_TREES = 12
CLEAR = 2.2
# A page in more blocks is looked at once: the second look would take as long again.
MOST_FOR_SECOND = 2_000
ARTICLE = GENRES.index("article")
# An article that promises less is hardly one.
LEAST_FOR_ARTICLE = 0.55
# Below what is this likely an article, with so many words of its own, comments are furniture.
SURE_ARTICLE = 0.8
LEAST_ARTICLE = 50
# So many blocks in like places are taken or left together.
MANY = 100
# So many words stand in two places of different make for two screens, or are quoted.
LEAST_TWICE = 6
_REPEATS = frozenset(("td", "th", "pre"))


@dataclass(frozen=True, slots=True)
class About:
    """What a page tells of itself: its kind (see `_about.kind`) and its address."""

    kind: int
    url: str


@dataclass(frozen=True, slots=True)
class Model:
    """What weighs in the first guess and in what sort of page it is, and the two forests.

    `cut` holds what a block of an article must reach to be kept, and what one of another page must
    reach: shares of the F1 that the page is expected to have. So none of blocks that are all alike
    is left out.
    """

    names: dict[str, Weights]
    bias: float
    genres: dict[str, list[float]]
    first: Score
    second: Score
    cut: tuple[float, float]


@cache
def model() -> Model:
    """The model of this package; read once."""
    data = json.loads((files(__package__) / "main_text.json").read_text("ascii"))
    return parse(data)


def parse(data: dict[str, Any]) -> Model:
    """The model in the shape of `main_text.json`."""
    return Model(
        names={name: tuple(weights) for name, weights in data["names"].items()},
        bias=data["bias"],
        genres=data["genres"],
        first=compiled(data["first"]),
        second=compiled(data["second"]),
        cut=tuple(data["cut"]),
    )


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


def chosen(page: Layout, about: About, by: Model | None = None) -> Choice:
    """The main text of a page: a look at each block, then a look at how it fits what was found."""
    if not page.blocks:
        return Choice([], 0.0)
    by = by or model()
    sort = genre(page_names(page, about.url, about.kind), by.genres)
    wrapped = wrappers(page)
    guesses = name_scores(page, wrapped, by.names, by.bias)
    ways = same_ways(page.boxes)
    parts = roles(page, wrapped)
    found = columns(page, guesses, ways, (about.kind, *sort)) + parts
    first = scores = list(map(by.first, *found))
    if len(page.blocks) <= MOST_FOR_SECOND:
        second = map(by.second, *found, *context(page, likelihoods(first), ways))
        # Each look errs where the other does not.
        scores = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    odds = likelihoods(alike(page, scores, ways))
    hope = expected(odds, [block.words for block in page.blocks])
    is_article = sort[ARTICLE] > 0.5 and hope >= LEAST_FOR_ARTICLE
    least = by.cut[0 if is_article else 1] * hope
    kept = once(page, [i for i, odd in enumerate(odds) if odd > least], ways)
    if sort[ARTICLE] > SURE_ARTICLE:
        kept = without_comments(page, kept, parts[COMMENTS])
    return Choice(kept, hope)


def alike(page: Layout, scores: list[float], ways: Sequence[int]) -> list[float]:
    """The scores, with one for all blocks of a kind of place that has many: its mean.

    The models know few pages of so many blocks; to them the end of such a page looks like an end.
    """
    places = [ways[block.box] for block in page.blocks]
    many = {way for way, count in Counter(places).items() if count >= MANY}
    if not many:
        return scores
    sums = dict.fromkeys(many, (0.0, 0.0))
    for way, score, block in zip(places, scores, page.blocks, strict=True):
        if way in many:
            weight = min(block.words, 60) + 1.0
            total, whole = sums[way]
            sums[way] = (total + score * weight, whole + weight)
    means = {way: total / whole for way, (total, whole) in sums.items()}
    return [means.get(way, score) for way, score in zip(places, scores, strict=True)]


def without_comments(page: Layout, kept: list[int], comments: Sequence[float]) -> list[int]:
    """Without the blocks inside comments, if there is a text that they are about."""
    text = [at for at in kept if not comments[at]]
    return text if sum(page.blocks[at].words for at in text) >= LEAST_ARTICLE else kept


def once(page: Layout, kept: list[int], ways: Sequence[int]) -> list[int]:
    """Without blocks that say again what one before them said, in a place of another make.

    What repeats itself in like places means to, and so do tables and code.
    """
    first: dict[str, int] = {}
    found = []
    for at in kept:
        block = page.blocks[at]
        if block.words >= LEAST_TWICE:
            way = ways[block.box]
            if first.setdefault(block.text, way) != way and not _repeats(page, block.box):
                continue
        found.append(at)
    return found


def _repeats(page: Layout, at: int) -> bool:
    box = page.boxes[at]
    return box.tag in _REPEATS or (box.parent >= 0 and page.boxes[box.parent].tag in _REPEATS)


def likelihoods(scores: Sequence[float]) -> list[float]:
    """For each block how likely it is main text, 0 to 1."""
    return [1.0 / (1.0 + math.exp(-score)) for score in scores]
