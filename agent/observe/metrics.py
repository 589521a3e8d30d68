"""Counts for Prometheus what happens in this process (`prometheus-client`, extra `metrics`).

Labels are names of our own, of providers and of engines, and codes: nothing that anybody wrote.
"""

# An editor may not have the extra that this module needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import Event
from searchloop.agent.observe import Observer

CONTENT_TYPE = "text/plain; version=0.0.4"
_MOST = 200  # label sets of one counter; those that come later count as "other"
_NAME = re.compile(r"[\w.:/-]{1,60}")
_COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "runs_total": ("Runs that ended, by reason.", ("provider", "reason")),
    "provider_requests_total": ("Answers asked of providers in runs.", ("provider",)),
    "provider_errors_total": (
        "Runs that failed, by the code of their error.",
        ("code", "provider"),
    ),
    "tokens_total": ("Tokens as providers count them.", ("kind", "provider")),
    "searches_total": ("Searches, one for each engine that was asked.", ("engine", "status")),
    "pages_total": ("Pages that were read, or could not be.", ("status",)),
    "tool_calls_total": ("Tool calls, by effect.", ("effect", "status")),
    "approvals_total": ("Approvals asked for, and what was decided.", ("decision",)),
}
_HISTOGRAMS: Mapping[str, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    "append_seconds": (
        *("Time of one append to the log.", ()),
        (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0),
    ),
    "provider_answer_seconds": (
        *("Time of one answer of a provider, to its end.", ("provider",)),
        (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
    ),
}


@dataclass(slots=True)
class _Open:
    """A run: `since` is when its model was asked, `effects` are those of its open calls."""

    provider: str
    since: float
    effects: dict[str, str] = field(default_factory=dict)


class Metrics(Observer):
    """An observer that counts; without `prometheus-client` it does nothing."""

    def __init__(self) -> None:
        self._runs: dict[str, _Open] = {}  # by session
        self._labels: dict[str, set[tuple[str, ...]]] = {name: set() for name in _COUNTERS}
        self._client: Any = None
        with suppress(ImportError):
            import prometheus_client  # slow, and only a server counts

            client: Any = prometheus_client
            self._client = client
            client.disable_created_metrics()
            self._registry = own = client.CollectorRegistry()
            self._counters = {
                name: client.Counter(f"searchloop_{name}", words, labels, registry=own)
                for name, (words, labels) in _COUNTERS.items()
            }
            self._appends, self._answers = (
                client.Histogram(f"searchloop_{name}", words, labels, buckets=times, registry=own)
                for name, (words, labels, times) in _HISTOGRAMS.items()
            )
            client.ProcessCollector("searchloop", registry=own)
        self.gauge("runs_active", "Runs under way in this process.", lambda: len(self._runs))

    def gauge(self, name: str, words: str, ask: Callable[[], float]) -> None:
        """Adds a number that each scrape asks for."""
        if self._client:
            gauge = self._client.Gauge(f"searchloop_{name}", words, registry=self._registry)
            gauge.set_function(ask)

    def text(self) -> str:
        """Returns all numbers in Prometheus' text format. Raises ConfigError without the extra."""
        if not self._client:
            what = "Numbers for Prometheus need a package that is not installed."
            remedy = "Install it with `pip install 'searchloop[metrics]'`."
            raise ConfigError("missing_extra", what, remedy)
        return str(self._client.generate_latest(self._registry).decode())

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        if self._client:
            self._appends.observe(seconds)
            for event in events:
                self._fold(event, event.data, session_id)

    def lost(self, session_id: str) -> None:
        self._runs.pop(session_id, None)

    def _count(self, name: str, *labels: str, by: float = 1) -> None:
        """Counts under these labels, as "other" where a name from elsewhere is no plain one."""
        key = tuple(label if _NAME.fullmatch(label) else "other" for label in labels)
        known = self._labels[name]
        if key not in known and len(known) >= _MOST:
            key = ("other",) * len(key)
        known.add(key)
        self._counters[name].labels(*key).inc(by)

    def _fold(self, event: Event, data: Mapping[str, Any], session_id: str) -> None:
        run = self._runs.get(session_id) or _Open("other", event.at)
        match event.type:
            case "run_started" | "run_resumed":
                provider = str(data.get("model") or "other").partition(":")[0]
                self._runs[session_id] = _Open(provider, event.at)
            case "message" if not data.get("partial"):
                self._count("provider_requests_total", run.provider)
                self._answers.labels(run.provider).observe(event.at - run.since)
                run.since = event.at
            case "run_finished":
                self._runs.pop(session_id, None)
                self._ended(data)
            case "search_finished":
                tried = data.get("attempts") or [{"engine": data["by"], "status": data["status"]}]
                for each in tried:
                    self._count("searches_total", each["engine"], each["status"])
            case "page_opened":
                self._count("pages_total", data["status"])
            case "tool_call":
                run.effects[data["call_id"]] = data.get("effect") or "unknown"
            case "tool_result":
                effect, run.since = run.effects.pop(data["call_id"], "unknown"), event.at
                self._count("tool_calls_total", effect, "error" if data["is_error"] else "ok")
            case "approval_requested":
                self._count("approvals_total", "asked")
            case "approval_decided":
                self._count("approvals_total", data["decision"])

    def _ended(self, data: Mapping[str, Any]) -> None:
        provider = str(data.get("model") or "").partition(":")[0]
        self._count("runs_total", provider, str(data["reason"]))
        if data["reason"] == "error":
            self._count("provider_requests_total", provider)
            self._count("provider_errors_total", data["error"]["code"], provider)
        for kind in ("input", "output", "cached", "reasoning"):
            tokens = (data.get("usage") or {}).get(f"{kind}_tokens")
            if tokens:
                self._count("tokens_total", kind, provider, by=tokens)
