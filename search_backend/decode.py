"""Content-Encoding undone in small pieces, so that a bomb costs no more than what was asked for.

Only gzip and deflate: zlib can be told how much to produce at a time. Encodings that cannot are
neither offered nor accepted, and neither are two encodings on top of each other.

Spec: RFC 9110 8.4, RFC 1950 to 1952
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator

from search_backend.errors import FetchFailed
from search_backend.fetched import FetchLimits

_PIECE = 64 * 1024
# gzip allows members in a row. Few servers send two; a thousand is an attack on the processor.
_MEMBERS = 100
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Cut(Exception):
    """A body ends before its end. `why`: one of the words of `Fetched.cut`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Decoder:
    """Takes a body as sent and gives it decompressed, in pieces of at most 64 KiB.

    `finished`: nothing more is to come. `complete`: nothing is missing if the input ends now.
    """

    def __init__(self, content_encoding: str) -> None:
        """Raises FetchFailed (bad_response) for an encoding that was not offered."""
        names = [name.strip().lower() for name in content_encoding.split(",")]
        encodings = [name for name in names if name not in ("", "identity")]
        if len(encodings) > 1 or not set(encodings) <= {"gzip", "x-gzip", "deflate"}:
            raise FetchFailed(
                "bad_response",
                f"The server sent the page in an encoding that was not asked for"
                f" ({content_encoding[:40]!r}).",
                "Use another source.",
            )
        self._encoding = encodings[0] if encodings else ""
        self._inflate: zlib._Decompress | None = None
        self._members = 0
        self.finished = False

    @property
    def complete(self) -> bool:
        return not self._encoding or self.finished or self._inflate is None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` adds. Raises zlib.error where it is not in the promised encoding."""
        if not self._encoding:
            yield data
            return
        full = False
        # A full piece may hide more that zlib has taken in already and not given out.
        while (data or full) and not self.finished:
            inflate = self._inflate or self._start(data)
            if inflate is None:
                return
            piece = inflate.decompress(data, _PIECE)
            if piece:
                yield piece
            if inflate.eof:
                data, full, self._inflate = inflate.unused_data, False, None
                self.finished = self._encoding == "deflate"
            else:
                data, full, self._inflate = inflate.unconsumed_tail, len(piece) == _PIECE, inflate

    def _start(self, data: bytes) -> zlib._Decompress | None:
        if self._members and data[:1] != b"\x1f":
            self.finished = True  # servers pad the last gzip member with what means nothing
            return None
        if self._members == _MEMBERS:
            raise zlib.error("too many members")
        self._members += 1
        bits = _GZIP
        if self._encoding == "deflate":
            # Some servers mean the bare stream by "deflate"; the first byte of the proper one has
            # the method in its low half and a window of at most 32 KiB in its high half.
            bits = _ZLIB if data[0] & 0x0F == 8 and data[0] >> 4 <= 7 else _RAW
        return zlib.decompressobj(bits)


def collect(pieces: Iterable[bytes], decoder: Decoder, limits: FetchLimits) -> tuple[bytes, str]:
    """(the decompressed body, why it is cut or ""). Holds it once: no copy is made at the end."""
    body = io.BytesIO()
    try:
        for piece in pieces:
            for part in decoder.feed(piece):
                room = limits.max_decoded - body.tell()
                body.write(part[:room])
                if len(part) > room:
                    raise Cut("max_decoded")
            if decoder.finished:
                break
        if not decoder.complete:
            raise Cut("connection")
    except Cut as cut:
        return body.getvalue(), cut.why
    except zlib.error:
        return body.getvalue(), "encoding"
    return body.getvalue(), ""
