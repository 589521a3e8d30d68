"""Finds the chats of a file: a JSON array, an object a line, or a ZIP with these.

Nothing is held but one chat, and nothing is parsed but its braces: `worker` does that. A file may
be cut, larger than memory, or a ZIP whose parts unpack to far more than it: what is whole before
the fault is read, and a sentence says what is not. https://www.rfc-editor.org/rfc/rfc8259
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO

PIECE = 1 << 20  # bytes read at a time
MOST_CHAT = 32 << 20  # bytes of one chat
MOST_UNPACKED = 8 << 30  # bytes of all parts of a ZIP together
MOST_PARTS = 100_000
_BETWEEN = 4 << 20  # bytes between two chats
# Braces alone say where an object of the array begins and ends, once strings are set aside.
_TOKEN = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)("?)|[{}]', re.DOTALL)
_BLANK = b"\xef\xbb\xbf \t\r\n"  # before a file's first sign
_CHATS = re.compile(r"(?:^|/)(?:conversations|chats|searchloop)[^/]*\.json$", re.IGNORECASE)
_ENCRYPTED = 1


class Fault(str):
    """A sentence about something that could not be read."""


Raw = tuple[int, bytes]  # a chat's number in its part of the file, and its bytes


def chats_in(file: IO[bytes], on_piece: Callable[[], None]) -> Iterator[Raw | Fault]:
    """Yields each object of a file, and a Fault where something cannot be read.

    `on_piece` is called before each piece of the file; what it raises ends the reading.
    """
    try:
        file.seek(0)
        zipped = file.read(4) == b"PK\3\4"
        file.seek(0)
        if not zipped:
            if b"\0" in file.read(4096):  # UTF-16, or packed in another way
                yield Fault("The file is neither a ZIP nor JSON in UTF-8. Choose it as it came.")
                return
            file.seek(0)
            yield from _objects(_pieces(file, on_piece))
            return
        with zipfile.ZipFile(file) as archive:
            yield from _parts(archive, on_piece)
    except zipfile.BadZipFile:
        yield Fault("The ZIP file is cut or damaged. Get it again.")
    except (OSError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        yield Fault(f"The file cannot be read any further ({type(error).__name__}).")


def _pieces(file: IO[bytes], on_piece: Callable[[], None]) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        on_piece()
        yield piece


def _parts(archive: zipfile.ZipFile, on_piece: Callable[[], None]) -> Iterator[Raw | Fault]:
    entries = archive.infolist()
    if len(entries) > MOST_PARTS or sum(entry.file_size for entry in entries) > MOST_UNPACKED:
        yield Fault("The ZIP file unpacks to more than searchloop reads; nothing of it was read.")
        return
    named = [e for e in entries if _CHATS.search(e.filename)]
    named = named or [e for e in entries if e.filename.lower().endswith(".json")]
    if not named:
        what = "The ZIP file holds no chats: no part of it is called conversations.json."
        packed = any(e.filename.lower().endswith(".zip") for e in entries)
        yield Fault(f"{what} Unpack it once: it holds a ZIP file." if packed else what)
    for entry in named:
        if entry.flag_bits & _ENCRYPTED:
            yield Fault(f"{entry.filename[:100]} is locked with a password.")
            continue
        try:
            with archive.open(entry) as part:
                yield from _objects(_pieces(part, on_piece))
        except (zipfile.BadZipFile, zlib.error, EOFError):
            yield Fault(f"{entry.filename[:100]} is cut or damaged.")


def _objects(pieces: Iterable[bytes]) -> Iterator[Raw | Fault]:
    """Yields the objects of an array, of lines, or a single one."""
    number = 0
    for raw in split(pieces):
        number += 1
        yield Fault(f"Chat {number:,}: {raw}") if isinstance(raw, Fault) else (number, raw)
    if not number:
        yield Fault("The file holds no chats. Choose the JSON or ZIP of an export as it came.")


def split(pieces: Iterable[bytes], most: int = MOST_CHAT) -> Iterator[bytes | Fault]:
    """Yields the bytes of each outermost object; a Fault for one that is cut, or above `most`."""
    held, at, depth, start, skipping, outside = b"", 0, 0, 0, False, 0
    first = last = b""
    for piece in pieces:
        first, last = first or piece.lstrip(_BLANK)[:1], piece.rstrip()[-1:] or last
        outside = 0 if depth else outside + len(piece)
        if outside > _BETWEEN:
            yield Fault("so much stands between the chats that nothing behind it was read.")
            return
        held += piece
        end = len(held)
        for token in _TOKEN.finditer(held, at):
            sign = token[0]
            if sign[:1] == b'"' and not token[1]:  # goes on in the next piece
                end = token.start()
                break
            if sign == b"{":
                start = start if depth else token.start()
                depth += 1
            elif sign == b"}" and depth:
                depth -= 1
                if not depth:
                    outside = 0
                    large = skipping or token.end() - start > most
                    yield Fault("it is too large.") if large else held[start : token.end()]
                    skipping = False
        keep = start if depth and not skipping else end
        held, at, start = held[keep:], end - keep, 0
        if len(held) > most:
            if len(held) - at > most:
                yield Fault("one of its texts is too large; nothing behind it was read.")
                return
            skipping, held, at = True, held[at:], 0
    if depth or (first == b"[" and last != b"]"):
        yield Fault("the file is cut here.")
