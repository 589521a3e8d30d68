"""Observes a process at its log.

Others may import: logs, metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from searchloop.agent.log.contract import Observer as Observer
from searchloop.agent.log.contract import Pending
from searchloop.agent.log.events import Event
from searchloop.agent.types import NOTHING, Finished, Message, Price, Request, Streams

_log = logging.getLogger(__name__)
_run = logging.getLogger("searchloop.run")


class Observers(Observer):
    """Several observers as one. The failure of one is logged and stops no other.

    `redact` removes secrets from what servers and tools say when something failed.
    """

    def __init__(
        self, *observers: Observer, redact: Callable[[str], str] = lambda text: text
    ) -> None:
        self._observers, self._redact = observers, redact

    def cleaned(self, events: Sequence[Pending]) -> Sequence[Pending]:
        return [(kind, _told(kind, data, self._redact)) for kind, data in events]

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        self._each(lambda observer: observer.stored(session_id, events, seconds))

    def lost(self, session_id: str) -> None:
        self._each(lambda observer: observer.lost(session_id))

    def _each(self, notify: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                notify(observer)
            except Exception:
                _log.exception("%s failed", type(observer).__name__)


_KEPT: Mapping[str, tuple[str, ...]] = {
    "run_started": ("model", "mode", "search", "search_path"),
    "run_resumed": ("takeovers",),
    "run_finished": ("model", "reason", "search_path", "limit"),
    "search_finished": ("by", "status"),
    "page_opened": ("status",),
    "tool_call": ("call_id", "effect"),
    "tool_result": ("call_id", "is_error"),
    "approval_requested": ("call_id", "effect"),
    "approval_decided": ("call_id", "decision"),
    "notice": ("code",),
}
_COUNTS = ("input_tokens", "output_tokens", "searches", "pages", "seconds")


class RunLog(Observer):
    """An observer that writes a line for each step of a run: kinds, counts and codes."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}  # by session

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        if not _run.isEnabledFor(logging.INFO):
            return
        for event in events:
            kept = _KEPT.get(event.type)
            if kept is None:
                continue
            data: Mapping[str, Any] = event.data
            fields = {name: data[name] for name in kept if data.get(name) is not None}
            if event.type in ("run_started", "run_resumed"):
                self._runs[session_id] = data["run_id"]
            if run := self._runs.get(session_id):
                fields = {"run_id": run, "session_id": session_id, **fields}
            if event.type == "run_finished":
                self._runs.pop(session_id, None)
            usage = data.get("usage") if event.type == "run_finished" else None
            fields.update({n: usage[n] for n in _COUNTS if usage and usage.get(n) is not None})
            if event.type == "run_finished" and data.get("error"):
                fields["code"] = data["error"]["code"]
            _run.info(event.type, extra={"fields": fields})

    def lost(self, session_id: str) -> None:
        self._runs.pop(session_id, None)
        _run.warning("run_lost", extra={"fields": {"session_id": session_id}})


# Where the words of a failure stand in an event; in a result only if it is an error.
_FAILURES: Mapping[str, tuple[str, ...]] = {
    "run_finished": ("error",),
    "notice": ("message", "remedy"),
    "search_finished": ("error", "attempts", "notes"),
    "page_opened": ("error", "notes"),
    "tool_result": ("content", "details"),
}


def _told(kind: str, data: Mapping[str, Any], redact: Callable[[str], str]) -> Mapping[str, Any]:
    """Returns an event's data without secrets in the words of a failure."""
    if kind not in _FAILURES or (kind == "tool_result" and not data.get("is_error")):
        return data

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, Mapping):
            return {name: clean(each) for name, each in value.items()}
        return list(map(clean, value)) if isinstance(value, list | tuple) else value

    return {
        name: clean(value) if name in _FAILURES[kind] else value for name, value in data.items()
    }


current: ContextVar[str] = ContextVar("current", default="")  # the id of the run of this task


async def asked_apart(provider: Streams, request: Request, price: Price | None = None) -> Finished:
    """Asks a model beside a run, and returns the whole answer with its cost."""
    end = Finished(Message("assistant", ""), "stop", NOTHING)
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            end = event if isinstance(event, Finished) else end
    cost = price(end.usage) if price else end.usage.cost_usd
    return replace(end, usage=end.usage._replace(cost_usd=cost))
