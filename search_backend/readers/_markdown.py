"""Chosen blocks of a page as Markdown: headings, lists, quotes, code, tables and links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urljoin, urlsplit

from search_backend.readers._blocks import Block, Box, Layout, bare, normal, runs

LONGEST_URL = 2_000
# A cell with more words holds text; such a table only arranges the page.
MOST_CELL_WORDS = 60
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_TELLING = frozenset((*_HEADINGS, "tr", "td", "th", "li", "pre", "blockquote"))
# Joining to a page of the web changes nothing of these but what stands before.
_is_in_site = re.compile(
    r"/(?!/)(?!\S*/[./])[\w%+=&~/.:,@!'*-]*(?:\?[\w%+=&~/.:,@!'*-]+)?(?:#[\w%+=&~/.-]+)?", re.ASCII
).fullmatch
_UNSAFE = re.compile(r"[\s<>()]")


def markdown(page: Layout, chosen: Sequence[int], url: str) -> str:
    """The blocks of these indexes as Markdown; links are absolute, seen from `url`."""
    writer = _Writer(page.boxes, url)
    blocks = (page.blocks[index] for index in chosen)
    rows = [(row, list(group)) for row, group in groupby(blocks, key=writer.row)]
    parts: list[tuple[str, str]] = []
    previous = -1
    for row, group in rows:
        cells = writer.cells(group) if row >= 0 else []
        if len(cells) < 2 or any(len(cell.split()) > MOST_CELL_WORDS for cell in cells):
            parts += [writer.line(block) for block in group]
            previous = -1
            continue
        table = page.boxes[row].parent
        line = f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        parts.append(("row" if previous == table else "table", line))
        if previous != table:
            parts.append(("row", "|" + " --- |" * len(cells)))
        previous = table
    return _joined(parts)


def _joined(parts: list[tuple[str, str]]) -> str:
    """Items of a list, rows of a table, lines of code stay together; the rest stands apart."""
    text: list[str] = []
    last = ""
    for kind, line in parts:
        if text:
            together = (kind == last and kind in ("item", "row")) or (kind, last) == (
                "row",
                "table",
            )
            text.append(
                "\n" if together or (kind == "more" and last in ("item", "more")) else "\n\n"
            )
        text.append(line)
        last = kind
    return "".join(text)


@dataclass(slots=True)
class _Around:
    """What a box lies in: indexes of the nearest row, cell and item (-1: none), and its manner."""

    row: int = -1
    cell: int = -1
    item: int = -1
    heading: str = ""
    code: bool = False
    quote: bool = False

    def copy(self) -> _Around:
        """Another one that says the same."""
        return _Around(self.row, self.cell, self.item, self.heading, self.code, self.quote)


def _surroundings(boxes: list[Box]) -> list[_Around]:
    found: list[_Around] = []
    for at, box in enumerate(boxes):
        tag = box.tag
        around = found[box.parent] if box.parent >= 0 else _NOWHERE
        if tag in _TELLING:
            around = around.copy()
            if tag == "tr":
                around.row = at
            elif tag in ("td", "th"):
                around.cell = at
            elif tag == "li":
                around.item = at
            elif tag == "pre":
                around.code = True
            elif tag == "blockquote":
                around.quote = True
            else:
                around.heading = _HEADINGS[tag]
        found.append(around)
    return found


_NOWHERE = _Around()


class _Writer:
    def __init__(self, boxes: list[Box], url: str) -> None:
        self._url = url
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.netloc
        self._site = f"{parts.scheme}://{parts.netloc}" if is_web else ""
        self._around = _surroundings(boxes)
        self._items: set[int] = set()
        self._targets: dict[str, str] = {}

    def row(self, block: Block) -> int:
        """The table row the block lies in, -1 for none."""
        return self._around[block.box].row

    def cells(self, blocks: list[Block]) -> list[str]:
        """The blocks of one row, joined cell by cell."""
        found: dict[int, list[str]] = {}
        for block in blocks:
            found.setdefault(self._around[block.box].cell, []).append(self._inline(block))
        return [" ".join(texts) for texts in found.values()]

    def line(self, block: Block) -> tuple[str, str]:
        """(kind, text) of one block."""
        around = self._around[block.box]
        if around.code:
            code = bare(block.html).strip("\n")
            return "code", f"```\n{code}\n```"
        text = self._inline(block)
        if around.heading:
            return "heading", around.heading + text
        if around.item >= 0:
            if around.item in self._items:
                return "more", "  " + text
            self._items.add(around.item)
            return "item", "- " + text
        return "text", ("> " if around.quote else "") + text

    def _inline(self, block: Block) -> str:
        if not block.linked:
            return block.text
        parts: list[str] = []
        for run, link in runs(block.html, [] if block.link is None else [block.link]):
            words = bare(run)
            label = normal(words)[0] if link is not None else ""
            target = self._target(link) if link is not None and label else ""
            if not target:
                parts.append(words)
                continue
            before = " " if words[0].isspace() else ""
            after = " " if words[-1].isspace() else ""
            label = label.replace("[", "(").replace("]", ")")
            parts.append(f"{before}[{label}]({target}){after}")
        return normal("".join(parts))[0]

    def _target(self, href: str) -> str:
        """The absolute address of a link, empty for one that leads nowhere else."""
        target = self._targets.get(href)
        if target is None:
            target = self._targets[href] = self._absolute(href.strip())
        return target

    def _absolute(self, href: str) -> str:
        if not href or href.startswith("#") or len(href) > LONGEST_URL:
            return ""
        if self._site and _is_in_site(href):
            return self._site + href
        try:
            target = href if href.startswith("https://") else urljoin(self._url, href)
        except ValueError:
            return ""
        if not target.startswith(("http://", "https://")):
            return ""
        return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", target)
