"""Describe a block of text in numbers: itself, its neighbours, what is around it, the page.

The numbers are those from which `bench/extraction_fit.py` learned; a change here needs a new fit.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, compress
from operator import itemgetter, mul, sub, truediv

from searchloop.search_backend.readers._html.blocks import Box, Layout

Floats = Sequence[float]
Columns = list[Floats]
# The weights of a name on the way to a block and next to it.
Weights = tuple[float, float]

LONG = 25
_TAGS = (
    "p li div td th h1 h2 h3 h4 h5 dt dd pre blockquote figcaption button label br section article "
    "main ul form header footer nav aside table details summary"
)
_TAG_NUMBER = {tag: float(number) for number, tag in enumerate(_TAGS.split())}
_ENDS = frozenset('.!?:;。”")…')
_KINDS = bytes.maketrans(b"123456789BCDEFGHIJKLMNOPQRSTUVWXYZ", b"0" * 9 + b"A" * 25)
_LENGTHS = [f"#{words}" for words in range(7)]
_first_words = re.compile(r"(\w++)\W*+(\w*+)\W*+(\w*+)").search
# Behind so many words a block says by itself what it is.
SHORT = 14
NEARLY_ALL = 0.9
# A block further from a heading is as far as any: the 900th paragraph is text as the 90th is.
FAR = 60.0
# So many boxes around a block are described.
LEVELS = 4


def text_names(text: str, words: int) -> list[str]:
    """The first words of a short block, as the model knows them: share, advertisement, by."""
    if words > SHORT:
        return []
    length = _LENGTHS[words if words < 6 else 6]
    if not (found := _first_words(text[:60].lower())):
        return [length]
    one, two, three = found.groups()
    if not two:
        return [length, "'" + one]
    names = [length, "'" + one, "'" + two, f"'{one} {two}"]
    return [*names, "'" + three] if three else names


def within(page: Layout, values: Floats) -> list[float]:
    """For each box the sum of the values of all blocks inside it."""
    sums = [0.0] * len(page.boxes)
    for block, value in zip(page.blocks, values, strict=True):
        sums[block.box] += value
    parents = page.parents
    for at in range(len(sums) - 1, 0, -1):
        if part := sums[at]:
            sums[parents[at]] += part
    return sums


def wrappers(page: Layout) -> list[bool]:
    """For each box whether it holds nearly all words; its names tell no block from another."""
    held = within(page, [block.words for block in page.blocks])
    least = NEARLY_ALL * held[0] if held else 0
    return [words >= least for words in held]


def name_scores(
    page: Layout, wrapped: Sequence[bool], weights: Mapping[str, Weights], bias: float
) -> list[float]:
    """A first guess for each block, by the names of the elements around it and its first words."""
    ways: list[float] = []
    own: list[float] = []
    known: dict[tuple[str, ...], tuple[float, float]] = {}
    for box, up, is_wrapper in zip(page.boxes, page.parents, wrapped, strict=True):
        if (sums := known.get(box.names)) is None:
            path = near = 0.0
            for name in box.names:
                if name in weights:
                    weight = weights[name]
                    path += weight[0]
                    near += weight[1]
            sums = known[box.names] = (path, near)
        way = 0.0 if is_wrapper else sums[0]
        ways.append(way + ways[up] if up >= 0 else way)
        own.append(sums[1])
    own.append(0.0)  # of what is around the body, at index -1
    scores = []
    for block in page.blocks:
        at = block.box
        score = bias + ways[at] + own[at] + own[page.parents[at]]
        if block.words <= SHORT:
            for name in text_names(block.text, block.words):
                if name in weights:
                    score += weights[name][1]
        scores.append(-12.0 if score < -12.0 else 12.0 if score > 12.0 else score)
    return scores


def same_ways(boxes: Sequence[Box]) -> list[int]:
    """For each box a number that it shares with all boxes of its names, inside like boxes."""
    found: list[int] = []
    for box in boxes:
        found.append(hash((found[box.parent] if box.parent >= 0 else 0, box.names)))
    return found


def columns(
    page: Layout, guesses: Sequence[float], ways: Sequence[int], of_all: Sequence[float]
) -> Columns:
    """One column a feature, one entry a block. `of_all` are facts of the whole page."""
    blocks = page.blocks
    words = [float(block.words) for block in blocks]
    linked = [block.linked for block in blocks]
    total = sum(words)
    found: Columns = [words, linked]
    found += _of_text(page)
    found += _of_neighbours(words, linked)
    weights = [word + 1.0 if word < 60.0 else 61.0 for word in words]
    products = list(map(mul, guesses, weights))
    found += [guesses, *(around(products, weights, reach) for reach in (2, 8))]
    found += _of_boxes(page, words, linked, total, ways)
    found += _of_page(page, words, linked, guesses, of_all)
    return found


def _of_text(page: Layout) -> Columns:
    shares = [_shares(block.text[:200]) for block in page.blocks]
    return [
        [len(block.text) / block.words for block in page.blocks],
        [1.0 if block.text[-1] in _ENDS else 0.0 for block in page.blocks],
        [share for share, _ in shares],
        [share for _, share in shares],
        [_TAG_NUMBER.get(page.boxes[block.box].tag, 40.0) for block in page.blocks],
    ]


def _shares(head: str) -> tuple[float, float]:
    """The shares of digits and of capitals among the first characters of a text."""
    kinds = head.encode("ascii", "ignore").translate(_KINDS)
    return kinds.count(b"0") / len(head), kinds.count(b"A") / len(head)


def _of_neighbours(words: list[float], linked: list[float]) -> Columns:
    count = len(words)
    long = [i for i in range(count) if words[i] >= LONG and linked[i] < 0.3]
    ahead, behind = [], []
    for i in range(count):
        at = bisect_left(long, i)
        ahead.append(float(long[at] - i) if at < len(long) else 99.0)
        last = at if at < len(long) and long[at] == i else at - 1
        behind.append(float(i - long[last]) if last >= 0 else 99.0)
    first, end = (long[0], long[-1]) if long else (-1, -1)
    return [
        [0.0, *words[:-1]],
        [0.0, *linked[:-1]],
        [*words[1:], 0.0],
        [*linked[1:], 0.0],
        [0.0, 0.0, *words[:-2]][:count],
        [*words[2:], 0.0, 0.0][:count],
        ahead,
        behind,
        [(i - first) / count for i in range(count)],
        [(i - end) / count for i in range(count)],
    ]


def distances(count: int, at: int) -> list[float]:
    """How many blocks each block of a page stands behind one, FAR at most either way."""
    far = int(FAR)
    near = range(max(0, at - far), min(count, at + far))
    after = [FAR] * (count - near.stop)
    return [-FAR] * near.start + [float(other - at) for other in near] + after


def around(products: list[float], weights: list[float], reach: int) -> list[float]:
    """For each block the mean of a value over itself and `reach` blocks before and after it, from
    its products with the weights."""
    return list(map(truediv, _sums(products, reach), _sums(weights, reach)))


def _sums(values: list[float], reach: int) -> list[float]:
    """For each place the sum of the values up to `reach` places away."""
    sums, count = [0.0, *accumulate(values)], len(values)
    ends = [*sums[reach + 1 :], *[sums[-1]] * reach][:count]
    return list(map(sub, ends, [0.0] * reach + sums))


def _of_boxes(
    page: Layout, words: list[float], linked: list[float], total: float, ways: Sequence[int]
) -> Columns:
    held, links, prose, inside = _held(page, words, linked)
    depth, repeats, main = _places(page, held, ways)
    groups: dict[int, list[float]] = {}
    for block, word, link in zip(page.blocks, words, linked, strict=True):
        sums = groups.setdefault(ways[block.box], [0.0, 0.0, 0.0])
        sums[0] += 1
        sums[1] += word
        sums[2] += word * link
    of_group = {
        way: (count, word / count, link / word, word / total)
        for way, (count, word, link) in groups.items()
    }
    near = [block.box for block in page.blocks]
    alike = zip(*[of_group[ways[at]] for at in near], strict=True)
    found: Columns = [*picked([depth], near), *alike, *picked([repeats, main], near)]
    in_links = [link / has if has else 0.0 for has, link in zip(held, links, strict=True)]
    parts = [held, in_links, inside, [has / total for has in held], prose]
    parents = [0, *page.parents[1:]]  # beyond the body there is the body again
    for _ in range(LEVELS):
        found += picked(parts, near)
        near = [parents[at] for at in near]
    return found


def picked(found: Sequence[Floats], asked: Sequence[int]) -> Columns:
    """The entries of these numbers."""
    pick = itemgetter(*asked, 0)  # of one alone it makes no tuple
    return [pick(column)[:-1] for column in found]


def _held(page: Layout, words: list[float], linked: list[float]) -> list[list[float]]:
    """For each box its words, those in links, its paragraphs and its blocks, with all inside it."""
    prose = [float(word >= 15 and link < 0.4) for word, link in zip(words, linked, strict=True)]
    links = list(map(mul, words, linked))
    return [within(page, values) for values in (words, links, prose, [1.0] * len(words))]


def _places(page: Layout, held: list[float], ways: Sequence[int]) -> list[list[float]]:
    """For each box its depth, how often its like repeats, the share of words of its main box."""
    kinds = list(zip(page.parents, ways, strict=True))
    alike = Counter(compress(kinds, held))
    # The last entry of each is for what is around the body, at index -1.
    depth, repeats, main = ([start] * (len(held) + 1) for start in (-1.0, 0.0, -1.0))
    for at, (box, kind) in enumerate(zip(page.boxes, kinds, strict=True)):
        if held[at]:
            up, often = kind[0], float(alike[kind])
            depth[at] = depth[up] + 1.0
            repeats[at] = often if often > repeats[up] else repeats[up]
            is_main = box.tag in ("main", "article") or "r=main" in box.names
            main[at] = held[at] / held[0] if is_main else main[up]
    return [depth, repeats, main]


def _of_page(
    page: Layout, words: list[float], linked: list[float], guesses: Floats, of_all: Floats
) -> Columns:
    count, total = len(words), sum(words)
    long = [w for w, link in zip(words, linked, strict=True) if w >= LONG and link < 0.3]
    heading = next(
        (i for i, block in enumerate(page.blocks) if page.boxes[block.box].tag == "h1"), None
    )
    of_page = (
        math.log1p(total),
        sum(map(mul, words, linked)) / total,
        math.log1p(count),
        len(long) / count,
        sum(long) / total,
        sum(g * min(w, 60.0) for g, w in zip(guesses, words, strict=True)) / total,
        max(guesses),
        *of_all,
    )
    before = [0.0, *accumulate(words[:-1])]
    return [
        [i / count for i in range(count)],
        [word / total for word in before],
        [-999.0] * count if heading is None else distances(count, heading),
        *([value] * count for value in of_page),
    ]
