"""Chosen blocks of a page as Markdown: headings, lists, quotes, code, tables and links."""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchloop.search_backend.readers._html.blocks import Block, Layout
from searchloop.search_backend.readers._html.parts.code import fenced, is_count, language, lines
from searchloop.search_backend.readers._html.parts.places import labels, places
from searchloop.search_backend.readers._html.parts.tables import Tables
from searchloop.search_backend.readers._html.text import absolute, bare, normal, runs

MOST_INDENT = 60
# A link behind a heading, in brackets, that leads to where its section is edited.
_EDIT = re.compile(r"\[\s*+(?:edit|\[[^\[\]]{1,40}\]\([^()]*\bedit[^()]*\))\s*+\]", re.IGNORECASE)
_PAIR = re.compile(r"\[[^\[\]]*\]")
_UNSAFE = re.compile(r"[\s<>()]")
# Kinds of lines, the one before and the next, that stay together.
_TOGETHER = frozenset(
    ("itemitem", "moreitem", "termterm", "termdefinition", "definitiondefinition")
)


def markdown(page: Layout, chosen: Sequence[int], url: str) -> str:
    """The blocks of these indexes as Markdown; links are absolute, seen from `url`."""
    return _Lines(page, chosen, url).written()


class _Lines:
    """Writes the chosen blocks of a page, one after the other."""

    def __init__(self, page: Layout, chosen: Sequence[int], url: str) -> None:
        self._page = page
        self._places = places(page.boxes)
        self._labels = labels(page.boxes)
        self._tables = Tables(page, self._places, self._labels)
        self._chosen = self._tables.completed(chosen)
        self._texts: dict[int, str] = {}
        for at in self._chosen:
            block = page.blocks[at]
            text = _text(block, url)
            is_struck = self._places[block.box].struck >= 0 and "~~" not in text
            self._texts[at] = f"~~{text}~~" if is_struck else text
        terms = [box for box in page.boxes if box.tag == "dt"]
        self._with_terms = {
            up for box in terms for up in (box.parent, page.boxes[box.parent].parent)
        }
        # How far the text of the items that have begun stands to the right.
        self._begun: dict[int, int] = {}
        self._parts: list[str] = []
        # The kind, block and heading of what was written last.
        self._last, self._before, self._heading = "", -1, -1

    def written(self) -> str:
        """Returns them all."""
        blocks, places = self._page.blocks, self._places
        tables = {-1}
        for at in self._chosen:
            box = blocks[at].box
            table = self._tables.outermost(box) if places[box].table >= 0 else -1
            if table < 0:
                self._line(at)
            elif table not in tables:
                tables.add(table)
                for text in filter(None, self._tables.written(table, self._texts)):
                    self._add("table", text, at)
        return "".join(self._parts[1:])

    def _add(self, kind: str, text: str, at: int) -> None:
        """Items of a list, lines broken by hand stay together; the rest stands apart."""
        last, before = self._last, self._before
        together = last + kind in _TOGETHER or (before == at - 1 and self._is_next_line(at))
        self._parts += ("\n" if together else "\n\n", text)
        self._last, self._before, self._heading = kind, at, -1

    def _is_next_line(self, at: int) -> bool:
        """Tells whether only one <br> stands between a block and the one before it."""
        boxes = self._page.boxes
        last, block = self._page.blocks[max(0, at - 1)], self._page.blocks[at]
        is_one = last.box == block.box and block.after - last.after == 1
        return is_one and boxes[last.after].tag == "br"

    def _line(self, at: int) -> None:
        block = self._page.blocks[at]
        place, text = self._places[block.box], self._texts[at]
        if place.code >= 0:
            code = lines(block.html)
            is_beside = place.table >= 0 or "line-num" in self._page.boxes[place.code].mark
            if code and not (is_beside and is_count(code)):
                self._add("code", fenced(code, self._language(block)), at)
            return
        if place.heading >= 0:
            text = _EDIT.sub("", text).strip()
            if self._heading == place.heading:
                self._parts.append(f" {text}" if text else "")
            elif text:
                level = int(self._page.boxes[place.heading].tag[1])
                number = self._marked(block)[1] if self._labels.get(place.item, "-") != "-" else ""
                self._add("heading", f"{number}{'#' * level} {text}", at)
            self._heading = place.heading
            return
        kind, before = self._marked(block)
        up = place.quote
        while up >= 0:  # one inside another
            before, up = f"> {before}", self._places[self._page.boxes[up].parent].quote
        self._add(kind, before + text, at)

    def _marked(self, block: Block) -> tuple[str, str]:
        """Returns the kind of a line, and what stands before its text."""
        place = self._places[block.box]
        item, definition = place.item, place.definition
        if item >= 0 and item > definition:
            indent = self._begun.get(item)
            if indent is not None:
                return "more", " " * indent
            label = self._labels[item]
            indent = min(MOST_INDENT, self._begun.get(self._outer(item), 0))
            self._begun[item] = indent + len(label) + 1
            return "item", f"{' ' * indent}{label} "
        if place.term > definition:
            return "term", ""
        if definition >= 0 and self._page.boxes[definition].parent in self._with_terms:
            is_first = self._begun.setdefault(definition, block.after) == block.after
            return ("definition", ": ") if is_first else ("more", "  ")
        return "text", ""

    def _outer(self, item: int) -> int:
        """Returns the item around an item that has begun, or -1."""
        up = self._places[self._page.boxes[item].parent].item
        return up if up < 0 or up in self._begun else self._outer(up)

    def _language(self, block: Block) -> str:
        boxes, at = self._page.boxes, block.box
        marks = block.html[:300] if block.html.startswith("<") else ""
        for _ in range(4):
            if at < 0:
                break
            marks += f" {boxes[at].mark} "
            at = boxes[at].parent
        return language(marks)


def _linked(words: str, target: str) -> str:
    """A link with these words, blanks around it as they are; the words alone if it is nothing."""
    label = normal(words)
    if not target or not label:
        return words
    rest = _PAIR.sub("", label) if "[" in label else label
    if "[" in rest or "]" in rest:
        label = label.replace("[", "(").replace("]", ")")
    target = _UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", target)
    return f"{' ' * words[0].isspace()}[{label}]({target}){' ' * words[-1].isspace()}"


def _text(block: Block, url: str) -> str:
    """The text of a block with its links, seen from `url`."""
    if not block.linked:
        return block.text
    found = runs(block.html, [] if block.link is None else [block.link])
    return normal(
        "".join(_linked(bare(run), absolute(link, url) if link else "") for run, link in found)
    )
