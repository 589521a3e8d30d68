"""The body of an answer, taken out of its framing piece by piece.

A chunk that is not framed to the letter ends the body there: whoever reads on would read something
else than others do. Nothing is read behind the last chunk, since nobody asks for trailers.

Spec: RFC 9112 6.3, 7.1
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from search_backend.decode import Cut
from search_backend.head import Head
from search_backend.wire import TooMuch

_PIECE = 64 * 1024
# Chunks of one byte cost work and carry nothing; honest bodies have thousands of pieces.
_PIECES = 100_000
_LONGEST_LINE = 4 * 1024
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n\0]*)?\r\n")


def read_body(file: io.BufferedReader, head: Head, most: int) -> Iterator[bytes]:
    """The body without its framing, `most` bytes at the most. Raises Cut where it ends early."""
    pieces = _chunks(file) if head.chunked else _plain(file, head.length)
    try:
        for count, piece in enumerate(pieces):
            if count == _PIECES:
                raise Cut("max_pieces")
            yield piece[:most]
            if len(piece) > most:
                raise Cut("max_bytes")
            most -= len(piece)
    except TooMuch:
        raise Cut("max_bytes") from None
    except TimeoutError:
        raise Cut("deadline") from None
    except OSError as error:
        raise Cut("connection") from error


def _plain(file: io.BufferedReader, length: int | None) -> Iterator[bytes]:
    """So many bytes, or all up to the end of the connection."""
    left = length
    while left is None or left:
        piece = file.read1(_PIECE if left is None else min(_PIECE, left))
        if not piece:
            if left is None:
                return
            raise Cut("connection")
        yield piece
        left = None if left is None else left - len(piece)


def _chunks(file: io.BufferedReader) -> Iterator[bytes]:
    while True:
        line = _CHUNK.fullmatch(file.readline(_LONGEST_LINE))
        if line is None:
            raise Cut("connection")
        size = int(line[1], 16)
        if not size:
            return
        yield from _plain(file, size)
        if file.read(2) != b"\r\n":
            raise Cut("connection")
