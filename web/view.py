"""What a page is told: the events, and the blocks that their text reads as.

A fold over a session's events that knows which sources were met so far and what the unfinished
message says. A `message` and the `run_finished` get all their blocks; a delta gets the blocks that
it changes. Deltas that arrive together become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent.events import Event, public_data
from web.frames import Frames, frame
from web.links import KnownLinks
from web.markdown import Incremental, render_known
from web.suggestions import suggestions

_RESETS = frozenset({"user_message", "run_started", "run_resumed", "message", "run_finished"})


class Shared:
    """Frames of deltas that one page has rendered, for the others that follow the same session.

    A frame leads from what a page shows after one event to what it shows after another, so it is
    right for every page that stands at the first.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._frames: dict[tuple[str, int, int], bytes] = {}

    def get(self, session: str, since: int, to: int) -> bytes | None:
        """The frame from one event to another, if somebody made it."""
        return self._frames.get((session, since, to))

    def keep(self, session: str, since: int, to: int, data: bytes) -> bytes:
        """Keeps it for a while, and gives it back."""
        self._frames[session, since, to] = data
        while len(self._frames) > self._most:
            self._frames.pop(next(iter(self._frames)), None)
        return data


class PageView:
    """One page's fold. `skip` what the page has already, then turn what follows into frames."""

    def __init__(self, session_id: str, kept: Frames, shared: Shared | None = None) -> None:
        self._session = session_id
        self._kept = kept
        self._shared = shared or Shared()
        self._seen = 0  # the last event that the page has
        self._unread: list[str] = []  # text of frames that others rendered
        self._links = KnownLinks()
        self._growing: Incremental | None = None
        self._last: tuple[str, list[Any]] = ("", [])

    def skip(self, events: Iterable[Event]) -> None:
        """Takes note of events that the page has seen."""
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
        """About how many characters have to be rendered for these events."""
        kept = self._kept
        fresh = (
            event.data["text"]
            for event in events
            if event.type == "text_delta"
            or (event.type == "message" and kept.get((self._session, event.seq)) is None)
        )
        return sum(map(len, fresh)) + (self._growing.unfinished if self._growing else 0)

    def frames(self, events: Sequence[Event]) -> list[tuple[int, bytes]]:
        """(seq, frame) of each event, deltas that follow each other taken together."""
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
            key = (self._session, event.seq)
            out.append((event.seq, self._kept.get(key) or frame(self._whole(event))))
        return out

    def _delta(self, event: Event, text: str) -> bytes:
        known = self._shared.get(self._session, self._seen, event.seq)
        if known is not None:
            self._unread.append(text)
            return known
        if self._growing is None:
            self._growing = Incremental(self._links)
        if self._unread:
            self._growing.feed("".join(self._unread))
            self._unread.clear()
        start, blocks = self._growing.feed(text)
        data = frame({**public_data(event), "text": text, "from": start, "blocks": blocks})
        return self._shared.keep(self._session, self._seen, event.seq, data)

    def _meet(self, event: Event) -> None:
        if event.type in _RESETS:
            self._growing = None
            self._unread.clear()
        self._links.add(event.data.get("sources", ()))
        self._links.add(event.data.get("citations", ()))

    def _whole(self, event: Event) -> dict[str, Any]:
        data = public_data(event)
        text = data.get("text") if event.type == "message" else data.get("answer")
        if event.type == "message" and data.get("details"):
            links = suggestions(data["details"])
            data = {**data, "suggestions": links} if links else data
        if event.type not in ("message", "run_finished") or not text:
            return data
        if self._last[0] != text or event.type == "message":
            citations = data.get("citations", ())
            self._last = (text, render_known(text, citations, self._links))
        return {**data, "blocks": self._last[1]}
