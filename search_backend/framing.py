"""Where an HTTP/1.1 answer begins, ends, and whether its connection may be used again.

Framing libraries cost more than the rest of a search. Here an answer that is plainly well-formed is
taken apart by a few searches for line ends; for anything else (interim answers, trailers, odd or
repeated headers, an end without a length, an end too soon) the bytes that came are given to h11,
for the rest of the answer. So this knows no rule about a doubtful answer, and accepts none; of what
h11 takes, only a length beside a coding is refused.

Spec: RFC 9112 4, 5, 6, 7.1, 9.3; https://h11.readthedocs.io
"""

from __future__ import annotations

import re

from search_backend.head import contradicts

MOST_HEAD = 64 * 1024
MOST_BYTES = 4 * 2**20
MOST_INTERIM = 16
MOST_PIECES = 20_000  # chunks of one byte cost h11 ten seconds of processor a million
# What is longer goes the careful way, which must not have to begin late with very much.
_PLAIN_HEAD, _PLAIN_CHUNKS = 16 * 1024, 256 * 1024

_START = b"HTTP/1.1 "
_STATUS = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9]) [ -~]*")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[!-~][\t -~]*)?)")
_BARE = re.compile(rb"\n\r?\n")  # h11 takes this for the end of a head
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,6}")
_LONGEST_SIZE = 8
_CONNECTION = (b"close", b"keep-alive")
_BODILESS = frozenset({204, 304})  # whatever their headers say


class BadAnswer(Exception):
    """What came is not HTTP, ended too early, or is too large. The text says which."""


class AnswerReader:
    """Reads the answer to one GET or POST. After `feed` said True, the rest is filled in.

    `headers` have names in lower case, of repeated ones the last; `body` is as it came, perhaps
    compressed; `reusable`: nothing stands in the way of another request on the connection.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.reusable = False
        self._raw = bytearray()
        self._at = 0  # where what is not yet understood begins
        self._length = -1  # of the body; -1: it comes in chunks
        self._chunks: list[bytes] = []
        self._careful: _Careful | None = None

    def feed(self, data: bytes) -> bool:
        """Whether the answer is complete; no data means that the server has hung up.

        Raises BadAnswer.
        """
        if self._careful is not None:
            return self._careful.feed(data)
        self._raw += data
        done = self._plainly() if data else None
        if done is None:
            self._careful = _Careful(self)
            raw, self._raw = bytes(self._raw), bytearray()
            return bool(raw and self._careful.feed(raw)) or (not data and self._careful.feed(b""))
        return done

    def _plainly(self) -> bool | None:
        """Whether it is complete; None when this is nothing for here."""
        if not self.status:
            if self._raw[: len(_START)] != _START[: len(self._raw)]:
                return None
            before = max(self._at - 3, 0)
            end = self._raw.find(b"\r\n\r\n", before)
            if end < 0 and len(self._raw) <= _PLAIN_HEAD and not _BARE.search(self._raw, before):
                self._at = len(self._raw)
                return False
            if not 0 <= end <= _PLAIN_HEAD or not self._take_head(bytes(self._raw[:end])):
                return None
            self._at = end + 4
        return self._in_chunks() if self._length < 0 else self._whole()

    def _take_head(self, head: bytes) -> bool:
        first, *fields = head.split(b"\r\n")
        line = _STATUS.fullmatch(first)
        if line is None or int(line[1]) in _BODILESS:
            return False
        headers: dict[str, str] = {}
        length, chunked = b"", False
        for field in fields:
            found = _FIELD.fullmatch(field)
            if found is None:
                return False
            name, value = found[1].lower().decode("ascii"), found[2].rstrip(b" \t")
            if name == "content-length":
                if length or chunked or not value.isdigit() or len(value) > 7:
                    return False
                length = value
            elif name == "transfer-encoding":
                if length or chunked or value.lower() != b"chunked":
                    return False
                chunked = True
            elif name == "connection" and (name in headers or value.lower() not in _CONNECTION):
                return False
            headers[name] = value.decode("latin-1")
        if not (length or chunked) or int(length or b"0") > MOST_BYTES:
            return False
        self.status, self.headers = int(line[1]), headers
        self._length = int(length) if length else -1
        return True

    def _whole(self) -> bool:
        end = self._at + self._length
        if len(self._raw) < end:
            return False
        self._finish(bytes(memoryview(self._raw)[self._at : end]), end)
        return True

    def _in_chunks(self) -> bool | None:
        raw = self._raw
        while True:
            line = raw.find(b"\r\n", self._at, self._at + _LONGEST_SIZE)
            if line < 0:
                short = len(raw) < self._at + _LONGEST_SIZE and b"\n" not in raw[self._at :]
                return False if short else None
            found = _SIZE.fullmatch(raw, self._at, line)
            if found is None:
                return None
            start = line + 2
            end = start + int(found[0], 16)
            close = raw[end : end + 2]
            if close != b"\r\n"[: len(close)]:
                return None
            if len(close) < 2:
                return None if len(raw) > _PLAIN_CHUNKS else False
            if start == end:  # the last one; what is not an empty line here is a trailer
                self._finish(b"".join(self._chunks), end + 2)
                return True
            self._chunks.append(bytes(memoryview(raw)[start:end]))
            self._at = end + 2
            if self._at > _PLAIN_CHUNKS:
                return None

    def _finish(self, body: bytes, end: int) -> None:
        self.body = body
        # What nobody asked for makes all that follows doubtful.
        wanted = self.headers.get("connection", "").lower() != "close"
        self.reusable = wanted and len(self._raw) == end
        self._raw, self._chunks = bytearray(), []


class _Careful:
    """The same with h11, which knows every rule."""

    def __init__(self, into: AnswerReader) -> None:
        import h11

        self._h11 = h11
        self._into = into
        self._talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        # How an answer is framed depends on the request only for methods that nobody uses here.
        self._talk.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        self._talk.send(h11.EndOfMessage())
        self._body = bytearray()
        self._interim = self._pieces = 0

    def feed(self, data: bytes) -> bool:
        try:
            self._talk.receive_data(data)
            return self._go_on()
        except self._h11.RemoteProtocolError:
            raise BadAnswer(
                "its answer is not valid HTTP" if data else "it broke off in the middle"
            ) from None

    def _go_on(self) -> bool:
        h11, into = self._h11, self._into
        while True:
            event = self._talk.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.Response):
                if contradicts(
                    [k.decode() for k, _ in event.headers], old=event.http_version < b"1.1"
                ):
                    raise BadAnswer("its answer ends in two places at once")
                into.status = event.status_code
                into.headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            elif isinstance(event, h11.InformationalResponse):
                self._interim += 1
                if self._interim > MOST_INTERIM:
                    raise BadAnswer("it sends interim answers without end")
            elif isinstance(event, h11.Data):
                self._body += event.data
                self._pieces += 1
                if len(self._body) > MOST_BYTES:
                    raise BadAnswer(f"its answer is larger than {MOST_BYTES:,} bytes")
                if self._pieces > MOST_PIECES:
                    raise BadAnswer("its answer comes in absurdly many pieces")
            elif isinstance(event, h11.EndOfMessage):
                into.body = bytes(self._body)
                done = self._talk.their_state is h11.DONE
                into.reusable = done and not self._talk.trailing_data[0]
                return True
            else:
                raise BadAnswer("it hung up without an answer")
