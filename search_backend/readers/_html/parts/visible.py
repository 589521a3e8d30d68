"""A parsed page as a visitor sees it, before it is cut into blocks.

What a visitor sees but what is no text in the page becomes text in its place: formulas, boxes to
tick, drawings in cells. Then what is hidden goes, and the columns of tables stay where they are.
"""

from __future__ import annotations

import re
from html import escape, unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.hidden import INLINE, remove_hidden
from searchloop.search_backend.readers._html.parts import MORE, SELECTORS
from searchloop.search_backend.readers._html.parts.formulas import FORMULAS, write_formulas
from searchloop.search_backend.readers._html.parts.inline import is_of_formula
from searchloop.search_backend.readers._html.styles import Cascade, names_of
from searchloop.search_backend.readers._html.visibility import words

_OF_PAPERS = {"ltx_tabular": "table", "ltx_tr": "row", "ltx_td": "cell", "ltx_th": "columnheader"}
_MAY_SHOW = ",".join((FORMULAS, *SELECTORS.values()))
# Each with the classes that a page must have for it.
_WITH_NAMES = [(one, set(re.findall(r"\.[\w-]+", one))) for one in _MAY_SHOW.split(",")]
_ROWS_LAID = frozenset(("flex", "inline-flex", "grid", "inline-grid"))
_LINES_LAID = frozenset(("block", "table", "list-item", "flex", "grid"))
# A picture of facts is told in a sentence with two numbers, or is called so.
_TELLS = re.compile(
    r"\d\D*\s\D*\d|(?i:chart|graph\b|diagram|grafik|gráfic|graphique|schéma)|[图図]"
)
_LEAST_BLANKS = 4
_PICTURED = ("td", "th", "h1", "h2", "h3")
_DECORATION = re.compile(
    r"(?i)\b(?:logo|icon|image|photo|avatar|spacer|thumb\w*|picture)\b|\.\w{3,4}$|^\W?$"
)
_LEAST_AROUND = 20  # characters of a sentence around a date; one alone is of a list or a byline
_DATE = re.compile(r"(\d{4})-\d\d(?:-\d\d)?")


def show(tree: LexborHTMLParser) -> None:
    """Changes `tree`."""
    # All at once: one search of the tree tells that an ordinary page has none of them.
    named = frozenset(names_of(tree))
    likely = [one for one, names in _WITH_NAMES if names <= named]
    is_ordinary = tree.css_first(",".join(likely)) is None
    if not is_ordinary:
        write_formulas(tree)
        _write_checkboxes(tree)
        _put_code_in_order(tree)
        for code in tree.css(SELECTORS["read_aloud"]):
            del code.attrs["aria-hidden"]
        for node in tree.css(SELECTORS["unseen"]):
            node.remove()
        _write_pictures(tree)
        for mark in tree.css(SELECTORS["fractions"]):
            mark.replace_with("⁄" if "/" in mark.text() else " ")
        for note in tree.css(SELECTORS["notes"]):  # behind its mark, in LaTeXML
            note.insert_before(" (")
            note.insert_after(")")
        for cell in reversed(tree.css(SELECTORS["cells"])):
            name = (cell.attributes.get("class") or "").partition(" ")[0]
            if role := cell.attributes.get("role") or _OF_PAPERS.get(name):
                inside = f'<div role="{role}">{cell.inner_html}</div>'
                cell.replace_with(LexborHTMLParser(inside).css("div")[0])
    _write_figures_and_dates(tree)
    cascade = remove_hidden(tree, Cascade(tree, named))
    cascade.write_shapes()
    _keep_apart(tree, cascade)


def _write_pictures(tree: LexborHTMLParser) -> None:
    """Writes the words for pictures of cells and headings where they are content: Yes, No."""
    texts: dict[int, str] = {}
    for picture in tree.css(SELECTORS["pictures"]):
        name = picture.attributes.get
        said = name("alt") or name("aria-label") or name("title") or ""
        for title in picture.css("title"):
            said = said or title.text()
            title.remove()
        cell = picture.parent
        while cell is not None and cell.tag not in _PICTURED:
            cell = cell.parent
        if cell is None:  # inside another picture
            continue
        if cell.mem_id not in texts:
            texts[cell.mem_id] = " ".join(cell.text(deep=True).split()).casefold()
        text = texts[cell.mem_id]
        is_label = picture.tag not in ("img", "svg")
        most = 15 if text else 40 if is_label else 100
        is_told = text and (
            is_label
            or said.casefold() in text
            or text in said.casefold()
            or _DECORATION.search(said)
        )
        if len(said) <= most and not is_told and not is_of_formula(picture.html or ""):
            (picture.insert_after if is_label else picture.replace_with)(f" {said} ")


def _write_figures_and_dates(tree: LexborHTMLParser) -> None:
    """Writes what a figure shows, if its page says that, and the date that words stand for."""
    for node in tree.css("figure img[alt],figure svg,time[datetime]"):
        get = node.attributes.get
        drawn = " ".join(part.text() for part in node.css("title,desc"))
        said = " ".join(unescape(get("alt") or get("aria-label") or drawn).split())
        if node.tag != "time":
            is_listed = any(_around(node, tag) is not None for tag in ("a", "li", "td"))
            if said.count(" ") >= _LEAST_BLANKS and _TELLS.search(said) and not is_listed:
                note = LexborHTMLParser(f'<p class="searchloop-figure">Image: {escape(said)}</p>')
                node.insert_after(note.css("p")[0])
        elif date := _DATE.match(get("datetime") or ""):
            text = (node.text(deep=True) or "").strip()
            around = node.parent.text(deep=True) if node.parent is not None else ""
            if date[1] not in text and len(around) >= len(text) + _LEAST_AROUND:
                node.insert_child(f" ({date[0]})" if text else date[0])


def _keep_apart(tree: LexborHTMLParser, cascade: Cascade) -> None:
    """Tells what stands on a line of its own, and puts a blank between the words of a row.

    The letters of one word may be items of a row, too.
    """
    rows = {node.mem_id: node for node in tree.css(MORE["rows"])}
    apart = [one for one in tree.css(MORE["read_aloud"]) if re.search(r"[^\W\d_]", one.text())]
    for place, style in cascade.styles.items():
        node, shown = cascade.nodes[place], words(style, "display")
        if not shown.isdisjoint(_ROWS_LAID):
            rows[node.mem_id] = node
        is_line = not shown.isdisjoint(_LINES_LAID) or "right" in words(style, "float")
        if is_line and node.tag in INLINE:
            node.attrs["style"] = f"{node.attributes.get('style') or ''};display:block"
            apart.append(node)
    for node in apart:
        if all(_around(node, tag) is None for tag in ("pre", "code")):
            node.insert_before(" ")
            node.insert_after(" ")
    for row in rows.values():
        before = ""
        for item in [*row.iter(include_text=True)]:
            text = (item.text(deep=True) or "") if item.is_text_node or item.tag in INLINE else ""
            is_apart = item.is_element_node and before[-1:].isalnum() and text[:1].isalnum()
            if not cascade.pay(1 + len(text) // 64):
                return
            if is_apart and len(before) + len(text) > 2 and _around(item, "pre") is None:
                item.insert_before(" ")
            before = text if item.is_element_node else ""


def _write_checkboxes(tree: LexborHTMLParser) -> None:
    for box in tree.css(SELECTORS["boxes"]):
        mark, label = "[x] " if box.css_matches(MORE["ticked"]) else "[ ] ", box.parent
        if box.tag == "li":
            while (inside := next(box.iter(include_text=True), None)) is not None:
                box = inside
            box.insert_before(mark)
        elif label is not None and label.tag == "label" and not label.text().strip():
            label.replace_with(mark)
        elif box.text(deep=True).strip():
            box.insert_before(mark)
        else:
            box.replace_with(mark)


def _put_code_in_order(tree: LexborHTMLParser) -> None:
    """Removes numbers of lines beside some code."""
    for label in tree.css(SELECTORS["language"]):  # the fence says it
        label.remove()
    for line in tree.css(SELECTORS["lines"]):
        while (whole := line.parent) is not None and whole.tag in ("li", "tr", "tbody"):
            line = whole
        if whole is not None:
            whole.attrs["class"] = "hljs"
    for numbers in tree.css(SELECTORS["numbers"]):
        code = numbers.next
        while code is not None and not code.is_element_node:
            code = code.next
        is_beside = code is not None and (code.tag == "pre" or code.css_first(MORE["code"]))
        if is_beside and re.fullmatch(r"[\d\s]+", numbers.text(deep=True)):
            numbers.remove()


def _around(node: LexborNode, tag: str) -> LexborNode | None:
    around = node.parent
    while around is not None and around.tag != tag:
        around = around.parent
    return around
