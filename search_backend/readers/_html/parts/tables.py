"""Tables cell by cell: each row with all its columns, also where a cell is empty, hidden or spans.

Markdown knows no spans, so what a cell spans is written out: the value stands in each place that it
covers, and every row can be read alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from operator import itemgetter

from searchloop.search_backend.readers._html.blocks import Layout
from searchloop.search_backend.readers._html.parts.code import lines, ticked
from searchloop.search_backend.readers._html.parts.places import Place

# A table of which half the words stand in longer cells only arranges the page; one with headings
# may have longer cells.
MOST_WORDS, MOST_WORDS_BELOW_HEADINGS = 60, 200
# Places that the spans of a table may add, and the empty ones at the ends of its rows.
MOST_SPANNED = 10_000
_SPAN = re.compile(r' (?:aria-)?(col|row)span="\s*(\d{1,4})')
_ARRANGES = re.compile(r' role="(?:presentation|none)"|[ "]ltx_eqn_table[ "]')
_SECTIONS = {"thead": 0, "tfoot": 2}
_OUTLINE = frozenset(("table", "pre", "h1", "h2", "h3", "h4", "form", "article", "section"))
_CELLS = frozenset(("td", "th", "caption"))
# The class of a cell in which the one above it goes on: documents tell it below, not above.
GOES_ON = "searchloop-goes-on"


# A cell is known by its box. A place of a row is empty (-1) or covered by a cell.
Row = list[int]
# What goes on below a row: for how many rows, and which cell, by column.
Spans = dict[int, tuple[int, int]]


@dataclass(slots=True)
class Table:
    """A table: its rows by section, its blocks by cell, and those of its caption.

    `heads` are its heading cells, `inner` the tags inside it that no table of data has unless it
    says so.
    """

    rows: list[tuple[int, int, list[int]]] = field(default_factory=list)
    blocks: dict[int, list[int]] = field(default_factory=dict)
    caption: list[int] = field(default_factory=list)
    heads: set[int] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


class Tables:
    """The tables of a page that have data; `places` are those of its boxes, `labels` those of its
    items."""

    def __init__(self, page: Layout, places: Sequence[Place], labels: Mapping[int, str]) -> None:
        self._page, self._places, self._labels = page, places, labels
        self._tables: dict[int, Table] = {}
        # For each box the cells around it and their tables, the innermost first.
        self._cells: list[tuple[tuple[int, int], ...]] = []
        self._outermost = cache(self._find_outermost)
        self._grid = cache(self._make_grid)
        if any(box.tag == "table" for box in page.boxes):
            self._collect_cells()
            self._collect_blocks()

    def _collect_cells(self) -> None:
        boxes, places = self._page.boxes, self._places
        for at, box in enumerate(boxes):
            tag, number = box.tag, places[at].table
            around = self._cells[box.parent] if box.parent >= 0 else ()
            if tag in _CELLS and number >= 0:
                up = boxes[number].parent
                around = ((number, at), *(self._cells[up] if up >= 0 else ()))
            self._cells.append(around)
            if tag in ("td", "th"):
                if (table := self._tables.get(number)) is not None:
                    kind, _, row = table.rows[-1]
                    row.append(at)
                    if tag == "th" or kind == 0:
                        table.heads.add(at)
            elif tag == "tr":
                if number >= 0:
                    kind = _SECTIONS.get(boxes[box.parent].tag, 1)
                    table = self._tables.setdefault(number, Table())
                    table.rows.append((kind, box.parent, []))
            elif tag in _OUTLINE:
                for table, _ in self._around(box.parent):
                    table.inner.add(tag)

    def _collect_blocks(self) -> None:
        boxes, places, tables = self._page.boxes, self._places, self._tables
        for number, block in enumerate(self._page.blocks):
            box = block.box
            if (at := places[box].table) < 0:
                continue
            if (around := [*self._around(box)]) == []:
                tables.pop(at, None)  # text beside the cells of a table that roles make
            for table, cell in around:
                if boxes[cell].tag == "caption":
                    table.caption.append(number)
                else:
                    table.blocks.setdefault(cell, []).append(number)

    def _around(self, box: int) -> Iterator[tuple[Table, int]]:
        """Yields the tables around a box, the innermost first, and the cell or caption in each."""
        for at, cell in self._cells[box] if box >= 0 else ():
            if (table := self._tables.get(at)) is not None:
                yield table, cell

    def outermost(self, box: int) -> int:
        """Returns the outermost table of data around a box, or -1."""
        table = self._places[box].table if box >= 0 else -1
        return self._outermost(table) if table >= 0 else -1

    def _find_outermost(self, at: int) -> int:
        around = [at]
        while (up := self._page.boxes[around[-1]].parent) >= 0 and self._places[up].table >= 0:
            around.append(self._places[up].table)
        return next((table for table in reversed(around) if self._is_data(table)), -1)

    def _is_data(self, at: int) -> bool:
        table, page = self._tables.get(at), self._page
        if table is None or max(len(cells) for _, _, cells in table.rows) < 2:
            return False
        if _ARRANGES.search(page.boxes[at].mark):
            return False
        says_so = bool(table.caption or table.heads)
        if table.inner and not says_so:
            return False
        most = MOST_WORDS_BELOW_HEADINGS if says_so else MOST_WORDS
        counts = [
            sum(page.blocks[number].words for number in blocks) for blocks in table.blocks.values()
        ]
        return 2 * sum(count for count in counts if count > most) <= sum(counts)

    def completed(self, chosen: Sequence[int]) -> list[int]:
        """Returns these blocks with the rest of their tables: all of one that is chosen for the
        most part, else the rows that are chosen, with the headings."""
        blocks, found = self._page.blocks, set(chosen)
        for at in {self.outermost(blocks[number].box) for number in chosen} - {-1}:
            table = self._tables[at]
            whole = [*table.caption, *chain.from_iterable(table.blocks.values())]
            taken = sum(blocks[number].words for number in whole if number in found)
            if 2 * taken < sum(blocks[number].words for number in whole):
                rows = [
                    [number for cell in set(row) for number in table.blocks.get(cell, ())]
                    for row in self._grid(at)
                ]
                heads = [_is_head(row, table, table.blocks) for row in self._grid(at)]
                whole = [
                    number
                    for row, is_head in zip(rows, heads, strict=True)
                    if is_head or not found.isdisjoint(row)
                    for number in row
                ]
            found.update(whole)
        return sorted(found)

    def written(self, at: int, texts: Mapping[int, str]) -> tuple[str, str]:
        """Returns the caption of a table and its lines. `texts` are those of the chosen blocks."""
        table = self._tables[at]
        words = {cell: self._line(blocks, texts, cell) for cell, blocks in table.blocks.items()}
        caption = " ".join(texts[number] for number in table.caption if number in texts)
        rows = self._grid(at)
        if not all(map(texts.__contains__, chain.from_iterable(table.blocks.values()))):
            rows = [row for row in rows if any(map(words.get, row))]
        return caption, "\n".join(_lines(rows, table, words))

    def _line(self, blocks: list[int], texts: Mapping[int, str], cell: int) -> str:
        """Returns the text of a cell on one line; cells of a table inside it stand side by side."""
        found, row, item = "", -1, -1
        boxes = self._page.boxes
        for number in blocks:
            if number not in texts:
                continue
            block, text = self._page.blocks[number], texts[number]
            if boxes[block.box].tag == "pre":
                code = lines(block.html).split("\n")
                text = "<br>".join(ticked(line) for line in code if line.strip())
            last, item = item, self._places[block.box].item
            if item > cell and item != last:
                text, up = f"{self._labels[item]} {text}", item
                while (up := self._places[boxes[up].parent].item) > cell:  # a list inside another
                    text = f"  {text}"
            _, inner = next(self._around(block.box))
            before, row = row, boxes[inner].parent
            is_beside = row == before and inner != cell
            found += (", " if is_beside else "<br>" if found else "") + text
        return found

    def _make_grid(self, at: int) -> list[Row]:
        """Returns the cell of each place, row by row, the sections in order: head, bodies, foot."""
        table, boxes = self._tables[at], self._page.boxes
        rows: list[Row] = []
        begun = set[int]()  # columns in which a cell begins; others are there for spans only
        spare = MOST_SPANNED
        spans: Spans = {}
        last = -1
        for _, section, cells in sorted(table.rows, key=itemgetter(0)):
            if section != last or spare < 0:  # no span goes beyond its section
                spans, last = {}, section
            sizes = [_size(boxes[cell].mark) for cell in cells]
            row, spans, spare = _spanned(cells, sizes, spans, spare)
            first = {row[at]: at for at in reversed(range(len(row)))}
            shown = {cell for cell, size in zip(cells, sizes, strict=True) if size[2]}
            begun.update(first[cell] for cell in shown & first.keys())
            if rows and any(size[1] == 0 for size in sizes):
                above = [*rows[-1], *row[len(rows[-1]) :]]
                both = zip(row, above, strict=False)
                row = [up if GOES_ON in boxes[cell].mark else cell for cell, up in both]
            if len(row) > 1 or not table.blocks.keys().isdisjoint(row):
                rows.append(row)
        columns = sorted(begun)
        if len(rows) * len(columns) > sum(map(len, rows)) + MOST_SPANNED:
            return [[row[at] for at in columns[: bisect_left(columns, len(row))]] for row in rows]
        return [[row[at] if at < len(row) else -1 for at in columns] for row in rows]


@lru_cache(maxsize=4096)
def _size(mark: str) -> tuple[int, int, bool]:
    """Returns how many columns and rows (0: those of the cell above) a cell covers, and whether it
    is shown."""
    spans = {name: int(number) for name, number in _SPAN.findall(mark)}
    rows = 0 if GOES_ON in mark else spans.get("row", 1) or 1_000_000
    return max(1, spans.get("col", 1)), rows, mark != 'td hidden=""'


def _spanned(
    cells: Sequence[int], sizes: Sequence[tuple[int, int, bool]], spans: Spans, spare: int
) -> tuple[Row, Spans, int]:
    """Returns a row among the cells of rows above that span it, what spans the next row, and how
    many places spans may still add."""
    row = {column: cell for column, (_, cell) in spans.items()}
    spare -= len(row)
    spans = {column: (left - 1, cell) for column, (left, cell) in spans.items() if left > 1}
    column = 0
    for cell, (columns, rows, _) in zip(cells, sizes, strict=True):
        while column in row:
            column += 1
        columns = columns if columns <= spare else 1
        spare -= columns - 1
        for place in range(column, column + columns):
            row.setdefault(place, cell)
            if rows > 1:
                spans[place] = (rows - 1, cell)
    return [row.get(at, -1) for at in range(max(row, default=-1) + 1)], spans, spare


def _lines(rows: Sequence[Row], table: Table, words: Mapping[int, str]) -> list[str]:
    found: list[str] = []
    if not rows or not rows[0]:
        return found
    for row in rows:
        texts = [words.get(cell, "").replace("|", "\\|") for cell in row]
        if row.count(row[0]) == len(row):  # one cell over the whole table
            texts[1:] = [""] * (len(row) - 1)
        found.append(f"| {' | '.join(texts)} |")
    if not _is_head(rows[0], table, words):
        found.insert(0, "|" + "  |" * len(rows[0]))
    found.insert(1, "|" + " --- |" * len(rows[0]))
    return found


def _is_head(row: Row, table: Table, filled: Mapping[int, object]) -> bool:
    """Tells whether all cells of a row that have text are headings."""
    cells = [cell for cell in row if filled.get(cell)]
    headings = sum(cell in table.heads for cell in cells)
    is_all = all(cell in table.heads for cell in row)
    return headings == len(cells) and (headings >= min(2, len(row)) or is_all)
