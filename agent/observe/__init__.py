"""Observes a process at its log.

Others may import: logs, metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from searchloop.agent.log.contract import Observer as Observer
from searchloop.agent.log.events import Event
from searchloop.agent.types import NOTHING, Finished, Message, Price, Request, Streams

_run = logging.getLogger("searchloop.run")


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


current: ContextVar[str] = ContextVar("current", default="")  # the id of the run of this task


async def asked_apart(provider: Streams, request: Request, price: Price | None = None) -> Finished:
    """Asks a model beside a run, and returns the whole answer with its cost."""
    end = Finished(Message("assistant", ""), "stop", NOTHING)
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            end = event if isinstance(event, Finished) else end
    cost = price(end.usage) if price else end.usage.cost_usd
    return replace(end, usage=end.usage._replace(cost_usd=cost))
