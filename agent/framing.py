"""Cuts a byte stream into the payloads of its events: server-sent events and JSON lines.

Both splitters give the same payloads however the bytes are cut. Bytes are looked at once by C-level
searches: pieces are only joined when an event is complete, so that a large event that arrives in
small pieces costs linear time, and the usual one-line event never meets a loop over its lines.

Spec: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from agent.errors import ProviderError

MAX_EVENT = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def _too_large() -> ProviderError:
    return ProviderError(
        "bad_response",
        f"One event of the answer is larger than {MAX_EVENT // 1024 // 1024} MiB.",
        "Check that the base URL points to the provider itself.",
    )


class SseSplitter:
    """The `data` of each complete server-sent event; comments and other fields are ignored."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._last = b""  # the end of what is held: a blank line may straddle two pieces
        self._after_cr = False
        self._start: bytes | None = b""  # None once the byte order mark is dealt with
        self._at_start_of_event = False

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads completed by `data`, several data lines of an event joined by a newline."""
        at = data.find(b"\n\n")
        if 0 < at == len(data) - 2 and self._at_start_of_event and b"\r" not in data:
            payload = _data(data[:at])  # servers send an event a piece, so this is the usual case
            return [payload] if payload else []
        payloads = self._feed(data)
        self._at_start_of_event = not (self._pieces or self._after_cr or self._start is not None)
        return payloads

    def _feed(self, data: bytes) -> list[bytes]:
        if self._start is not None:
            data = self._without_bom(data)
        if self._after_cr or b"\r" in data:
            data = self._with_newlines(data)
        if (self._last == b"\n" and data[:1] == b"\n") or b"\n\n" in data:
            return self._complete(data)
        if data:
            self._hold(data)
        return []

    def close(self) -> list[bytes]:
        """The payload of a last event that the server did not end with a blank line, if any."""
        rest = b"".join(self._pieces) + (self._start or b"")
        self._pieces, self._held, self._last, self._start = [], 0, b"", None
        payload = _data(rest.rstrip(b"\n"))
        return [payload] if payload else []

    def _complete(self, data: bytes) -> list[bytes]:
        if self._pieces:
            self._pieces.append(data)
            data = b"".join(self._pieces)
            self._pieces, self._held, self._last = [], 0, b""
        blocks = data.split(b"\n\n")
        rest = blocks.pop()
        if rest:
            self._hold(rest)
        payloads = []
        for block in blocks:
            if len(block) > MAX_EVENT:
                raise _too_large()
            payload = _data(block)
            if payload:
                payloads.append(payload)
        return payloads

    def _hold(self, data: bytes) -> None:
        self._held += len(data)
        if self._held > MAX_EVENT:
            raise _too_large()
        self._pieces.append(data)
        self._last = data[-1:]

    def _with_newlines(self, data: bytes) -> bytes:
        """CR and CRLF become LF; a CRLF cut in two is one line end."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_bom(self, data: bytes) -> bytes:
        assert self._start is not None
        data = self._start + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(_BOM)


def _data(block: bytes) -> bytes:
    """The data lines of one event block; empty when there is nothing to dispatch."""
    start = block.find(b"\n") + 1 if block.startswith(b"event: ") else 0
    if block.startswith(b"data: ", start) and block.find(b"\n", start) < 0:
        return block[start + 6 :]
    lines = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            lines.append(b"")
    return b"\n".join(lines)


class NdjsonSplitter:
    """The lines of a newline-delimited stream, without blank ones."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Lines completed by `data`, stripped of surrounding white space."""
        if b"\n" not in data:
            if data:
                self._hold(data)
            return []
        self._pieces.append(data)
        lines = b"".join(self._pieces).split(b"\n")
        self._pieces, self._held = [], 0
        rest = lines.pop()
        if rest:
            self._hold(rest)
        return [line for line in map(bytes.strip, lines) if line]

    def close(self) -> list[bytes]:
        """A last line without its newline, if any."""
        rest = b"".join(self._pieces).strip()
        self._pieces, self._held = [], 0
        return [rest] if rest else []

    def _hold(self, data: bytes) -> None:
        self._held += len(data)
        if self._held > MAX_EVENT:
            raise _too_large()
        self._pieces.append(data)
