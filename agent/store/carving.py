"""Events read from the pages of a file one by one, where the tree that joins them is broken.

The layout is that of https://www.sqlite.org/fileformat2.html, parts 1.6 and 2: a table without row
ids is a tree of index pages, and each of its cells holds a whole row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Any

from agent.events import DELTAS

PAGE = 4096  # ours are made with SQLite's default
_INTERIOR, _LEAF = 2, 10
_MOST = (PAGE - 12) * 64 // 255 - 23  # bytes of a row on its page, and how many if it is longer
_LEAST = (PAGE - 12) * 32 // 255 - 23
_LONGEST = 64 << 20
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Row = tuple[int, str, str, float, int | None]


def carve(data: bytes | mmap) -> Iterator[tuple[str, Row]]:
    """(session, (seq, type, data, at, checksum)) of each event on any page of a file's bytes."""
    for start in range(PAGE, len(data) - PAGE + 1, PAGE):
        page = bytes(data[start : start + PAGE])
        if page[0] not in (_INTERIOR, _LEAF):
            continue
        first = 8 if page[0] == _LEAF else 12
        for place in range(first, min(first + 2 * int.from_bytes(page[3:5], "big"), PAGE - 1), 2):
            at = int.from_bytes(page[place : place + 2], "big") + (0 if page[0] == _LEAF else 4)
            try:
                values = list(_values(_payload(data, page, at)))
            except (IndexError, ValueError, struct.error):
                continue
            row = _event(values)
            if row is not None:
                yield row


def _event(values: list[Any]) -> tuple[str, Row] | None:
    if [type(value) for value in values[:4]] != [str, int, str, str] or len(values) not in (5, 6):
        return None
    session, seq, kind, text, at, *rest = values  # without a checksum: of an earlier version
    told = rest[0] if rest else None
    if kind in DELTAS or not isinstance(at, int | float) or not isinstance(told, int | None):
        return None
    return session, (seq, kind, text, float(at), told)


def _payload(data: bytes | mmap, page: bytes, at: int) -> bytes:
    """The row of the cell that begins here, with what of it is on further pages."""
    size, at = _varint(page, at)
    if size > _LONGEST:
        raise ValueError("too long")
    local = size
    if size > _MOST:
        local = _LEAST + (size - _LEAST) % (PAGE - 4)
        local = local if local <= _MOST else _LEAST
    parts = [page[at : at + local]]
    left, link = size - local, page[at + local : at + local + 4]
    while left > 0:
        start = (int.from_bytes(link, "big") - 1) * PAGE
        if start < 0 or start + PAGE > len(data):
            raise ValueError("beyond the file")
        more = bytes(data[start : start + PAGE])
        link = more[:4]
        parts.append(more[4 : 4 + left])
        left -= PAGE - 4
    return b"".join(parts)


def _values(record: bytes) -> Iterator[Any]:
    """The columns of a row."""
    end, at = _varint(record, 0)
    body = end
    while at < end:
        kind, at = _varint(record, at)
        if kind in _INTEGERS:
            size = _INTEGERS[kind]
            value: Any = int.from_bytes(record[body : body + size], "big", signed=True)
        elif kind == 7:
            size = 8
            value = struct.unpack(">d", record[body : body + 8])[0]
        elif kind >= 13 and kind % 2:
            size = (kind - 13) // 2
            value = record[body : body + size].decode("utf-8")
        else:  # nothing that an event has, but for 0 and 1
            size, value = 0, {8: 0, 9: 1}.get(kind)
        if body + size > len(record):
            raise ValueError("cut off")
        yield value
        body += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at + count + 1
