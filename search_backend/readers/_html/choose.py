"""Choose the blocks of a page that are its main text: a guess by names, then a forest of trees.

The forest sees how a block and its neighbours look. What is main text depends on the sort of the
page: a list of links is a menu on one and the contents of another.

The numbers lie in `main_text.json`, which `bench/extraction_fit.py` made from the development part
of a public benchmark; a change of a feature needs a new fit. The trees are compiled to one Python
function: that takes a quarter of the time of walking them, and 40 ms once.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import mul
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from searchloop.search_backend.readers._html.blocks import COMMENTS, Layout, roles
from searchloop.search_backend.readers._html.features import (
    Weights,
    columns,
    name_scores,
    same_ways,
    wrappers,
)
from searchloop.search_backend.readers._html.parts.complete import once, with_parts


def expected(odds: Sequence[float], words: Sequence[int]) -> float:
    """The best F1 that a cut through these odds is expected to have."""
    whole = sum(map(mul, odds, words))
    right = taken = best = 0.0
    for odd, word in sorted(zip(odds, words, strict=True), reverse=True):
        right += odd * word
        taken += word
        if (found := 2 * right / (taken + whole)) > best:
            best = found
    return best


GENRES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
_WORDS = re.compile(r"[a-z0-9]+")
MOST_SEGMENTS = 5


def page_names(page: Layout, url: str, kind: int) -> set[str]:
    """All by which the model knows a page. `kind` is what the page says it is."""
    names = page.names
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return {*names, f"kind {kind}"}
    segments = [part for part in parts.path.split("/") if part]
    words = _WORDS.findall(parts.path)
    return {
        *names,
        *("/#" if word.isdigit() else f"/{word}" for word in words),
        *(f"host {part}" for part in parts.netloc.split(".")),
        f"/ {min(len(segments), MOST_SEGMENTS)}",
        f"kind {kind}",
    }


def genre(names: set[str], weights: Mapping[str, Sequence[float]]) -> list[float]:
    """The likelihood of each of GENRES, 0 to 1. `weights[""]` counts for all pages."""
    rows = [weights[name] for name in ("", *names) if name in weights]
    sums = [sum(column) for column in zip(*rows, strict=True)] or [0.0] * len(GENRES)
    most = max(sums)
    powers = [math.exp(total - most) for total in sums]
    whole = sum(powers)
    return [power / whole for power in powers]


# A leaf's value, or (feature, threshold, branch up to it, branch above it).
Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"
# The sum of the leaves that a block reaches, from its features in the order of the columns.
Score: TypeAlias = Callable[..., float]
ARTICLE, FORUM = GENRES.index("article"), GENRES.index("forum")
# Of a page that may be a forum, the terms tell of its users.
LIKE_FORUM = 0.3
# An article that promises less is hardly one.
LEAST_FOR_ARTICLE = 0.55
# Below what is this likely an article, with so many words of its own, comments are furniture.
SURE_ARTICLE = 0.8
LEAST_ARTICLE = 50
# So many blocks in like places are taken or left together.
MANY = 20


@dataclass(frozen=True, slots=True)
class About:
    """The kind of a page, by its own words (see `about.kind`), and its address."""

    kind: int
    url: str


@dataclass(frozen=True, slots=True)
class Model:
    """The weights of names, in the first guess and for the sort of a page, and the forest.

    `cut` holds what a block of an article must reach to be kept, and what one of another page must
    reach: shares of the F1 that the page is expected to have. So none of blocks that are all alike
    is left out.
    """

    names: dict[str, Weights]
    bias: float
    genres: dict[str, tuple[float, ...]]
    forest: Score
    cut: tuple[float, float]


@cache
def model() -> Model:
    """The model of this package, from `main_text.json`; read once."""
    data: dict[str, Any] = json.loads((files(__package__) / "main_text.json").read_text("ascii"))
    return Model(
        names={name: tuple(weights) for name, weights in data["names"].items()},
        bias=data["bias"],
        genres={name: tuple(weights) for name, weights in data["genres"].items()},
        forest=compiled(data["forest"]),
        cut=tuple(data["cut"]),
    )


def compiled(trees: Sequence[Tree]) -> Score:
    """One function for all trees. Nothing but numbers goes from the model into its source."""
    used: set[int] = set()
    sums = [f"    score += {_expression(tree, used)}" for tree in trees]
    names = ", ".join(f"f{number}" for number in range(max(used, default=-1) + 1))
    lines = [f"def score_of({names}{', ' if names else ''}*_):", "    score = 0.0", *sums]
    space: dict[str, Any] = {}
    exec("\n".join([*lines, "    return score"]), space)  # noqa: S102 - numbers of our own file
    score: Score = space["score_of"]
    return score


def _expression(tree: Tree, used: set[int]) -> str:
    if isinstance(tree, (int, float)):
        return repr(float(tree))
    number, most, small, large = tree
    used.add(int(number))
    yes, no = _expression(small, used), _expression(large, used)
    return f"({yes} if f{int(number)} <= {float(most)!r} else {no})"


def chosen(page: Layout, about: About, by: Model | None = None) -> list[int]:
    """The indexes of the blocks that are main text, in order."""
    if not page.blocks:
        return []
    by = by or model()
    sort = genre(page_names(page, about.url, about.kind), by.genres)
    wrapped = wrappers(page)
    guesses = name_scores(page, wrapped, by.names, by.bias)
    ways = same_ways(page.boxes)
    parts = roles(page, wrapped)
    found = columns(page, guesses, ways, (about.kind, *sort)) + parts
    scores = list(map(by.forest, *found))
    odds = likelihoods(alike(page, scores, ways))
    hope = expected(odds, [block.words for block in page.blocks])
    is_article = sort[ARTICLE] > 0.5 and hope >= LEAST_FOR_ARTICLE
    least = by.cut[0 if is_article else 1] * hope
    kept = [i for i, odd in enumerate(odds) if odd > least]
    kept = once(page, with_parts(page, kept, parts, sort[FORUM] > LIKE_FORUM), ways)
    if sort[ARTICLE] > SURE_ARTICLE:
        kept = without_comments(page, kept, parts[COMMENTS])
    return kept


def alike(page: Layout, scores: list[float], ways: Sequence[int]) -> list[float]:
    """The scores, with one for all blocks of a kind of place that has many: its mean.

    The forest knows few pages of so many blocks; to it the end of such a page looks like an end.
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


def likelihoods(scores: Sequence[float]) -> list[float]:
    """For each block how likely it is main text, 0 to 1."""
    return [1.0 / (1.0 + math.exp(-score)) for score in scores]
