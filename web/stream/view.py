"""Turns events into the bytes of an event stream, and adds the rendered text that the page shows.

A `message` gets all its blocks, a delta what it changes. A `run_finished` whose answer is the last
message comes without it: the page has it. Words of sources lose their Markdown. Deltas that arrive
together become one.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from searchloop.agent.log.events import Event, public_data
from searchloop.agent.search.verdict_words import plain
from searchloop.render.markdown import Incremental, render_known
from searchloop.render.tree import KnownLinks, suggestions

Key = tuple[str | int, ...]
_RESETS = frozenset({"user_message", "run_started", "run_resumed", "message", "run_finished"})


def encode_event(data: Mapping[str, Any]) -> bytes:
    """Encodes one server-sent event. JSON has no line ends, so no text can forge a second one."""
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8, only an escape
        text = json.dumps(data, separators=(",", ":")).encode()
    return b"id: %d\ndata: %s\n\n" % (data["seq"], text)


class FrameCache:
    """The latest frames, up to `most` bytes, for all threads.

    The key of an event is (session, seq), as pages get it (session, seq, "page"), and that of
    rendered deltas (session, since, to).
    """

    def __init__(self, most: int = 24 * 2**20) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._size = 0
        self._kept: OrderedDict[Key, bytes] = OrderedDict()

    def get(self, key: Key) -> bytes | None:
        """Returns the frame, if it is still there."""
        return self._kept.get(key)

    def keep(self, key: Key, encoded: bytes) -> bytes:
        """Adds a frame, and returns it."""
        with self._lock:
            if key not in self._kept and len(encoded) <= self._most // 8:
                self._kept[key] = encoded
                self._size += len(encoded)
                while self._size > self._most:
                    self._size -= len(self._kept.popitem(last=False)[1])
        return encoded

    def of(self, session_id: str, event: Event) -> bytes:
        """Returns the frame of an event as every API client gets it."""
        key = (session_id, event.seq)
        return self._kept.get(key) or self.keep(key, encode_event(public_data(event)))


class PageView:
    """The fold of one page: `skip` what the page has, then turn what follows into `frames`."""

    def __init__(self, session_id: str, kept: FrameCache) -> None:
        self._session = session_id
        self._kept = kept
        self._seen = 0  # the last event that the page has
        self._unread: list[str] = []  # text of frames that other pages rendered
        self._links = KnownLinks()
        self._growing: Incremental | None = None
        self._last = ""  # the text of the last message

    def skip(self, events: Iterable[Event]) -> None:
        """Folds events that the page has seen."""
        said: list[str] = []
        for event in events:
            self._seen = event.seq
            if event.type == "text_delta":
                said.append(event.data["text"])
                continue
            self._meet(event)
            if event.type in _RESETS:
                said.clear()
        if said:
            self._growing = Incremental(self._links)
            self._growing.feed("".join(said))

    def weight(self, events: Sequence[Event]) -> int:
        """Estimates how many characters must be rendered for these events."""
        kept = self._kept
        fresh = (
            event.data["text"]
            for event in events
            if event.type == "text_delta"
            or (event.type == "message" and kept.get((self._session, event.seq, "page")) is None)
        )
        return sum(map(len, fresh)) + (self._growing.unfinished if self._growing else 0)

    def frames(self, events: Sequence[Event]) -> list[tuple[int, bytes]]:
        """Returns (seq, frame) of each event. Consecutive deltas become one."""
        out: list[tuple[int, bytes]] = []
        said: list[str] = []
        for i, event in enumerate(events):
            if event.type == "text_delta":
                said.append(event.data["text"])
                if i + 1 == len(events) or events[i + 1].type != "text_delta":
                    out.append((event.seq, self._delta(event, "".join(said))))
                    said.clear()
                    self._seen = event.seq
                continue
            self._meet(event)
            self._seen = event.seq
            key = (self._session, event.seq, "page")
            known = self._kept.get(key)
            out.append((event.seq, known or self._kept.keep(key, encode_event(self._whole(event)))))
        return out

    def _delta(self, event: Event, text: str) -> bytes:
        key = self._session, self._seen, event.seq
        known = self._kept.get(key)
        if known is not None:
            self._unread.append(text)
            return known
        if self._growing is None:
            self._growing = Incremental(self._links)
        if self._unread:
            self._growing.feed("".join(self._unread))
            self._unread.clear()
        change = self._growing.feed(text)
        data = encode_event({**public_data(event), "text": text, "change": change})
        return self._kept.keep(key, data)

    def _meet(self, event: Event) -> None:
        if event.type in _RESETS:
            self._growing = None
            self._unread.clear()
        self._links.add(event.data.get("sources", ()))
        self._links.add(event.data.get("citations", ()))
        if event.type == "message":
            self._last = "" if event.data.get("tool_calls") else event.data.get("text") or ""

    def _whole(self, event: Event) -> dict[str, Any]:
        data = public_data(event)
        if event.type == "message" and data.get("details"):
            links = suggestions(data["details"])
            data = {**data, "suggestions": links} if links else data
        if data.get("citations"):
            data = {**data, "citations": [_readable(c) for c in data["citations"]]}
        text = data.get("text") if event.type == "message" else data.get("answer")
        if event.type not in ("message", "run_finished") or not text:
            return data
        if event.type == "run_finished" and text == self._last:
            return {name: value for name, value in data.items() if name != "answer"}
        return {**data, "blocks": render_known(text, data.get("citations", ()), self._links)}


def _readable(citation: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a citation whose quotes and passages are text."""
    names = ("quote", "passage")
    marks = [{**m, **{k: plain(m[k]) for k in names if m.get(k)}} for m in citation["marks"]]
    return {**citation, "marks": marks}
