"""Presentations of PowerPoint: title, text, tables and notes of each slide that is shown.

Spec: ECMA-376 part 1, 19 (PresentationML) and 21 (DrawingML)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from searchloop.search_backend.readers._html.parts.tables import GOES_ON
from searchloop.search_backend.readers.office._archive import (
    Archive,
    Handlers,
    Written,
    archive_reader,
    related,
)

_MAIN = "ppt/presentation.xml"
_TABLE = {"tbl": "table", "tr": "tr"}
_TITLES = frozenset({"title", "ctrTitle"})
_LEFT_OUT = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # the same on each slide


class _Slide(Written):
    """Writes one slide, or its notes, as HTML."""

    def __init__(self, *, notes: bool = False) -> None:
        super().__init__()
        self._notes, self._kind, self._cells, self._cell = notes, "", 0, "th"
        self._words: list[str] = []
        self._in_text, self._raised = False, ""

    def start(self, tag: str, its: Mapping[str, str]) -> None:
        """Takes a tag that begins."""
        hidden = tag == "sld" and its.get("show") in ("0", "false")
        merged = tag == "tc" and its.get("hMerge") == "1"
        if self._skip or hidden or merged:
            self._skip += 1
        elif tag == "sp":
            self._kind = ""
        elif tag == "ph":
            self._kind = its.get("type", "body")
        elif tag in _TABLE:
            self._cell = "th" if tag == "tbl" else self._cell
            self.markup.append(f"<{_TABLE[tag]}>")
        elif tag == "tc":
            self._cells += 1
            span = its.get("gridSpan", "1")
            more = f' colspan="{min(int(span), 60)}"' if span.isdigit() and span != "1" else ""
            more += f' class="{GOES_ON}"' if its.get("vMerge") == "1" else ""
            self.markup.append(f"<{self._cell}{more}>")
        elif tag == "r":
            self._raised = ""
        elif tag == "rPr" and (shift := its.get("baseline", "0")).strip("0%"):
            self._raised = "sub" if shift[0] == "-" else "sup"
        elif tag == "br":
            self._words.append("<br>")
        elif tag == "t":
            self._in_text = True

    def end(self, tag: str) -> None:
        """Takes a tag that ends."""
        if self._skip:
            self._skip -= 1
        elif tag == "t":
            self._in_text = False
        elif tag == "p":
            self._write("".join(self._words).strip())
            self._words = []
        elif tag == "tc":
            self._cells -= 1
            self.markup.append(f"</{self._cell}>")
        elif tag in _TABLE:
            self._cell = "td"  # the first row is the head
            self.markup.append(f"</{_TABLE[tag]}>")

    def text(self, words: str) -> None:
        """Takes text, of which that of runs counts."""
        if self._in_text and not self._skip:
            said, tag = self.escaped(words), self._raised
            self._words.append(f"<{tag}>{said}</{tag}>" if tag else said)

    def _write(self, words: str) -> None:
        if not words or self._kind in _LEFT_OUT:
            return
        tag = "h2" if self._kind in _TITLES and not self._notes else "p"
        self.markup.append(f"{words}<br>" if self._cells else f"<{tag}>{words}</{tag}>")


def _markup(archive: Archive) -> tuple[str, str]:
    links, order = related(archive, _MAIN), list[str]()

    def start(tag: str, its: Mapping[str, str]) -> None:
        if tag == "sldId" and (found := links.get(its.get("id", ""))):
            order.append(found[1])

    archive.parse(_MAIN, Handlers(start))
    slides = {path for kind, path in links.values() if kind == "slide"}
    order = order or sorted(slides, key=lambda path: int("0" + re.sub(r"\D", "", path)))
    markup = list[str]()
    for path in order:
        slide = _Slide()
        archive.parse(path, Handlers(slide.start, slide.end, slide.text))
        markup += slide.markup
        for kind, other in related(archive, path).values() if slide.markup else ():
            if kind == "notesSlide":
                notes = _Slide(notes=True)
                archive.parse(other, Handlers(notes.start, notes.end, notes.text))
                markup += notes.markup
    return archive.texts("docProps/core.xml").get("title", ""), "".join(markup)


READER = archive_reader(
    _markup,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".pptx .pptm .ppsx",
    _MAIN.encode(),
)
