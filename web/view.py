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


class PageView:
    """One page's fold. `skip` what the page has already, then turn what follows into frames."""

    def __init__(self, session_id: str, kept: Frames) -> None:
        self._session = session_id
        self._kept = kept
        self._links = KnownLinks()
        self._growing: Incremental | None = None
        self._last: tuple[str, list[Any]] = ("", [])

    def skip(self, events: Iterable[Event]) -> None:
        """Takes note of events that the page has seen."""
        said: list[str] = []
        for event in events:
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
                continue
            self._meet(event)
            key = (self._session, event.seq)
            out.append((event.seq, self._kept.get(key) or frame(self._whole(event))))
        return out

    def _delta(self, event: Event, text: str) -> bytes:
        if self._growing is None:
            self._growing = Incremental(self._links)
        start, blocks = self._growing.feed(text)
        return frame({**public_data(event), "text": text, "from": start, "blocks": blocks})

    def _meet(self, event: Event) -> None:
        if event.type in _RESETS:
            self._growing = None
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
