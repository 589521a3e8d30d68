"""The text and the thinking of an answer, as they are shown while it streams.

Models whose template the server does not parse print `<think>...</think>` before they answer. Only
a block at the start, or right after another one, counts: an answer may talk *about* the tag. Some
templates open the block inside the prompt, so that only `</think>` is printed: see `split_late`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.calls.as_text import TextCalls
from searchloop.agent.providers._wire import number, text_in
from searchloop.agent.search.citations import locate, sources, widen
from searchloop.agent.search.vendor_marks import Residue, Seen
from searchloop.agent.text import well_formed
from searchloop.agent.types import (
    Citation,
    Mark,
    Message,
    ProviderData,
    Source,
    Span,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolSpec,
)
from searchloop.analysis.characters import visible

_Named = TypeVar("_Named", Source, Citation)
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
        self._half = ""  # of a surrogate pair

    @property
    def raw(self) -> str:
        """The text as the server wrote it."""
        return "".join(self._pieces)

    def add(self, piece: str) -> str:
        """Adds a piece, and returns it; half a surrogate pair waits for the other half."""
        if self._half or not piece.isascii():
            piece = self._half + piece
            self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
            piece = well_formed(piece.removesuffix(self._half))
        self._pieces.append(piece)
        self.size += len(piece)
        return piece


class ShownAnswer:
    """The text and the thinking of one answer. Its methods return what can be shown now."""

    def __init__(self) -> None:
        self.native = True  # the provider searches, so numbers in marks are not ours
        self._shown: list[str] = []
        self._length = 0
        self._thinking: list[str] = []
        self._section: object = None
        self._open: Stretch | None = None

    @property
    def started(self) -> bool:
        """True once something was shown."""
        return bool(self._shown or self._thinking)

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
        self._open = stretch
        stretch.residue.numbered = self.native
        return self.put(stretch, stretch.residue.feed(piece))

    def held(self) -> str:
        """Shows the rest of the last stretch, because no more will come."""
        return self.close(self._open) if self._open else ""

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
        citations = tuple(map(_readable, citations))
        return Message(
            "assistant",
            self.text,
            thinking=self.thinking,
            tool_calls=calls,
            details=details,
            citations=citations,
            sources=sources(map(_readable, consulted), citations),
            provider_data=data,
        )

    def cited(self, stretch: Stretch, note: Mapping[str, Any], before: str = "") -> Mark:
        """Reads the place of a `url_citation`, whose offsets count `before` the stretch, too."""
        start, end = number(note, "start_index"), number(note, "end_index")
        where = locate(before + stretch.raw, start, end, text_in(note, "url"))
        if where is None or stretch.base is None:
            return Mark()
        return Mark(self.span(*(self.place(stretch, max(0, at - len(before))) for at in where)))

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


def _readable(named: _Named) -> _Named:
    """Returns a source or a citation without invisible signs in its title."""
    title = visible(named.title)
    return named if title == named.title else named._replace(title=title)


class Calls:
    """The calls of one answer, each id once, in their order in `made`."""

    def __init__(self) -> None:
        self.made: dict[str, ToolCall] = {}

    def add(self, call_id: Any, name: Any, given: Any, problem: str = "") -> ToolCall | None:
        """Adds a call with its arguments as the server sent them; None for one that is known.

        An id that is missing is made.
        """
        call_id = str(call_id or f"call_{secrets.token_hex(12)}")
        if call_id in self.made:
            return None
        arguments, wrong = read_arguments(given)
        named = name if isinstance(name, str) else ""
        problem = problem or wrong or ("" if named else "The call names no tool.")
        return self.made.setdefault(call_id, ToolCall(call_id, named, arguments, problem or None))


def said(text: str) -> Iterable[StreamEvent]:
    """Returns the event for text that is shown."""
    return (TextDelta(text),) if text else ()


def thought(text: str) -> Iterable[StreamEvent]:
    """Returns the event for thinking that is shown."""
    return (ThinkingDelta(text),) if text else ()


_OPEN = {f"<{tag}>": f"</{tag}>" for tag in ("think", "thinking", "thought", "seed:think")}
_OPEN |= {"[THINK]": "[/THINK]", "<|channel>thought": "<channel|>"}
_MARKS = (*_OPEN, *_OPEN.values())
# A tag on a line of its own, or directly behind a word: a quoted tag stands in neither place.
_LATE = re.compile(
    r"""^[ \t]*</think(?:ing)?>[ \t]*$|(?<![\s`"'“‘«(\[{<>])</think(?:ing)?>(?![`"'”’»)\]}])""",
    re.MULTILINE,
)

Delta = TextDelta | ThinkingDelta


class ThinkSplitter:
    """Splits streamed content into text and thinking, the same however the content is cut."""

    def __init__(self) -> None:
        self.passing = False
        """True once plain text has begun: from here on there is no thinking."""
        self._held = ""
        self._close: str | None = None
        self._fresh = True
        self._stripping = False

    def feed(self, text: str) -> list[Delta]:
        """Returns what is certain so far; withholds a piece that may yet become a tag."""
        out: list[Delta] = []
        held = self._held + text
        while held and not self.passing:
            step = self._think(held, out) if self._close else self._start(held)
            if step == held:
                break
            held = step
        if self.passing and held:
            out.append(TextDelta(held))
            held = ""
        self._held = held
        return out

    def close(self) -> list[Delta]:
        """Returns the rest, which became no tag."""
        held, self._held = self._held, ""
        if self._close:
            held = held.lstrip() if self._fresh else held
            return [ThinkingDelta(held)] if held else []
        held = held.lstrip() if self._stripping else held
        return [TextDelta(held)] if held else []

    def _start(self, held: str) -> str:
        """Reads blanks, a tag, or the first text before the answer. Returns what is left."""
        body = held.lstrip()
        for mark in _MARKS:
            if body.startswith(mark):
                self._close, self._fresh, self._stripping = _OPEN.get(mark), True, True
                return body[len(mark) :]
        if not any(mark.startswith(body) for mark in _MARKS):
            self.passing = True
            return body if self._stripping else held
        return held

    def _think(self, held: str, out: list[Delta]) -> str:
        """Reads thinking up to the closing tag. Returns what is left."""
        close = self._close or ""
        if self._fresh:
            held = held.lstrip()
            self._fresh = not held
        thought, tag, rest = held.partition(close)
        if tag:
            self._close = None
        else:
            end = len(held) - _partial(held, close)
            thought, rest = held[:end], held[end:]
        if thought:
            out.append(ThinkingDelta(thought))
        return rest


def _partial(text: str, mark: str) -> int:
    """Counts the characters at the end of `text` that may begin `mark`."""
    sizes = range(min(len(text), len(mark) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)


def split_late(text: str) -> tuple[str, str]:
    """Returns (thinking, answer) of a text whose block was opened in the prompt, else ("", text).

    A closing tag counts when it stands alone on its line or against the text before it, outside
    code, with text on both sides: prose about the tag does not look like that.
    """
    for found in _LATE.finditer(text):
        before, after = text[: found.start()].strip(), text[found.end() :].lstrip()
        line = before.rpartition("\n")[2]
        if before and after and before.count("```") % 2 == 0 and line.count("`") % 2 == 0:
            return before, after
    return "", text


class PrintedText:
    """The text of an answer whose model may print its thinking and its calls into it.

    `tools` are those whose calls may stand in the text. `marks` says that vendors' citation marks
    are removed, not only signs that nobody sees.
    """

    def __init__(
        self, answer: ShownAnswer, tools: Iterable[ToolSpec], *, marks: bool = True
    ) -> None:
        self._answer = answer
        self.stretch = Stretch()
        self._residue = self.stretch.residue if marks else Seen()
        self.splitter = ThinkSplitter()
        self.written = TextCalls(tools)

    def add(self, text: str, out: list[StreamEvent]) -> None:
        """Adds text. Appends to `out` what can be shown now."""
        if self.splitter.passing:
            self._put(TextDelta(text), out)
        else:
            for piece in self.splitter.feed(text):
                self._put(piece, out)

    def end(self, out: list[StreamEvent]) -> None:
        """Ends the text."""
        for piece in self.splitter.close():
            self._put(piece, out)
        rest = self.written.feed(self._residue.close()) + self.written.close()
        out += said(self._answer.put(self.stretch, rest))

    def held(self) -> str:
        """Shows what was held back, except what may be half a call."""
        rest = self._residue.close()
        return self._answer.put(self.stretch, self.written.feed(rest)) if rest else ""

    def _put(self, piece: Delta, out: list[StreamEvent]) -> None:
        """Shows text except marks and printed calls, and thinking."""
        if type(piece) is ThinkingDelta:
            out += thought(self._answer.think(piece.text))
            return
        self.stretch.residue.numbered = self._answer.native
        text = self._residue.feed(self.stretch.add(piece.text))
        if text and (text := self.written.feed(text)):
            out.append(TextDelta(self._answer.put(self.stretch, text)))


def without_late_thinking(message: Message) -> Message:
    """Moves thinking out of a text that holds its end alone. See `split_late`."""
    thinking, text = split_late(message.content)
    return replace(message, content=text, thinking=thinking) if thinking else message
