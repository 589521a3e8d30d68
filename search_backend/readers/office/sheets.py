"""Spreadsheets of Excel and OpenDocument: each visible sheet as a table, its first row as heads.

Numbers stand as they are stored: 15.3 % is 0.153, whatever the cell shows. `python-calamine` reads
the formats.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.whole import file_name, whole_page
from searchloop.search_backend.readers.office._archive import (
    BROKEN,
    MOST_UNPACKED,
    NO_TEXT,
    TOO_LARGE,
    UnreadableDocument,
    Written,
)
from searchloop.search_backend.types import Page, failed_page

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

_ROWS, _COLUMNS = 20_000, 200
_ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
_OLD = "Workbook".encode("utf-16-le")  # the stream of an .xls file


def _markup(body: bytes) -> str:
    """Returns all visible sheets as HTML. Raises UnreadableDocument."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    if body.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(body)) as parts:
            if sum(part.file_size for part in parts.filelist) > MOST_UNPACKED:
                raise UnreadableDocument(TOO_LARGE)
    out = Written()
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(body))
        for sheet in book.sheets_metadata:
            shown = sheet.visible == SheetVisibleEnum.Visible
            if shown and sheet.typ == SheetTypeEnum.WorkSheet:
                _write(out, sheet.name, _filled(book.get_sheet_by_name(sheet.name)))
    except CalamineError as error:
        raise UnreadableDocument(BROKEN) from error
    return "".join(out.markup)


def _filled(sheet: CalamineSheet) -> list[list[Any]]:
    """Returns the rows of a sheet; what a merged cell says stands in each place that it covers."""
    rows: list[list[Any]] = sheet.to_python(nrows=_ROWS)
    first, begin = sheet.start or (0, 0)
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        covered = rows[top - first : bottom - first + 1] if top >= first and left >= begin else []
        at, end = left - begin, right - begin + 1
        for row in covered:
            if at > 0 or end < len(row):  # a title over the whole table is written once
                row[at:end] = [covered[0][at]] * (min(end, len(row)) - at)
    return rows


def _write(out: Written, name: str, rows: list[list[Any]]) -> None:
    written = [[_text(cell) for cell in row[:_COLUMNS]] for row in rows]
    written = [row for row in written if any(row)]
    if not written:
        return
    out.markup.append(f"<h2>{out.escaped(name)}</h2><table>")
    for number, row in enumerate(written):
        tag = "td" if number else "th"
        lines = ("<br>".join(map(out.escaped, cell.split("\n"))) for cell in row)
        cells = (f"<{tag}>{line}</{tag}>" for line in lines)
        out.markup.append(f"<tr>{''.join(cells)}</tr>")
    out.markup.append("</table>")


def _text(cell: Any) -> str:
    """Returns a value as people write it; a whole number without its point."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return f"{cell:.15g}"
    return str(cell).strip()


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """Returns the sheets as Markdown tables under their names."""
    try:
        markup = _markup(body)
    except UnreadableDocument as error:
        return failed_page(url, error.problem)
    except (zipfile.BadZipFile, ValueError, OverflowError, MemoryError):
        return failed_page(url, BROKEN)
    page = whole_page(markup, url, file_name(url))
    return page if page.text.strip() else failed_page(url, NO_TEXT)


def knows(body: bytes) -> bool:
    """True for an archive with a workbook, and for an old Excel file."""
    if body.startswith(b"PK\x03\x04"):
        return b"xl/workbook." in body or _ODS in body[:200]
    return body.startswith(b"\xd0\xcf\x11\xe0") and _OLD in body


READER = Reader(
    frozenset(
        (
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.ms-excel",
            "application/vnd.oasis.opendocument.spreadsheet",
        )
    ),
    frozenset((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")),
    read,
    knows,
)
