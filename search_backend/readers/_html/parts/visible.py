"""A parsed page as a visitor sees it, before it is cut into blocks.

What a visitor sees but what is no text in the page becomes text in its place: formulas, boxes to
tick, drawings in cells. Then what is hidden goes, and the columns of tables stay where they are.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.hidden import remove_hidden
from searchloop.search_backend.readers._html.parts.formulas import FORMULAS, write_formulas

_CHECKBOXES = "li [type=checkbox],td [type=checkbox]"
_DRAWINGS = "td svg,th svg"
_LABELS = "td .sr-only,td .visually-hidden,td .screen-reader-text"
_UNSEEN = ".mw-editsection,.ltx_tag_note,.ltx_note_content>.ltx_note_mark"
_CELLS = "span[role^=row],span[role$=cell],span[role$=header],span[class*=ltx_t]"
_OF_PAPERS = {"ltx_tabular": "table", "ltx_tr": "row", "ltx_td": "cell", "ltx_th": "columnheader"}
_LINES = "pre,.react-file-line"
_NUMBERS, _DOXYGEN = "div.line-numbers,div.react-line-numbers", "div.fragment>div.line:first-child"
_LANGUAGE, _FILE = "div[class*=language-]>span.lang", "table.highlighttable th.filename"
# All of them at once: one search of the tree tells that an ordinary page has none.
_MAY_SHOW = (
    f"{FORMULAS},{_CHECKBOXES},{_DRAWINGS},{_LABELS},{_UNSEEN},{_CELLS},{_NUMBERS},{_DOXYGEN},"
    f"{_LANGUAGE},{_FILE},.sfrac .sr-only,.ltx_note_outer,[style*=white-space]"
)
LONGEST_LABEL = 40
# Lines of a page; each takes an element.
MOST_TYPED = 5_000
is_typed = re.compile(r"white-space: ?(?:pre|break)").search


def show(tree: LexborHTMLParser) -> None:
    """Changes `tree`."""
    is_ordinary = tree.css_first(_MAY_SHOW) is None
    if not is_ordinary:
        write_formulas(tree)
        _write_checkboxes(tree)
        _write_drawings(tree)
        _put_code_in_order(tree)
        for node in tree.css(_UNSEEN):
            node.remove()
        for mark in tree.css(".sfrac .sr-only"):
            mark.replace_with("⁄" if "/" in mark.text() else " ")
        for note in tree.css(".ltx_note_outer"):  # behind its mark, in LaTeXML
            note.insert_before(" (")
            note.insert_after(")")
        _write_labels(tree)
        for cell in reversed(tree.css(_CELLS)):
            name = (cell.attributes.get("class") or "").partition(" ")[0]
            if role := cell.attributes.get("role") or _OF_PAPERS.get(name):
                inside = f'<div role="{role}">{cell.inner_html}</div>'
                cell.replace_with(LexborHTMLParser(inside).css("div")[0])
    if remove_hidden(tree).write_shapes() or not is_ordinary:
        _break_lines(tree)


def _break_lines(tree: LexborHTMLParser) -> None:
    """Ends the lines of text that a style shows as typed, but for code."""
    end, left = tree.create_node("br"), MOST_TYPED
    for around in tree.css("[style*=white-space]:not(pre,code)"):
        style = around.attributes["style"] or ""
        if not is_typed(style) or "monospace" in style or _around(around, "pre") is not None:
            continue
        for node in [*around.traverse(include_text=True)]:
            lines = (node.text_content or "").split("\n") if node.is_text_node else []
            left -= len(lines)
            if len(lines) < 2 or left < 0:
                continue
            for number, line in enumerate(lines):
                if number:
                    node.insert_before(end)
                if line:
                    node.insert_before(line)
            node.remove()


def _write_checkboxes(tree: LexborHTMLParser) -> None:
    for box in tree.css(_CHECKBOXES):
        mark = "[x] " if "checked" in box.attributes else "[ ] "
        if (label := box.parent) is not None and label.tag == "label" and not label.text().strip():
            label.replace_with(mark)
        else:
            box.insert_before(mark)


def _put_code_in_order(tree: LexborHTMLParser) -> None:
    """Removes numbers of lines beside some code; puts the name of a file in front of its code."""
    for label in tree.css(_LANGUAGE):  # the fence says it
        label.remove()
    for line in tree.css(_DOXYGEN):
        if line.parent is not None:
            line.parent.attrs["class"] = "hljs"
    for numbers in tree.css(_NUMBERS):
        code = numbers.next
        while code is not None and not code.is_element_node:
            code = code.next
        is_beside = code is not None and (code.tag == "pre" or code.css_first(_LINES) is not None)
        if is_beside and re.fullmatch(r"[\d\s]+", numbers.text(deep=True)):
            numbers.remove()
    for name in tree.css(_FILE):
        row, table = _around(name, "tr"), _around(name, "table")
        if row is not None and table is not None:
            table.insert_before(name.text(deep=True))
            row.remove()


def _around(node: LexborNode, tag: str) -> LexborNode | None:
    around = node.parent
    while around is not None and around.tag != tag:
        around = around.parent
    return around


def _write_labels(tree: LexborHTMLParser) -> None:
    """Shows the words for screen readers that say alone what the sign in a cell means."""
    for label in tree.css(_LABELS):
        cell, words = _around(label, "td"), label.text(deep=True).strip()
        if cell is not None and cell.text(deep=True).strip() == words != "":
            label.replace_with(words[:LONGEST_LABEL])


def _write_drawings(tree: LexborHTMLParser) -> None:
    """Writes the label of a drawing that stands alone in a cell."""
    for drawing in tree.css(_DRAWINGS):
        title = drawing.css_first("title")
        label = drawing.attributes.get("aria-label") or (title.text() if title is not None else "")
        around = drawing.parent
        alone = around is not None and not (around.text(deep=True) or "").replace(label, "").strip()
        if alone and label and len(label) <= LONGEST_LABEL:
            drawing.replace_with(label.strip())
