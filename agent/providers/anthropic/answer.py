"""The answer as it grows: its text, then its citations and sources.

The server splits an answer into many text blocks and cites whole blocks, so a citation's range is
that of its block. Blocks are joined as they are; where something else stands between them (a
search, a call), a blank line keeps two sentences apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent.cited import numbered
from agent.residue import Residue
from agent.types import Citation, Mark

JOINER = "\n\n"
Locate = Callable[[Mapping[str, Any]], tuple[str, str] | None]


class _Stretch:
    """Text blocks in a row; marks of other makers are taken out across their borders."""

    __slots__ = ("base", "raw", "residue")

    def __init__(self) -> None:
        self.residue = Residue()
        self.base: int | None = None  # where it begins in the answer
        self.raw = 0

    def place(self, raw: int) -> int:
        return (self.base or 0) + self.residue.position(raw)


class Answer:
    """The text of one response, block by block."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._length = 0
        self._stretch: _Stretch | None = None
        self._blocks: list[tuple[_Stretch, int, int, list[Mapping[str, Any]]]] = []
        self._began = 0

    @property
    def text(self) -> str:
        """What was shown so far."""
        return "".join(self._shown)

    def begin(self) -> None:
        """A text block begins."""
        if self._stretch is None:
            self._stretch = _Stretch()
        self._began = self._stretch.raw

    def add(self, piece: str) -> str:
        """More of the block that began. Returns what can be shown now."""
        stretch = self._stretch
        if stretch is None:
            return ""
        stretch.raw += len(piece)
        text = stretch.residue.feed(piece)
        if stretch.base is None:
            return self._show(stretch, text)
        if text:
            self._shown.append(text)
            self._length += len(text)
        return text

    def end(self, citations: Iterable[Mapping[str, Any]]) -> None:
        """The block is done; its citations are for all of it."""
        notes = list(citations)
        if notes and self._stretch is not None:
            self._blocks.append((self._stretch, self._began, self._stretch.raw, notes))

    def interrupt(self) -> str:
        """Something other than text comes, or nothing more. Returns what was held back."""
        stretch, self._stretch = self._stretch, None
        return self._show(stretch, stretch.residue.close()) if stretch else ""

    def citations(self, locate: Locate) -> tuple[Citation, ...]:
        """The cited addresses, numbered by first appearance; `locate` gives address and title."""
        found: list[tuple[Mark, str, str]] = []
        for stretch, begin, end, notes in self._blocks:
            first, last = stretch.place(begin), min(stretch.place(end), self._length)
            span = (first, last) if first < last else None
            for note in notes:
                page = locate(note)
                if page is not None:
                    quote = note.get("cited_text")
                    quote = quote if isinstance(quote, str) and quote.strip() else None
                    found.append((Mark(span, quote), *page))
        return numbered(found)

    def _show(self, stretch: _Stretch, text: str) -> str:
        if not text:
            return ""
        if stretch.base is None:
            before = self._shown[-1][-1] if self._shown else " "
            joiner = "" if before.isspace() or text[0].isspace() else JOINER
            stretch.base = self._length + len(joiner)
            text = joiner + text
        self._shown.append(text)
        self._length += len(text)
        return text
