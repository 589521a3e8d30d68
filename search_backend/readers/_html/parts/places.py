"""Where in a page a text stands: its list and number, heading, quotation, code, table and cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from searchloop.search_backend.readers._html.blocks import Box

_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_STRUCK = re.compile(r"line-through|(?<![\w-])strike")
_NUMBER = re.compile(r' (start|value)="\s*(-?\d{1,9})')
_TYPE = re.compile(
    r' type="([aAiI1])"'
    r'|list-style(?:(?!list-style)[^;"])*?(?:(lower|upper)-(alpha|latin|roman)|(none))'
)
_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


class Place(NamedTuple):
    """The boxes around a text, by index, the innermost of each kind; -1 for none."""

    table: int = -1
    item: int = -1
    caption: int = -1
    term: int = -1
    definition: int = -1
    heading: int = -1
    code: int = -1
    quote: int = -1
    struck: int = -1


def places(boxes: Sequence[Box]) -> list[Place]:
    """Returns for each box where the text in it stands."""
    found: list[Place] = []
    nowhere = Place()
    items: dict[int, int] = {}  # the last item of each list
    marks = {box.mark for box in boxes if "-through" in box.mark or "strike" in box.mark}
    struck = set(filter(_STRUCK.search, marks))
    for at, box in enumerate(boxes):
        place = found[box.parent] if box.parent >= 0 else nowhere
        if (kind := _KINDS.get(box.tag)) is not None:
            place = _place((*place[:kind], at, *place[kind + 1 :]))
            if box.tag == "li":
                items[box.parent] = at
        elif box.parent in items:  # a list right inside another belongs to the item before it
            place = place._replace(item=items[box.parent])
        if struck and box.mark in struck:
            place = place._replace(struck=at)
        found.append(place)
    return found


# Makes a place from all its values; `_make` and `_replace` take three times as long.
_place = partial(tuple.__new__, Place)
_TAGS = {"table": "table", "li": "item", "dt": "term", "dd": "definition", "pre": "code"}
_TAGS |= {"caption": "caption", "blockquote": "quote"} | dict.fromkeys(_HEADINGS, "heading")
_KINDS = {tag: Place._fields.index(name) for tag, name in _TAGS.items()}


def labels(boxes: Sequence[Box]) -> dict[int, str]:
    """Returns what stands before each item of a list: its number as the page counts, or a dash."""
    items = [at for at, box in enumerate(boxes) if box.tag == "li"]
    # Only lists that count down need their sizes.
    sizes = Counter(boxes[at].parent for at in items if " reversed" in boxes[boxes[at].parent].mark)
    numbers: dict[int, int] = {}
    found: dict[int, str] = {}
    for at in items:
        up = boxes[at].parent
        mark = boxes[up].mark if up >= 0 else ""
        if not mark.startswith("ol"):
            found[at] = "-"
            continue
        step = -1 if " reversed" in mark else 1
        if up not in numbers:
            begins = _number(mark, "start")
            numbers[up] = (sizes[up] if step < 0 else 1) if begins is None else begins
        value = _number(boxes[at].mark, "value")
        number = numbers[up] if value is None else value
        numbers[up] = number + step
        kind = _TYPE.search(boxes[at].mark) or _TYPE.search(mark)
        found[at] = "-" if kind and kind[4] else f"{_written(number, kind)}."
    return found


def _number(mark: str, name: str) -> int | None:
    return next((int(number) for one, number in _NUMBER.findall(mark) if one == name), None)


def _written(number: int, kind: re.Match[str] | None) -> str:
    """Returns a number as letters or in Roman numerals, if its list is so."""
    if kind is None or kind[1] == "1" or not 0 < number < 4000:
        return str(number)
    text = ""
    if kind[1] in ("i", "I") or kind[3] == "roman":
        for value, letters in _ROMAN:
            text += letters * (number // value)
            number %= value
    else:
        while number:
            number, letter = divmod(number - 1, 26)
            text = chr(65 + letter) + text
    return text if kind[1] in ("A", "I") or kind[2] == "upper" else text.lower()
