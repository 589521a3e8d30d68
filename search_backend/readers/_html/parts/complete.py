"""What belongs to a text though it looks least like one: last steps, code, captions and notes.

The models choose by looks. Here counts where a block stands: in a list of which most is kept, or in
the box that holds the text. What is said twice is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchloop.search_backend.readers._html.blocks import Box, Layout
from searchloop.search_backend.readers._html.features import within
from searchloop.search_backend.readers._html.parts import NAMES, WORDS

# So many words stand in two places of different make for two screens, or are quoted.
LEAST_TWICE = 6
_REPEATS = frozenset(("td", "th", "pre"))
# What stays wherever it stands in a text, but terms in a forum.
_PARTS = frozenset(("pre", "figcaption", "caption", "th", "td", "summary", "dt", "dd"))
_TERMS = frozenset(("dt", "dd"))
NOTES = NAMES["notes"]
_CORRECTIONS, _LONGEST_CORRECTION = NAMES["corrections"], 150  # words
_corrects = re.compile(rf"(?i)\W*(?:{WORDS['corrects']})").match
# The box of a text has this share of it, and the text this share of the words of its box.
HOME, MOSTLY = 0.9, 0.75
# The caption of a picture is beside the text, but for a sentence of facts.
_FACT_BLANKS = 2


def with_parts(
    page: Layout, kept: list[int], roles: Sequence[Sequence[float]], is_forum: bool
) -> list[int]:
    """Returns `kept` with the code, tables, captions, terms and notes of the box around the text.

    `roles` are columns of `blocks.roles`: what lies in a part that no text does is beside it.
    """
    boxes, blocks, found = page.boxes, page.blocks, set(kept)
    with_data = {box.parent for box in boxes if box.tag in ("table", "pre")}
    tags = _PARTS - _TERMS if is_forum else _PARTS
    inside = {
        at
        for at, block in enumerate(blocks)
        if (boxes[block.box].tag in tags or block.text[:2] == "$$")
        and at not in found
        and _is_part(block.text, boxes[block.box], with_data)
    }
    words = [block.words * (at not in inside) for at, block in enumerate(blocks)]
    taken = within(page, [count * (at in found) for at, count in enumerate(words)])
    others = within(page, [count * (at not in found) for at, count in enumerate(words)])
    home = max((at for at, words in enumerate(taken) if words >= HOME * taken[0]), default=0)
    if others[home] * MOSTLY > taken[home] * (1 - MOSTLY):
        return kept
    linked = within(page, [block.words * (block.linked - 0.5) for block in blocks])
    beside = [role for role in roles[: len(roles) // 2 - 1] if not any(map(role.__getitem__, kept))]
    end = next((at for at in range(home + 1, len(boxes)) if boxes[at].parent < home), len(boxes))
    for at, block in enumerate(blocks):
        if not home <= block.box < end or at in found:
            continue
        up, is_part, asides = block.box, at in inside, list[bool]()
        while up > home and linked[up] <= 0:
            is_item = boxes[up].tag == "li"
            is_note = not NOTES.isdisjoint(boxes[up].names)
            asides += [is_note] * (boxes[up].tag == "aside")
            is_part = is_part or is_item or is_note
            up = boxes[up].parent
        is_inside = is_part and up == home
        if is_inside and ((asides and all(asides)) or not any(role[at] for role in beside)):
            found.add(at)
    return sorted(found)


def with_corrections(page: Layout, kept: list[int]) -> list[int]:
    """Returns `kept` with what corrects the text, by a name or its first words, also beside it."""
    inside: list[bool] = []
    for box in page.boxes:
        is_one = not _CORRECTIONS.isdisjoint(box.names)
        inside.append(is_one or (box.parent >= 0 and inside[box.parent]))
    said = enumerate(page.blocks)
    found = [at for at, b in said if inside[b.box] or (b.linked < 0.5 and _corrects(b.text))]
    is_short = sum(page.blocks[at].words for at in found) <= _LONGEST_CORRECTION
    return sorted({*kept, *found}) if kept and is_short else kept


def _is_part(text: str, box: Box, with_data: set[int]) -> bool:
    """Tells whether a caption or formula is a part. `with_data` are boxes right around tables and
    code."""
    if box.tag == "figcaption" and box.parent not in with_data:
        return text.count(" ") >= _FACT_BLANKS and any(map(str.isdigit, text))
    return box.tag in _PARTS or text[-2:] == "$$"


def once(page: Layout, kept: list[int], ways: Sequence[int]) -> list[int]:
    """Returns `kept` without blocks that say again what one before them said, in a place of another
    make. What repeats itself in like places means to, and so do tables and code."""
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
