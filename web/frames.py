"""Events as bytes of an event stream: encoded once, however many follow."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from agent.events import Event, public_data

Key = tuple[str, int]


def frame(data: Mapping[str, Any]) -> bytes:
    """One server-sent event. JSON has no line ends, so no text can forge a second one."""
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only its escape can be sent
        text = json.dumps(data, separators=(",", ":")).encode()
    return b"id: %d\ndata: %s\n\n" % (data["seq"], text)


class Frames:
    """Frames by (session, seq), the latest ones kept. Used on one thread only."""

    def __init__(self, most: int = 4 * 1024 * 1024) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[Key, bytes] = OrderedDict()

    def get(self, key: Key) -> bytes | None:
        """The frame, if it is still there."""
        return self._kept.get(key)

    def keep(self, key: Key, encoded: bytes) -> bytes:
        """Keeps a frame while there is room, and gives it back."""
        if key not in self._kept and len(encoded) <= self._most // 8:
            self._kept[key] = encoded
            self._size += len(encoded)
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
        return encoded

    def of(self, session_id: str, event: Event) -> bytes:
        """The frame of an event as every API client gets it."""
        key = (session_id, event.seq)
        return self._kept.get(key) or self.keep(key, frame(public_data(event)))
