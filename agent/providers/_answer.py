"""Collects what an answer shows: its text without vendor marks, its thinking, places in the text.

Servers write text in stretches: parts, blocks, text between two calls. A blank line separates two
stretches. Offsets of citations count in a stretch as the server wrote it; removed marks shift them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchloop.agent.search.citations import sources, widen
from searchloop.agent.search.vendor_marks import Residue
from searchloop.agent.types import (
    Citation,
    Message,
    ProviderData,
    Source,
    Span,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
)

JOINER = "\n\n"
NO_DETAILS: Mapping[str, Any] = {}


class Stretch:
    """Text that the server wrote in one go; marks are removed across its pieces."""

    def __init__(self, always: bool = False) -> None:
        self.apart = True  # a blank line separates it from the text before,
        self.always = always  # even if blanks do
        self.size = 0
        self.base: int | None = None  # where it begins in the shown text
        self.residue = Residue()
        self._pieces: list[str] = []

    @property
    def raw(self) -> str:
        """The text as the server wrote it."""
        return "".join(self._pieces)

    def add(self, piece: str) -> str:
        """Adds a piece, and returns it."""
        self._pieces.append(piece)
        self.size += len(piece)
        return piece


class ShownAnswer:
    """The text and the thinking of one answer. Its methods return what can be shown now."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._length = 0
        self._thinking: list[str] = []
        self._section: object = None

    @property
    def text(self) -> str:
        """The text shown so far."""
        return "".join(self._shown)

    @property
    def thinking(self) -> str:
        """The thinking shown so far."""
        return "".join(self._thinking)

    def think(self, text: str, section: object = None) -> str:
        """Adds thinking; another section begins a paragraph."""
        if text:
            text = JOINER + text if self._thinking and section != self._section else text
            self._section = section
            self._thinking.append(text)
        return text

    def show(self, stretch: Stretch, piece: str) -> str:
        """Shows more of a stretch, up to what may become a mark."""
        return self.put(stretch, stretch.residue.feed(piece))

    def close(self, stretch: Stretch) -> str:
        """Shows the rest of a stretch."""
        return self.put(stretch, stretch.residue.close())

    def place(self, stretch: Stretch, at: int) -> int:
        """Maps an offset in a stretch to one in the shown text."""
        return min((stretch.base or 0) + stretch.residue.position(at), self._length)

    def message(
        self,
        calls: tuple[ToolCall, ...],
        citations: tuple[Citation, ...],
        consulted: Iterable[Source],
        data: ProviderData | None,
        details: Mapping[str, Any] = NO_DETAILS,
    ) -> Message:
        """Returns the whole answer; `consulted` are the pages that the server read or found."""
        return Message(
            "assistant",
            self.text,
            thinking=self.thinking,
            tool_calls=calls,
            details=details,
            citations=citations,
            sources=sources(consulted, citations),
            provider_data=data,
        )

    def span(self, first: int, last: int) -> Span | None:
        """Returns the cited range, or its sentence if only a mark was cited."""
        return (first, last) if first < last else widen(self.text, first)

    def put(self, stretch: Stretch, text: str) -> str:
        """Shows text of a stretch in which no marks are left."""
        if text:
            if stretch.base is None:
                apart = stretch.apart and bool(self._shown)
                blank = apart and (self._shown[-1][-1].isspace() or text[0].isspace())
                joined = not apart or (blank and not stretch.always)
                stretch.base = self._length + (0 if joined else len(JOINER))
                text = text if joined else JOINER + text
            self._shown.append(text)
            self._length += len(text)
        return text


def said(text: str) -> Iterable[StreamEvent]:
    """Returns the event for text that is shown."""
    return (TextDelta(text),) if text else ()


def thought(text: str) -> Iterable[StreamEvent]:
    """Returns the event for thinking that is shown."""
    return (ThinkingDelta(text),) if text else ()
