"""A parsed page as a visitor sees it, before it is cut into blocks.

What a visitor sees but what is no text in the page becomes text in its place: formulas, boxes to
tick, drawings in cells. Then what is hidden goes, and the columns of tables stay where they are.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.hidden import remove_hidden
from searchloop.search_backend.readers._html.parts.formulas import write_formulas

_CHECKBOXES = "li [type=checkbox],td [type=checkbox]"
# One search that begins at each "<": a search for each of these names takes three times as long.
_may_show = re.compile(
    r"<(?=[mMsSiIdt])(?:(?i:(?:m(?:ml)?:)?math|svg|input)[\s>]|mjx-|script [^>]{0,60}math/tex"
    r"|span (?:(?:id|role)=\S+ )?class=[\"']?(?:katex|sfrac|mwe-math|mw-editsection|ltx_note)"
    r"|div class=[\"']?(?:(?:react-)?line-numbers|fragment|language-)|th [^>]{0,40}filename)"
).search
_UNSEEN = ".mw-editsection,.ltx_tag_note,.ltx_note_content>.ltx_note_mark"
_CELLS = "span[role^=row],span[role$=cell],span[role$=header],span[class*=ltx_t]"
_OF_PAPERS = {"ltx_tabular": "table", "ltx_tr": "row", "ltx_td": "cell", "ltx_th": "columnheader"}
_LINES = "pre,.react-file-line"
_LABELS = ("sr-only", "visually-hidden", "screen-reader-text")
LONGEST_LABEL = 40
# Lines of a page; each takes an element.
MOST_TYPED = 5_000
is_typed = re.compile(r"white-space: ?(?:pre|break)").search


def show(tree: LexborHTMLParser, markup: str) -> None:
    """Changes `tree`, which was parsed from `markup`."""
    if _may_show(markup):
        write_formulas(tree)
        _write_checkboxes(tree)
        _write_drawings(tree)
        _put_code_in_order(tree)
        for node in tree.css(_UNSEEN):
            node.remove()
        for mark in tree.css(".sfrac .sr-only"):
            mark.replace_with("/" if "/" in mark.text() else " ")
        for fraction in tree.css(".sfrac"):
            before = fraction.prev.text() if fraction.prev is not None else ""
            if before[-1:].isdigit() and not fraction.text().startswith(" "):
                fraction.insert_before(" ")
        for note in tree.css(".ltx_note_outer"):  # behind its mark, in LaTeXML
            note.insert_before(" (")
            note.insert_after(")")
    if "<td" in markup:
        _write_labels(tree, markup)
    if "columnheader" in markup or '<span class="ltx_t' in markup:
        for cell in reversed(tree.css(_CELLS)):
            name = (cell.attributes.get("class") or "").partition(" ")[0]
            role = cell.attributes.get("role") or _OF_PAPERS.get(name)
            if role is None:
                continue
            inside = cell.inner_html
            made = LexborHTMLParser(f'<div role="{role}">{inside}</div>').css("div")
            cell.replace_with(made[0])
    remove_hidden(tree).write_shapes()
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
    for label in tree.css("div[class*=language-]>span.lang"):  # the fence says it
        label.remove()
    for line in tree.css("div.fragment>div.line:first-child"):  # of Doxygen
        line.parent.attrs["class"] = "hljs"
    for numbers in tree.css("div.line-numbers,div.react-line-numbers"):
        code = numbers.next
        while code is not None and not code.is_element_node:
            code = code.next
        is_beside = code is not None and (code.tag == "pre" or code.css_first(_LINES) is not None)
        if is_beside and re.fullmatch(r"[\d\s]+", numbers.text(deep=True)):
            numbers.remove()
    for name in tree.css("table.highlighttable th.filename"):
        row, table = _around(name, "tr"), _around(name, "table")
        if row is not None and table is not None:
            table.insert_before(name.text(deep=True))
            row.remove()


def _around(node: LexborNode, tag: str) -> LexborNode | None:
    around = node.parent
    while around is not None and around.tag != tag:
        around = around.parent
    return around


def _write_labels(tree: LexborHTMLParser, markup: str) -> None:
    """Shows the words for screen readers that say alone what the sign in a cell means."""
    for name in _LABELS:
        for label in tree.css(f"td .{name}") if name in markup else ():
            cell, words = _around(label, "td"), label.text(deep=True).strip()
            if cell is not None and cell.text(deep=True).strip() == words != "":
                label.replace_with(words[:LONGEST_LABEL])


def _write_drawings(tree: LexborHTMLParser) -> None:
    """Writes the label of a drawing that stands alone in a cell."""
    for drawing in tree.css("td svg,th svg"):
        title = drawing.css_first("title")
        label = drawing.attributes.get("aria-label") or (title.text() if title is not None else "")
        around = drawing.parent
        alone = around is not None and not (around.text(deep=True) or "").replace(label, "").strip()
        if alone and label and len(label) <= LONGEST_LABEL:
            drawing.replace_with(label.strip())
