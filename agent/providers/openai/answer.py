"""The answer as it grows: its text in the order of reading, then its citations.

The text shown is the joined text of all parts without vendor marks, a blank line between message
items. One part is shown as it streams; others wait until it is done, so that what was shown is
always a beginning of the final text. Offsets of citations count in the part as the server wrote it,
and are checked, moved and mapped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.cited import numbered
from agent.residue import Residue
from agent.spans import locate, widen
from agent.types import Citation, Mark

Key = tuple[int, int]
JOINER = "\n\n"


class Part:
    """One content part: its pieces as they came, and where it begins in the answer."""

    __slots__ = ("annotations", "base", "done", "key", "raw", "residue")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.raw: list[str] = []
        self.residue = Residue()
        self.base: int | None = None
        self.done = False
        self.annotations: list[Any] = []


class Answer:
    """Text parts of one response, by (output index, content index)."""

    def __init__(self) -> None:
        self._parts: dict[Key, Part] = {}
        self._shown: list[str] = []
        self._open: Part | None = None
        self._last_item: int | None = None

    @property
    def text(self) -> str:
        """What was shown so far."""
        return "".join(self._shown)

    def add(self, key: Key, piece: str) -> str:
        """More of a part. Returns what can be shown of it now."""
        part = self._open
        if part is None or part.key != key:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = Part(key)
            if part.done:
                return ""
            if self._open is None:
                self._open = part
            elif self._open is not part:
                part.raw.append(piece)
                return ""
        part.raw.append(piece)
        text = part.residue.feed(piece)
        if part.base is None:
            return self._show(part, text)
        self._shown.append(text)
        return text

    def finish(self, key: Key, full: str, annotations: Iterable[Any]) -> str:
        """The end of a part with its whole text. Returns what was not shown yet."""
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = Part(key)
        if annotations:
            part.annotations = list(annotations)
        if part.done:
            return ""
        streamed = "".join(part.raw)
        missing = full[len(streamed) :] if full.startswith(streamed) else ""
        shown = self.add(key, missing) if missing else ""
        part.done = True
        if self._open is not None and self._open is not part:
            return shown
        return shown + self._close(part) + self._show_waiting()

    def end(self) -> str:
        """No more parts will come. Returns what was not shown yet."""
        rest = ""
        for key in sorted(self._parts):
            rest += self.finish(key, "", ())
        return rest

    def citations(self) -> tuple[Citation, ...]:
        """The cited addresses, numbered by first appearance in the text."""
        text = self.text
        found: list[tuple[Mark, str, str]] = []
        for part in self._parts.values():
            raw = "".join(part.raw)
            for note in part.annotations:
                if not _is_citation(note):
                    continue
                span = self._span(part, raw, note, text)
                found.append((Mark(span), note["url"], note.get("title") or ""))
        return numbered(found)

    def _span(
        self, part: Part, raw: str, note: Mapping[str, Any], text: str
    ) -> tuple[int, int] | None:
        start, end = _number(note.get("start_index")), _number(note.get("end_index"))
        where = locate(raw, start, end, note["url"])
        if where is None or part.base is None:
            return None
        first, last = (part.base + part.residue.position(at) for at in where)
        last = min(last, len(text))
        return (first, last) if first < last else widen(text, min(first, len(text)))

    def _show(self, part: Part, text: str) -> str:
        if not text:
            return ""
        if part.base is None:
            item = part.key[0]
            joiner = JOINER if self._last_item not in (None, item) else ""
            self._last_item = item
            part.base = sum(map(len, self._shown)) + len(joiner)
            text = joiner + text
        self._shown.append(text)
        return text

    def _close(self, part: Part) -> str:
        if self._open is part:
            self._open = None
        return self._show(part, part.residue.close())

    def _show_waiting(self) -> str:
        """Parts that came meanwhile, in order, up to one that is not done yet."""
        shown = ""
        for key in sorted(self._parts):
            part = self._parts[key]
            if part.base is None and part.raw and self._open is None:
                self._open = part
                shown += self._show(part, part.residue.feed("".join(part.raw)))
                if part.done:
                    shown += self._close(part)
        return shown


def _is_citation(note: Any) -> bool:
    return (
        isinstance(note, dict)
        and note.get("type") == "url_citation"
        and isinstance(note.get("url"), str)
        and bool(note["url"])
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
