"""Describe a block of text in numbers: itself, its neighbours, what is around it, the page.

The numbers are those from which `bench/extraction_fit.py` learned; a change here needs a new fit.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

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
_DIGITS, _UPPERS = b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LENGTHS = [f"#{words}" for words in range(7)]
_FIRST_WORDS = re.compile(r"(\w+)(?:\W+(\w+))?(?:\W+(\w+))?")
# Behind so many words a block says by itself what it is.
SHORT = 14
NEARLY_ALL = 0.9
# A block further from a heading is as far as any: the 900th paragraph is text as the 90th is.
FAR = 60.0


def text_names(text: str, words: int) -> list[str]:
    """The first words of a short block, as the model knows them: share, advertisement, by."""
    if words > SHORT:
        return []
    names = [_LENGTHS[min(words, 6)]]
    if found := _FIRST_WORDS.search(text[:60].lower()):
        first = [*filter(None, found.groups())]
        names += ["'" + word for word in first]
        if len(first) > 1:
            names.append(f"'{first[0]} {first[1]}")
    return names


def within(page: Layout, values: Floats) -> list[float]:
    """For each box the sum of the values of all blocks inside it."""
    sums = [0.0] * len(page.boxes)
    for block, value in zip(page.blocks, values, strict=True):
        sums[block.box] += value
    for at in range(len(sums) - 1, 0, -1):
        if part := sums[at]:
            sums[page.boxes[at].parent] += part
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
    for box, is_wrapper in zip(page.boxes, wrapped, strict=True):
        if (sums := known.get(box.names)) is None:
            path = near = 0.0
            for name in box.names:
                if name in weights:
                    weight = weights[name]
                    path += weight[0]
                    near += weight[1]
            sums = known[box.names] = (path, near)
        way = 0.0 if is_wrapper else sums[0]
        ways.append(way + ways[box.parent] if box.parent >= 0 else way)
        own.append(sums[1])
    own.append(0.0)  # of what is around the body, at index -1
    scores = []
    for block in page.blocks:
        at = block.box
        score = bias + ways[at] + own[at] + own[page.boxes[at].parent]
        if block.words <= SHORT:
            for name in text_names(block.text, block.words):
                if name in weights:
                    score += weights[name][1]
        scores.append(max(-12.0, min(12.0, score)))
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
    found += _of_guesses(guesses, words)
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
    letters = head.encode("ascii", "ignore")
    digits, uppers = letters.translate(None, _DIGITS), letters.translate(None, _UPPERS)
    return (len(letters) - len(digits)) / len(head), (len(letters) - len(uppers)) / len(head)


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


def _of_guesses(guesses: Sequence[float], words: list[float]) -> Columns:
    weights = [min(word, 60.0) + 1.0 for word in words]
    products = [guess * weight for guess, weight in zip(guesses, weights, strict=True)]
    return [guesses, *(around(products, weights, reach) for reach in (2, 8))]


def around(products: list[float], weights: list[float], reach: int) -> list[float]:
    """For each block the mean of a value over itself and `reach` blocks before and after it, from
    its products with the weights."""
    parts = zip(_sums(products, reach), _sums(weights, reach), strict=True)
    return [part / weight for part, weight in parts]


def _sums(values: list[float], reach: int) -> list[float]:
    """For each place the sum of the values up to `reach` places away."""
    sums, count = [0.0, *accumulate(values)], len(values)
    ends = [*sums[reach + 1 :], *[sums[-1]] * reach][:count]
    return [end - start for start, end in zip([0.0] * reach + sums, ends, strict=False)]


def _of_boxes(
    page: Layout, words: list[float], linked: list[float], total: float, ways: Sequence[int]
) -> Columns:
    boxes = page.boxes
    held, links, prose, inside = _held(page, words, linked)
    depth, repeats, main = _places(boxes, held, ways)
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
    parts = [
        (has, link / has, blocks, has / total, paragraphs) if has else ()
        for has, link, blocks, paragraphs in zip(held, links, inside, prose, strict=True)
    ]
    # Beyond the body there is the body again.
    parents = [box.parent if box.parent >= 0 else at for at, box in enumerate(boxes)]
    rows: dict[int, tuple[float, ...]] = {}
    found = []
    for block in page.blocks:
        at = block.box
        if (row := rows.get(at)) is None:
            up = parents[at]
            far = parents[up]
            row = rows[at] = (
                *(float(depth[at]), *of_group[ways[at]], float(repeats[at])),
                held[main[at]] / total if main[at] >= 0 else -1.0,
                *(*parts[at], *parts[up], *parts[far], *parts[parents[far]]),
            )
        found.append(row)
    return list(zip(*found, strict=True))


def _held(page: Layout, words: list[float], linked: list[float]) -> list[list[float]]:
    """For each box its words, those in links, its paragraphs and its blocks, with all inside it."""
    both = list(zip(words, linked, strict=True))
    links = [word * link for word, link in both]
    prose = [float(word >= 15 and link < 0.4) for word, link in both]
    return [within(page, values) for values in (words, links, prose, [1.0] * len(both))]


def _places(boxes: list[Box], held: list[float], ways: Sequence[int]) -> list[list[int]]:
    """For each box its depth, how often its like repeats, its main box."""
    alike = Counter([(box.parent, ways[at]) for at, box in enumerate(boxes) if held[at]])
    # The last entry of each is for what is around the body, at index -1.
    depth, repeats, main = [-1] * (len(boxes) + 1), [0] * (len(boxes) + 1), [-1] * (len(boxes) + 1)
    for at, box in enumerate(boxes):
        up = box.parent
        depth[at] = depth[up] + 1
        repeats[at] = max(repeats[up], alike[up, ways[at]] if held[at] else 0)
        is_main = box.tag in ("main", "article") or "r=main" in box.names
        main[at] = at if is_main else main[up]
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
        sum(w * link for w, link in zip(words, linked, strict=True)) / total,
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
