"""Word documents: headings, lists with their numbers, tables, links, notes, formulas.

Deleted text, comments, field codes, headers and footers are left out.
Spec: ECMA-376 part 1, 17 (WordprocessingML) and 22.1 (Office Math)
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping
from html import escape

from searchloop.search_backend.readers._html.parts import formulas
from searchloop.search_backend.readers._html.parts.tables import GOES_ON
from searchloop.search_backend.readers.office._archive import (
    Archive,
    Handlers,
    Written,
    archive_reader,
    related,
)

_HEADING = re.compile(r"heading ?([1-6])|(title)", re.IGNORECASE)
# What was deleted or moved away, codes of fields, second boxes.
_SKIPPED = frozenset(
    ("Fallback", "del", "delText", "instrText", "moveFrom", "pPrChange", "rPrChange")
)
_BREAKS = {"tab": " ", "br": "<br>", "cr": "<br>", "noBreakHyphen": "‑", "ptab": " "}
_TABLE = {"tbl": "table", "tr": "tr", "tc": "td"}
_RAISED = {"superscript": "sup", "subscript": "sub"}
_MARKS = {"vertAlign": "", "strike": "s", "dstrike": "s", "vanish": "template"}
_is_number = re.compile(r"[0-9A-Fa-f]{2,4}").fullmatch
_OFF = ("0", "false", "off", "none")
# Signs of the font Symbol by their numbers.
_SYMBOLS = dict(enumerate("αβχδεφγηιϕκλμνοπθρστυϖωξψζ", 0x61))
_SYMBOLS |= dict(zip(b"DSW\xa3\xb0\xb1\xb3\xb4\xb9\xbb-\xae\xa5", "ΔΣΩ≤°±≥×≠≈−→∞", strict=True))
_NOTHING = re.compile(r"[_^]\{\}|\[\]")  # limits and roots that are left empty
_FORMATS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}


class _Styles:
    """What other parts say: the levels of headings, the kinds of lists, the targets of links."""

    def __init__(self, archive: Archive, main: str) -> None:
        self.levels: dict[str, int] = {}
        self.listed: dict[str, tuple[str, str]] = {}  # by style: its numId and level
        self.hidden = set[str]()  # styles whose text is not shown
        # By numId and level: the number that a list begins with, and its format.
        self.formats: dict[tuple[str, str], tuple[str, str]] = {}
        # Where the links of the part that is read lead, by id.
        self.links: dict[str, tuple[str, str]] = {}
        self._archive = archive
        folder = posixpath.dirname(main)
        parts = {"styles": self._style, "numbering": self._numbering}
        for part, start in parts.items():
            self._parse(f"{folder}/{part}.xml", start)

    def _parse(self, name: str, start: object) -> None:
        self._style_id = self._abstract = self._number = self._level = ""
        self._abstracts: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        if name in self._archive:
            self._archive.parse(name, Handlers(start))  # type: ignore[arg-type]

    def _style(self, tag: str, its: Mapping[str, str]) -> None:
        value = its.get("val", "")
        if tag == "style":
            self._style_id = its.get("styleId", "")
        elif tag == "name" and (found := _HEADING.fullmatch(value)):
            self.levels[self._style_id] = int(found[1] or 1)
        elif tag == "outlineLvl" and value.isdigit() and int(value) < 6:
            self.levels.setdefault(self._style_id, int(value) + 1)
        elif tag == "numId":
            self.listed[self._style_id] = (value, "0")
        elif tag == "vanish" and value not in _OFF:
            self.hidden.add(self._style_id)

    def _numbering(self, tag: str, its: Mapping[str, str]) -> None:
        value = its.get("val", "")
        if tag == "abstractNum":
            self._abstract = its.get("abstractNumId", "")
        elif tag == "lvl":
            self._level, self._start = its.get("ilvl", "0"), "1"
        elif tag == "start":
            self._start = value
        elif tag == "numFmt":
            self._abstracts[self._abstract][self._level] = (self._start, value)
        elif tag == "num":
            self._number, self._abstract = its.get("numId", ""), ""
        elif tag == "abstractNumId":
            known = self._abstracts[value].items()
            self.formats |= {(self._number, level): said for level, said in known}
        elif tag == "lvlOverride":
            self._level = its.get("ilvl", "0")
        elif tag == "startOverride":
            key = (self._number, self._level)
            self.formats[key] = (value, self.formats.get(key, ("", ""))[1])


class _Paragraph:
    """One paragraph while it is read."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.style = self.number = ""
        self.level = "0"


class _Formula:
    """A part of a formula while it is read: its own parts as TeX, its sign and its brackets."""

    def __init__(self, tag: str) -> None:
        self.tag, self.parts = tag, list[str]()
        self.said = {"chr": "", "begChr": "(", "endChr": ")", "sepChr": "|"}

    def written(self) -> str:
        """Returns it as TeX."""
        first, last, between = (
            formulas.signs(self.said[sign]) for sign in ("begChr", "endChr", "sepChr")
        )
        sign, parts = self.said["chr"], self.parts
        if self.tag == "acc":
            parts = [*parts[:1], formulas.ACCENTS.get(sign, r"\hat")]
        elif self.tag == "nary":
            parts = [*parts[:3], *[""] * (3 - len(parts)), formulas.signs(sign) or r"\int"]
        return formulas.filled(self.tag, parts, first, between, last)


class _Writer(Written):
    """Writes the tags of a document as HTML."""

    def __init__(self, styles: _Styles) -> None:
        super().__init__()
        self._styles = styles
        self._open = [_Paragraph()]
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._in_text, self._marks = False, list[str]()
        self._note, self._cell, self._reading = "", "th", ""
        self._lists: list[tuple[str, str]] = []  # those that are open: number and kind
        self._formulas: list[_Formula] = []

    def start(self, tag: str, its: Mapping[str, str]) -> None:  # noqa: C901 - one branch an element
        """Takes a tag that begins."""
        if self._skip or tag in _SKIPPED:
            self._skip += 1
            return
        value, now = its.get("val", ""), self._open[-1]
        if tag in ("p", "rt"):  # a reading stands before its word
            self._open.append(_Paragraph())
            self._open[-1].parts.append(self._note)
            self._note = ""
        elif tag == "rubyBase":
            now.parts.append("<ruby>")
        elif tag == "t":
            self._in_text = True
        elif tag == "r":
            self._marks = []
        elif tag in _MARKS and value not in _OFF:
            self._marks.append(_MARKS[tag] or _RAISED.get(value, "span"))
        elif tag == "rStyle" and value in self._styles.hidden:
            self._marks.append("template")
        elif tag == "pStyle":
            now.style = value
        elif tag == "ilvl":
            now.level = value
        elif tag == "numId":
            now.number = value or "0"
        elif said := _BREAKS.get(tag) or _symbol(tag, its):
            now.parts.append(said)
        elif tag == "hyperlink" and (target := self._styles.links.get(its.get("id", ""))):
            now.parts.append(f'<a href="{escape(target[1])}">')
        elif tag in ("footnoteReference", "endnoteReference"):
            now.parts.append(f"<sup>{escape(its.get('id', ''))}</sup>")
        elif tag in ("footnote", "endnote") and its.get("type", "normal") == "normal":
            self._note = f"<sup>{escape(its.get('id', ''))}</sup> "
        elif tag == "oMath" or (self._formulas and tag in formulas.OFFICE):
            self._formulas.append(_Formula(tag))
        elif self._formulas and tag in self._formulas[-1].said:
            self._formulas[-1].said[tag] = value
        elif tag in _TABLE:
            self._close_lists(0)
            if tag != "tc":
                self._cell = "th" if tag == "tbl" or self.markup[-1] == "<table>" else "td"
            self.markup.append(f"<{self._cell if tag == 'tc' else _TABLE[tag]}>")
        elif tag == "gridBefore" and value.isdigit():
            self.markup.append("<td></td>" * min(int(value), 60))
        elif tag == "gridSpan" and value.isdigit() and self.markup[-1][:2] == "<t":
            self.markup[-1] = f'{self.markup[-1][:-1]} colspan="{min(int(value), 60)}">'
        elif tag == "vMerge" and value != "restart" and self.markup[-1][:2] == "<t":
            self.markup[-1] = f'{self.markup[-1][:-1]} class="{GOES_ON}">'

    def end(self, tag: str) -> None:
        """Takes a tag that ends."""
        if self._skip:
            self._skip -= 1
        elif tag == "p" and len(self._open) > 1:
            self._write(self._open.pop())
        elif tag == "rt" and len(self._open) > 1:
            self._reading = "".join(self._open.pop().parts)
        elif tag == "rubyBase":
            self._open[-1].parts.append(f"<rt>{self._reading}</rt></ruby>")
        elif tag == "t":
            self._in_text = False
        elif tag == "hyperlink":
            self._open[-1].parts.append("</a>")
        elif self._formulas and tag == self._formulas[-1].tag:
            made = self._formulas.pop().written()
            if not self._formulas:
                made = self.escaped(f"${_NOTHING.sub('', made)}$")
            (self._formulas or self._open)[-1].parts.append(made)
        elif tag in _TABLE:
            self._close_lists(0)
            self.markup.append(f"</{_TABLE[tag]}>")

    def text(self, words: str) -> None:
        """Takes text, of which that of runs counts."""
        if not self._in_text or self._skip:
            return
        if self._formulas:
            self._formulas[-1].parts.append(formulas.signs(words.strip()))
            return
        words = self.escaped(words)
        for mark in self._marks:
            words = f"<{mark}>{words}</{mark}>"
        self._open[-1].parts.append(words)

    def _write(self, done: _Paragraph) -> None:
        inner = "".join(done.parts)
        if not inner.strip() or done.style in self._styles.hidden:
            return
        level = self._styles.levels.get(done.style)
        if level is None and (found := _HEADING.fullmatch(done.style)):
            level = int(found[1] or 1)
        number, depth = done.number, done.level
        if not number and level is None:
            number, depth = self._styles.listed.get(done.style, ("", depth))
        if not level and number not in ("", "0"):
            self._write_item(number, min(int(depth), 8) if depth.isdigit() else 0, inner)
            return
        self._close_lists(0)
        self.markup.append(f"<h{level}>{inner}</h{level}>" if level else f"<p>{inner}</p>")

    def _write_item(self, number: str, depth: int, inner: str) -> None:
        """Writes an item with the number that Word shows."""
        counts = self._counts[number]
        start, form = self._styles.formats.get((number, str(depth)), ("1", ""))
        first = int(start) if start.isdigit() else 1
        counts[depth] = counts.get(depth, first - 1) + 1
        for deeper in [one for one in counts if one > depth]:
            del counts[deeper]
        kind = "ul" if form in ("bullet", "none") else "ol"
        same = self._lists[depth : depth + 1] == [(number, kind)]
        self._close_lists(depth + same)
        self.markup.append("</li>" * same)
        while len(self._lists) < depth:
            self.markup.append("<ul><li>")
            self._lists.append(("", "ul"))
        if not same:
            said = _FORMATS.get(form, "1")
            self.markup.append(f'<{kind} start="{counts[depth]}" type="{said}">')
            self._lists.append((number, kind))
        self.markup.append(f"<li>{inner}")

    def _close_lists(self, left: int) -> None:
        while len(self._lists) > left:
            self.markup.append(f"</li></{self._lists.pop()[1]}>")


def _symbol(tag: str, its: Mapping[str, str]) -> str:
    """Returns a sign that is written by its number in the font Symbol; "" for anything else."""
    is_sign = tag == "sym" and its.get("font") == "Symbol" and _is_number(its.get("char", ""))
    return _SYMBOLS.get(int(its["char"][-2:], 16), "\ufffd") if is_sign else ""


def _markup(archive: Archive) -> tuple[str, str]:
    parts = related(archive, "").values()
    main = next((name for kind, name in parts if kind == "officeDocument"), "word/document.xml")
    writer = _Writer(styles := _Styles(archive, main))
    folder = posixpath.dirname(main)
    for part in (main, f"{folder}/footnotes.xml", f"{folder}/endnotes.xml"):
        if part == main or part in archive:
            styles.links = related(archive, part)
            archive.parse(part, Handlers(writer.start, writer.end, writer.text))
    return archive.texts("docProps/core.xml").get("title", ""), "".join(writer.markup)


READER = archive_reader(
    _markup,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".docx .docm .dotx",
    *(b"[Content_Types].xml", b"word/"),
)
