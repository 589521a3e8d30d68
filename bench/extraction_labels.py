"""Which blocks of a page are right, told from the right text of the page.

Most runs of four words of such a block stand in the right text. But a menu, a teaser or a share
button also holds words of the text, and a page may say the same thing in three places: so each
word of the right text can be used once. Long blocks choose first, then short ones; among those
the ones that stand among blocks which are surely right. Without this one label in six is wrong,
nearly all of them short blocks of menus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.extraction import WORD
from searchloop.search_backend.readers._html.blocks import Layout

RUN = 4
# A block with so many words is not found in a text by chance.
SURE = 6
# Of a block's words so many must be left in the right text.
LEAST_LEFT = 0.6
REACH = 6
MOST_WEIGHT = 40


def right_blocks(page: Layout, truth: str) -> list[bool]:
    """For each block of the page whether it belongs to `truth`."""
    wanted = WORD.findall(truth.lower())
    blocks = [WORD.findall(block.text.lower()) for block in page.blocks]
    found = _found(blocks, wanted)
    near = _nearness(blocks, found)
    order = sorted(
        (at for at, is_found in enumerate(found) if is_found),
        key=lambda at: (len(blocks[at]) < SURE, -near[at], at),
    )
    left = Counter(wanted)
    right = [False] * len(blocks)
    for at in order:
        words = Counter(blocks[at])
        if (words & left).total() > LEAST_LEFT * len(blocks[at]):
            right[at] = True
            left -= words
    return right


def _found(blocks: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[bool]:
    runs = {length: set(_runs(wanted, length)) for length in range(1, RUN + 1)}
    found = []
    for words in blocks:
        length = min(RUN, len(words))
        has = list(_runs(words, length)) if words else []
        found.append(sum(run in runs[length] for run in has) > len(has) / 2)
    return found


def _runs(words: Sequence[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[i : i + length]) for i in range(len(words) - length + 1))


def _nearness(blocks: Sequence[Sequence[str]], found: Sequence[bool]) -> list[float]:
    """For each block how much surely right text stands near it, less what is surely not."""
    weights = []
    for words, is_found in zip(blocks, found, strict=True):
        sure = len(words) >= SURE or not is_found
        weight = min(MOST_WEIGHT, len(words)) if sure else 0
        weights.append(weight if is_found else -weight)
    near = []
    for at in range(len(blocks)):
        low, high = max(0, at - REACH), min(len(blocks), at + REACH + 1)
        around = (weights[i] / (1 + abs(at - i)) for i in range(low, high) if i != at)
        near.append(sum(around))
    return near
