"""Chosen blocks of a page as Markdown: headings, lists, quotes, code, tables and links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias
from urllib.parse import urljoin

from searchloop.search_backend.readers._html.blocks import Block, Box, Layout
from searchloop.search_backend.readers._html.text import (
    address,
    bare,
    batches,
    in_order,
    is_in_site,
    normal,
    plain,
    runs,
    site,
)

LONGEST_URL = 2_000
# A cell with more words holds text; such a table only arranges the page.
MOST_CELL_WORDS = 60
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_TELLING = frozenset((*_HEADINGS, "tr", "td", "th", "li", "pre", "blockquote"))
_UNSAFE = re.compile(r"[\s<>()]")
# Kinds of lines, the one before and the next, that stay together.
_TOGETHER = frozenset(
    (("item", "item"), ("row", "row"), ("table", "row"), ("item", "more"), ("more", "more"))
)
# What a box lies in: indexes of the nearest row, cell and item (-1: none), what begins a heading,
# and whether it is code and quoted.
_Around: TypeAlias = tuple[int, int, int, str, bool, bool]
_NOWHERE: _Around = (-1, -1, -1, "", False, False)


def markdown(page: Layout, chosen: Sequence[int], url: str) -> str:
    """The blocks of these indexes as Markdown; links are absolute, seen from `url`."""
    blocks = [page.blocks[index] for index in chosen]
    around = _surroundings(page.boxes)
    lines = zip(blocks, Writer(url, page.signs).texts(blocks), strict=True)
    items: set[int] = set()
    parts: list[tuple[str, str]] = []
    previous = -1
    for row, group in groupby(lines, key=lambda line: around[line[0].box][0]):
        if row < 0:
            parts += [_line(block, text, around[block.box], items) for block, text in group]
            previous = -1
            continue
        of_row = list(group)
        cells = _cells(of_row, around)
        if len(cells) < 2 or any(len(cell.split()) > MOST_CELL_WORDS for cell in cells):
            parts += [_line(block, text, around[block.box], items) for block, text in of_row]
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
        text.append("\n" if (last, kind) in _TOGETHER else "\n\n")
        text.append(line)
        last = kind
    return "".join(text[1:])


def _surroundings(boxes: list[Box]) -> list[_Around]:
    found: list[_Around] = []
    for at, box in enumerate(boxes):
        tag = box.tag
        around = found[box.parent] if box.parent >= 0 else _NOWHERE
        if tag in _TELLING:
            row, cell, item, heading, code, quote = around
            row = at if tag == "tr" else row
            cell = at if tag in ("td", "th") else cell
            item = at if tag == "li" else item
            heading = _HEADINGS.get(tag, heading)
            code, quote = code or tag == "pre", quote or tag == "blockquote"
            around = (row, cell, item, heading, code, quote)
        found.append(around)
    return found


def _cells(row: list[tuple[Block, str]], around: list[_Around]) -> list[str]:
    """The texts of one row, joined cell by cell."""
    found: dict[int, list[str]] = {}
    for block, text in row:
        found.setdefault(around[block.box][1], []).append(text)
    return [" ".join(texts) for texts in found.values()]


def _line(block: Block, text: str, around: _Around, items: set[int]) -> tuple[str, str]:
    """(kind, line) of one block. `items` are those of lists that have begun."""
    _, _, item, heading, code, quote = around
    if code:
        written = bare(block.html).strip("\n")
        return "code", f"```\n{written}\n```"
    if heading:
        return "heading", heading + text
    if item >= 0:
        if item in items:
            return "more", "  " + text
        items.add(item)
        return "item", "- " + text
    return "text", "> " + text if quote else text


def _linked(words: str, label: str, target: str) -> str:
    """A link with these words, which are `label` in order, or the words alone if it is nothing."""
    if not target or not label:
        return words
    if "[" in label or "]" in label:
        label = label.replace("[", "(").replace("]", ")")
    if len(label) == len(words):
        return f"[{label}]({target})"
    before = " " if words[0].isspace() else ""
    after = " " if words[-1].isspace() else ""
    return f"{before}[{label}]({target}){after}"


class Writer:
    """Writes links, seen from `url`. `signs` are characters that the page does not have."""

    def __init__(self, url: str, signs: str) -> None:
        self._url = url
        self._signs = signs
        self._site = site(url)
        self._targets: dict[str, str] = {}

    def texts(self, blocks: list[Block]) -> list[str]:
        """The text of each block with its links."""
        texts = [block.text for block in blocks]
        linked = [at for at, block in enumerate(blocks) if block.linked]
        for at in linked:
            if blocks[at].link is not None:
                texts[at] = self._with_links(blocks[at])
        at_once = [at for at in linked if blocks[at].link is None]
        htmls = [blocks[at].html for at in at_once]
        for part in batches(htmls):
            for at, text in zip(at_once[part], self._all_with_links(htmls[part]), strict=True):
                texts[at] = self._with_links(blocks[at]) if text is None else text
        return texts

    def _all_with_links(self, htmls: list[str]) -> list[str | None]:
        """Each of these pieces with its links; None for one with a link inside or beyond another.

        Tags are taken out of all texts at once, and signs stand for what must not be touched.
        """
        cut, link = tuple(self._signs[:2])
        tag = re.compile(f"<[^>{cut}{link}]*>")
        # Text, the tag of a link, what it holds, text and so on. No link lies inside it.
        parts = re.split(
            f"<(a(?: [^>{cut}]*)?)>([^<{cut}]*+(?:<(?!/?a[ >])[^<{cut}]*+)*+)</a>", cut.join(htmls)
        )
        outside = link.join(parts[::3])
        written = [""] * (len(parts) // 3 * 2 + 1)
        written[::2] = plain(tag.sub("", outside)).split(link)
        labels = in_order(plain(tag.sub("", cut.join(parts[2::3])))).split(cut)
        written[1::2] = map(self._link, parts[1::3], labels)
        found: list[str | None] = [*map(str.strip, in_order("".join(written)).split(cut))]
        if "<a " in outside or "<a>" in outside:
            for at, text in enumerate(outside.split(cut)):
                if "<a " in text or "<a>" in text:
                    found[at] = None
        return found

    def _with_links(self, block: Block) -> str:
        parts: list[str] = []
        for run, link in runs(block.html, [] if block.link is None else [block.link]):
            words = bare(run)
            target = "" if link is None else self._target(link)
            parts.append(_linked(words, normal(words)[0], target) if target else words)
        return normal("".join(parts))[0]

    def _link(self, tag: str, words: str) -> str:
        return _linked(words, words.strip(" "), self._target(address(tag)))

    def _target(self, href: str) -> str:
        """The absolute address of a link, empty for one that leads nowhere else."""
        target = self._targets.get(href)
        if target is None:
            target = self._targets[href] = self._absolute(href.strip())
        return target

    def _absolute(self, href: str) -> str:
        if not href or href.startswith("#") or len(href) > LONGEST_URL:
            return ""
        if self._site and is_in_site(href):
            return self._site + href
        try:
            target = href if href.startswith("https://") else urljoin(self._url, href)
        except ValueError:
            return ""
        if not target.startswith(("http://", "https://")):
            return ""
        return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", target)
