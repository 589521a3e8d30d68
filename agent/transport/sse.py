"""Splits the bytes of an answer into payloads: server-sent events, JSON lines, or one document.

However the network cuts the bytes, the payloads are the same and cost linear time.
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.types import StreamEvent

MAX_EVENT = 16 * 1024 * 1024
_DONE = b"[DONE]"
_BARE = re.compile(rb"(?m)^(?:error: ?)?[\[{]")  # llama.cpp has a field of its own for errors
# Reading something of an unexpected shape raises these.
_MISREAD = (KeyError, TypeError, AttributeError, ValueError, RecursionError)


def _too_large() -> ProviderError:
    what = f"One event of the answer is larger than {MAX_EVENT // 1024 // 1024} MiB."
    remedy = "Check that the base URL points to the provider itself."
    return ProviderError("bad_response", what, remedy)


class _Pieces:
    """Collects the pieces of an event that is not complete yet, at most MAX_EVENT bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """Adds a piece. Raises ProviderError for an event that is too large."""
        if data:
            self._size += len(data)
            if self._size > MAX_EVENT:
                raise _too_large()
            self._pieces.append(data)

    def take(self, more: bytes = b"") -> bytes:
        """Returns all pieces and `more` as one, and forgets them."""
        if not self._pieces:
            return more
        whole = b"".join((*self._pieces, more))
        self._pieces, self._size = [], 0
        return whole

    def ends_line(self) -> bool:
        """Returns True if the last piece ends with a newline: a blank line may be cut in two."""
        return bool(self._pieces) and self._pieces[-1].endswith(b"\n")


_BOM = b"\xef\xbb\xbf"


class SseSplitter:
    """Returns the `data` of each complete server-sent event, without comments and other fields."""

    def __init__(self) -> None:
        self._pieces = _Pieces()
        self._after_cr = False
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the payloads completed by `data`, with newlines between an event's lines."""
        if data and (self._after_cr or b"\r" in data):  # a CRLF cut in two is one line end
            data = data[1:] if self._after_cr and data[:1] == b"\n" else data
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not (b"\n\n" in data or (data[:1] == b"\n" and self._pieces.ends_line())):
            self._pieces.add(data)
            return []
        *blocks, rest = self._pieces.take(data).split(b"\n\n")
        if any(len(block) > MAX_EVENT for block in blocks):
            raise _too_large()
        self._pieces.add(rest)
        return self._payloads(blocks)

    def close(self) -> list[bytes]:
        """Returns the payload of a last event without its blank line, if any."""
        return self._payloads([self._pieces.take().rstrip(b"\n")])

    def _payloads(self, blocks: list[bytes]) -> list[bytes]:
        if not self._begun:
            self._begun, blocks[0] = True, blocks[0].removeprefix(_BOM)
        return [payload for payload in map(_data, blocks) if payload]


def _data(block: bytes) -> bytes:
    """Returns the data lines of one event block, or the JSON of an error that came without them."""
    start = block.find(b"\n") + 1 if block.startswith(b"event: ") else 0
    if block.startswith(b"data: ", start) and block.find(b"\n", start) < 0:
        return block[start + 6 :]
    lines = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            lines.append(b"")
    bare = None if lines else _BARE.search(block)
    if bare and document_of(block[bare.end() - 1 :]) is not None:
        return block[bare.end() - 1 :]
    return b"\n".join(lines)


class NdjsonSplitter:
    """Returns the lines of a newline-delimited stream, without blank ones."""

    def __init__(self) -> None:
        self._pieces = _Pieces()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines completed by `data`, stripped."""
        if b"\n" not in data:
            self._pieces.add(data)
            return []
        *lines, rest = self._pieces.take(data).split(b"\n")
        self._pieces.add(rest)
        return self._lines(lines)

    def close(self) -> list[bytes]:
        """Returns a last line without its newline, if any."""
        return self._lines([self._pieces.take()])

    def _lines(self, lines: list[bytes]) -> list[bytes]:
        if not self._begun:
            self._begun, lines[0] = True, lines[0].removeprefix(_BOM)
        return [line for line in map(bytes.strip, lines) if line]


class ResponseBody:
    """Splits a body into payloads of server-sent events, or collects it if it is one document."""

    def __init__(self, server: str, content_type: str, begins: tuple[bytes, ...] = (b"{",)) -> None:
        """`begins` are the first characters of a document."""
        self._server = server
        self._splitter = SseSplitter()
        self._document: list[bytes] | None = [] if "json" in content_type else None
        self._begins = begins
        self._sniff = not ("json" in content_type or "event-stream" in content_type)
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the payloads that `data` completes; none of a document."""
        if self._sniff and data.strip():
            self._sniff = False
            self._document = [] if data.lstrip().startswith(self._begins) else None
        if self._document is None:
            return self._splitter.feed(data)
        self._size += len(data)
        if self._size > 4 * MAX_EVENT:
            raise endless(self._server)
        self._document.append(data)
        return []

    @property
    def document(self) -> bytes | None:
        """All of it, if it is one document; None for a stream."""
        return None if self._document is None else b"".join(self._document)

    def rest(self) -> list[bytes]:
        """Returns the payload of a last event without its blank line, if its JSON is complete."""
        last = self._splitter.close()
        return [p for p in last if p.strip() == _DONE or isinstance(document_of(p), dict | list)]


def document_of(body: bytes) -> Any:
    """Parses a document; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def guarded(
    unreadable: Callable[[], ProviderError], read: Callable[..., None], *given: Any
) -> Iterable[StreamEvent]:
    """Returns the events that `read(events, *given)` appends, and then raises its error."""
    events: list[StreamEvent] = []
    try:
        read(events, *given)
    except ProviderError as error:
        return then_raise(events, error)
    except _MISREAD as error:
        wrong = unreadable()
        wrong.__cause__ = error
        return then_raise(events, wrong)
    return events


def unreadable(server: str, api: str, what: str = "an event") -> ProviderError:
    """Makes the error for bytes that belong to another API, or to none."""
    said = f"{server} sent {what} that is not as {api} describes it."
    remedy = f"Check that the base URL points to a server of {api}."
    return ProviderError("bad_response", said, remedy)


def incomplete(server: str, why: str = "") -> IncompleteError:
    """Makes the error for an answer without an end; `why` is the server's reason, a sentence."""
    what = f"The answer of {server} ended before it was finished. {why}".rstrip()
    return IncompleteError("incomplete", what, "Try again.", retryable=True)


def endless(server: str) -> ProviderError:
    what = f"The answer of {server} has no end."
    remedy = "Check that the base URL points to the provider itself."
    return ProviderError("bad_response", what, remedy)


def then_raise(events: Iterable[StreamEvent], error: ProviderError) -> Iterator[StreamEvent]:
    """Yields `events`, then raises `error`: a reader sees what came before a fault."""
    yield from events
    raise error
