"""Whether an event is what was written: a disk may give back other bytes, and JSON all the same.

The number beside an event is CRC-32 (zlib's) of its session, type and data in UTF-8 and its time as
a little endian double, plus its own number, modulo 2**32: a store that numbers events itself adds
that in its own language. Events of earlier versions have none, and are believed if they are JSON
with what nobody can do without.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from json import JSONDecoder
from typing import Any
from zlib import crc32

from agent.text import object_in

MODULUS = 1 << 32
_TIME = struct.Struct("<d").pack
_WRITTEN = JSONDecoder().raw_decode
_NEEDED = {"user_message": "text", "run_started": "run_id", "run_finished": "run_id"}


def unnumbered(session: str, kind: str, text: str, at: float) -> int:
    """The checksum of an event that has no number yet."""
    return crc32(_TIME(at), crc32(text.encode(), _head(session, kind)))


@lru_cache(maxsize=1024)
def _head(session: str, kind: str) -> int:
    return crc32(kind.encode(), crc32(session.encode()))


def checksum(session: str, seq: int, kind: str, text: str, at: float) -> int:
    """The checksum of an event."""
    return (unnumbered(session, kind, text, at) + seq) % MODULUS


def data_in(
    session: str, seq: Any, kind: Any, text: Any, at: Any, told: int | None
) -> dict[str, Any] | None:
    """The data of an event out of a row; None when it is not what was written."""
    if told is None:
        return _believed(seq, kind, text, at)
    try:
        if told != (unnumbered(session, kind, text, at) + seq) % MODULUS:
            return None
        data: dict[str, Any] = _WRITTEN(text)[0]  # by us: no blank around it
    except (AttributeError, TypeError, ValueError, struct.error):  # a column holds what it cannot
        return None
    return data


def _believed(seq: Any, kind: Any, text: Any, at: Any) -> dict[str, Any] | None:
    types = (seq, int), (kind, str), (text, str), (at, float)
    if not all(isinstance(value, wanted) for value, wanted in types):
        return None
    data, needed = object_in(text), _NEEDED.get(kind)
    return data if data is None or needed is None or isinstance(data.get(needed), str) else None
