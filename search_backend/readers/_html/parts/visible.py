"""A parsed page as a visitor sees it, before it is cut into blocks.

What a visitor sees but what is no text in the page becomes text in its place: formulas, boxes to
tick, drawings in cells. Then what is hidden goes, and the columns of tables stay where they are.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.hidden import remove_hidden
from searchloop.search_backend.readers._html.parts.formulas import FORMULAS, write_formulas
from searchloop.search_backend.readers._html.parts.tables import cells_and_rows, fill_places

_CHECKBOXES = ",".join(
    f"{around} {box}" for around in ("li", "td") for box in ("[type=checkbox]", "[role=checkbox]")
)
_DRAWINGS = "td svg,th svg"
_EDIT_LINKS = ".mw-editsection"
_SHOWN = ",".join((FORMULAS, _CHECKBOXES, _DRAWINGS, _EDIT_LINKS))
_HIDDEN_CELL = re.compile(r"<[tT][dDhH]\s[^>]*(?:hidden|style|HIDDEN|STYLE)")
LONGEST_LABEL = 40


def show(tree: LexborHTMLParser, markup: str) -> None:
    """Changes `tree`, which was parsed from `markup`."""
    if tree.css_first(_SHOWN) is not None:
        write_formulas(tree)
        _write_checkboxes(tree)
        _write_drawings(tree)
        for node in tree.css(_EDIT_LINKS):
            node.remove()
    may_hide = "<style" in markup or _HIDDEN_CELL.search(markup)
    cells = cells_and_rows(tree) if may_hide else []
    remove_hidden(tree)
    fill_places(cells)


def _write_checkboxes(tree: LexborHTMLParser) -> None:
    for box in tree.css(_CHECKBOXES):
        ticked = box.attributes.get("aria-checked") == "true" or "checked" in box.attributes
        box.insert_before("[x] " if ticked else "[ ] ")


def _write_drawings(tree: LexborHTMLParser) -> None:
    """Writes the label of a drawing that stands alone in a cell."""
    for drawing in tree.css(_DRAWINGS):
        title = drawing.css_first("title")
        label = drawing.attributes.get("aria-label") or (title.text() if title is not None else "")
        around = drawing.parent
        alone = around is not None and not (around.text(deep=True) or "").replace(label, "").strip()
        if alone and label and len(label) <= LONGEST_LABEL:
            drawing.replace_with(label.strip())
