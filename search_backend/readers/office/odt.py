"""OpenDocument texts: headings, lists, tables, links, notes; without deleted text and comments.

Spec: OASIS OpenDocument 1.3 part 3
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from searchloop.search_backend.readers.office._archive import (
    LOCKED,
    Archive,
    Handlers,
    UnreadableDocument,
    Written,
    archive_reader,
)

_KIND = "application/vnd.oasis.opendocument.text"
_SKIPPED = frozenset(
    ("annotation", "tracked-changes", "note-citation", "forms", "covered-table-cell")
)
_MOST_REPEATED = 60  # a table may be padded to a million columns
_TAGS = {"list-item": "li", "table": "table", "table-row": "tr", "table-header-rows": "thead"}
_SPANS = (("number-columns-spanned", "colspan"), ("number-rows-spanned", "rowspan"))


class _Writer(Written):
    """Writes the tags of a document as HTML."""

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[str] = []
        self._numbered: dict[tuple[str, str], str] = {}  # by style and level: <ol> with attributes
        self._marks: dict[str, str] = {}  # by style: how its text is marked
        self._lists: list[str] = []  # the styles of those that are open
        self._style, self._body = "", False

    def start(self, tag: str, its: Mapping[str, str]) -> None:
        """Takes a tag that begins."""
        if self._skip or tag in _SKIPPED or its.get("is-hidden") == "true":
            self._skip += 1
            return
        if tag in ("list-style", "style"):
            self._style = its.get("name", "")
        elif tag == "list-level-style-number":
            start, form = its.get("start-value", "1"), its.get("num-format", "1")
            said = f'<ol start="{escape(start)}" type="{escape(form)}">'
            self._numbered[self._style, its.get("level", "1")] = said
        elif tag == "text-properties":
            place = (its.get("text-position") or "0").split()[0]
            raised = "sub" if place[0] == "-" or place == "sub" else "sup" * bool(place.strip("0%"))
            is_struck = its.get("text-line-through-style", "none") != "none"
            is_hidden = its.get("display") == "none"
            self._marks[self._style] = "template" if is_hidden else "s" if is_struck else raised
        begin, end = self._written(tag, its)
        self.markup.append(begin)
        self._ends.append(end)
        self._body = self._body or tag == "body"

    def _written(self, tag: str, its: Mapping[str, str]) -> tuple[str, str]:
        if tag == "h":
            level = its.get("outline-level", "1")
            level = level if level in "123456" else "6"
            return f"<h{level}>", f"</h{level}>"
        if tag == "p":
            return ("", "") if ")</small> " in self._ends else ("<p>", "</p>")
        if tag == "list":
            self._lists.append(its.get("style-name") or (self._lists or [""])[-1])
            begin = self._numbered.get((self._lists[-1], str(len(self._lists))), "<ul>")
            return begin, f"</{begin[1:3]}>"
        if tag == "table-cell":
            times = its.get("number-columns-repeated", "1")
            more = min(int(times), _MOST_REPEATED) - 1 if times.isdigit() else 0
            spans = "".join(f' {name}="{escape(its.get(said, "1"))}"' for said, name in _SPANS)
            return f"<td{spans}>", "</td>" + "<td></td>" * more
        if tag == "span" and (mark := self._marks.get(its.get("style-name", "-"))):
            return f"<{mark}>", f"</{mark}>"
        if tag == "a":
            return f'<a href="{escape(its.get("href", ""))}">', "</a>"
        if tag == "s":
            return " ", ""
        if tag in ("tab", "line-break"):
            return (" ", "") if tag == "tab" else ("<br>", "")
        if tag == "note":
            return " <small>(", ")</small> "
        name = _TAGS.get(tag)
        return (f"<{name}>", f"</{name}>") if name else ("", "")

    def end(self, tag: str) -> None:
        """Takes a tag that ends."""
        if self._skip:
            self._skip -= 1
            return
        if tag == "list":
            self._lists.pop()
        self.markup.append(self._ends.pop())

    def text(self, words: str) -> None:
        """Takes text."""
        if self._body and not self._skip:
            self.markup.append(self.escaped(words))


def _markup(archive: Archive) -> tuple[str, str]:
    manifest = "META-INF/manifest.xml"
    if manifest in archive and b"encryption-data" in archive.read(manifest):
        raise UnreadableDocument(LOCKED)
    writer = _Writer()
    for part in ("styles.xml", "content.xml"):
        if part != "styles.xml" or part in archive:
            archive.parse(part, Handlers(writer.start, writer.end, writer.text))
    return archive.texts("meta.xml").get("title", ""), "".join(writer.markup)


READER = archive_reader(_markup, _KIND, ".odt .ott .fodt", b"mimetype" + _KIND.encode())
