"""A parsed page as a visitor sees it, before it is cut into blocks.

What a visitor sees but what is no text in the page becomes text in its place: formulas, boxes to
tick, drawings in cells. Then what is hidden goes, and the columns of tables stay where they are.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.hidden import remove_hidden
from searchloop.search_backend.readers._html.parts.formulas import write_formulas
from searchloop.search_backend.readers._html.parts.tables import cells_and_rows, fill_places

_CHECKBOXES = "li [type=checkbox],td [type=checkbox]"
_HIDDEN_CELL = re.compile(r"<[tT][dDhH]\s[^>]*(?:hidden|style|HIDDEN|STYLE)")
_may_show = re.compile(r"<(?=[mMsSiI])(?i:(?:m(?:ml)?:)?math|svg|input)[\s>]").search
_NAMES = ("math/tex", "mwe-math", "mw-editsection", "data-latex", "ltx_note")
_UNSEEN = ".mw-editsection,.ltx_tag_note,.ltx_note_content>.ltx_note_mark"
LONGEST_LABEL = 40


def show(tree: LexborHTMLParser, markup: str) -> None:
    """Changes `tree`, which was parsed from `markup`."""
    if _may_show(markup) or any(name in markup for name in _NAMES):
        write_formulas(tree)
        _write_checkboxes(tree)
        _write_drawings(tree)
        for node in tree.css(_UNSEEN):
            node.remove()
        for note in tree.css(".ltx_note_outer"):  # behind its mark, in LaTeXML
            note.insert_before(" (")
            note.insert_after(")")
    may_hide = "<style" in markup or _HIDDEN_CELL.search(markup)
    cells = cells_and_rows(tree) if may_hide else []
    remove_hidden(tree)
    fill_places(cells)


def _write_checkboxes(tree: LexborHTMLParser) -> None:
    for box in tree.css(_CHECKBOXES):
        mark = "[x] " if "checked" in box.attributes else "[ ] "
        if (label := box.parent) is not None and label.tag == "label" and not label.text().strip():
            label.replace_with(mark)
        else:
            box.insert_before(mark)


def _write_drawings(tree: LexborHTMLParser) -> None:
    """Writes the label of a drawing that stands alone in a cell."""
    for drawing in tree.css("td svg,th svg"):
        title = drawing.css_first("title")
        label = drawing.attributes.get("aria-label") or (title.text() if title is not None else "")
        around = drawing.parent
        alone = around is not None and not (around.text(deep=True) or "").replace(label, "").strip()
        if alone and label and len(label) <= LONGEST_LABEL:
            drawing.replace_with(label.strip())
