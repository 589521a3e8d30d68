"""Numbers of this process, counted as things happen, in the text format of Prometheus.

Fed by what is appended to the log, so it costs no look into it. Labels are names of our own, of
providers and of engines, and error codes: nothing that a user, a model or a page wrote.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4).
"""

from __future__ import annotations

import bisect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.events import Event
from agent.observing import Asked

CONTENT_TYPE = "text/plain; version=0.0.4"
APPENDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)  # seconds
ANSWERS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_MOST = 200  # different labels of one number; what comes after counts as "other"
_NAME = re.compile(r"[\w.:/-]{1,60}")
_HELP: Mapping[str, tuple[str, str]] = {
    "runs_total": ("counter", "Runs that ended, by reason."),
    "runs_active": ("gauge", "Runs under way in this process."),
    "provider_requests_total": ("counter", "Requests to providers."),
    "provider_errors_total": ("counter", "Requests to providers that failed, by code or status."),
    "tokens_total": ("counter", "Tokens as providers count them."),
    "searches_total": ("counter", "Searches, one for each engine that was asked."),
    "pages_total": ("counter", "Pages that were read, or could not be."),
    "tool_calls_total": ("counter", "Tool calls, by effect."),
    "approvals_total": ("counter", "Approvals asked for, and what was decided."),
    "append_seconds": ("histogram", "Time of one append to the log."),
    "provider_answer_seconds": ("histogram", "Time of one answer of a provider, to its end."),
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and histograms. `gauges` are asked when somebody looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, dict[Labels, float]] = {}
        self._times: dict[tuple[str, Labels], _Histogram] = {}
        self._runs: dict[str, dict[str, str]] = {}  # session -> effects of the calls under way
        self.gauges: dict[str, tuple[str, Callable[[], float | None]]] = {}

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """See `Observer.stored`."""
        with self._lock:
            self._time("append_seconds", (), seconds, APPENDS)
            for event in events:
                fold = _FOLDS.get(event.type)
                if fold:
                    fold(self, session_id, event.data)

    def lost(self, session_id: str) -> None:
        """See `Observer.lost`."""
        with self._lock:
            self._runs.pop(session_id, None)

    def asked(self, asked: Asked) -> None:
        """See `Observer.asked`."""
        with self._lock:
            self._count("provider_requests_total", provider=asked.provider)
            if asked.problem:
                self._count("provider_errors_total", provider=asked.provider, code=asked.problem)
            labels = (("provider", asked.provider),)
            self._time("provider_answer_seconds", labels, asked.seconds, ANSWERS)

    def text(self) -> str:
        """All numbers; cheap enough to be asked every second."""
        lines: list[str] = []
        with self._lock:
            active: dict[Labels, float] = {(): len(self._runs)}
            counts = {**self._counts, "runs_active": active}
            for name in sorted(counts):
                lines += _head(name, *_HELP[name])
                lines += (_line(name, labels, n) for labels, n in sorted(counts[name].items()))
            for name in sorted({name for name, _ in self._times}):
                lines += _head(name, *_HELP[name])
                for (own, labels), times in sorted(self._times.items()):
                    lines += times.lines(name, labels) if own == name else ()
        for name, (words, ask) in sorted(self.gauges.items()):
            value = ask()
            if value is not None:
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [*_head(name, kind, words), _line(name, (), value)]
        return "\n".join([*lines, ""])

    def _count(self, name: str, by: float = 1, **labels: str) -> None:
        counts = self._counts.setdefault(name, {})
        key = tuple(sorted((k, _plain(v)) for k, v in labels.items()))
        if key not in counts and len(counts) >= _MOST:
            key = tuple((k, "other") for k, _ in key)
        counts[key] = counts.get(key, 0) + by

    def _time(self, name: str, labels: Labels, seconds: float, bounds: Sequence[float]) -> None:
        found = self._times.get((name, labels))
        if found is None:
            found = self._times[(name, labels)] = _Histogram(bounds)
        found.add(seconds)

    def _began(self, session_id: str, data: Mapping[str, Any]) -> None:
        self._runs[session_id] = {}

    def _ended(self, session_id: str, data: Mapping[str, Any]) -> None:
        self._runs.pop(session_id, None)
        provider = str(data.get("model") or "").partition(":")[0]
        self._count("runs_total", reason=str(data["reason"]), provider=provider)
        usage = data.get("usage") or {}
        for kind in ("input", "output", "cached", "reasoning"):
            tokens = usage.get(f"{kind}_tokens")
            if tokens:
                self._count("tokens_total", tokens, provider=provider, kind=kind)

    def _searched(self, session_id: str, data: Mapping[str, Any]) -> None:
        asked = data.get("attempts") or [{"engine": data["by"], "status": data["status"]}]
        for each in asked:
            self._count("searches_total", engine=each["engine"], status=each["status"])

    def _read(self, session_id: str, data: Mapping[str, Any]) -> None:
        self._count("pages_total", status=data["status"])

    def _called(self, session_id: str, data: Mapping[str, Any]) -> None:
        effects = self._runs.setdefault(session_id, {})
        effects[data["call_id"]] = data.get("effect") or "unknown"

    def _answered(self, session_id: str, data: Mapping[str, Any]) -> None:
        effect = self._runs.get(session_id, {}).pop(data["call_id"], "unknown")
        status = "error" if data["is_error"] else "ok"
        self._count("tool_calls_total", effect=effect, status=status)

    def _to_approve(self, session_id: str, data: Mapping[str, Any]) -> None:
        self._count("approvals_total", decision="asked")

    def _decided(self, session_id: str, data: Mapping[str, Any]) -> None:
        self._count("approvals_total", decision=data["decision"])


_FOLDS: Mapping[str, Callable[[Metrics, str, Mapping[str, Any]], None]] = {
    "run_started": Metrics._began,
    "run_resumed": Metrics._began,
    "run_finished": Metrics._ended,
    "search_finished": Metrics._searched,
    "page_opened": Metrics._read,
    "tool_call": Metrics._called,
    "tool_result": Metrics._answered,
    "approval_requested": Metrics._to_approve,
    "approval_decided": Metrics._decided,
}


class _Histogram:
    """Counts of times up to each bound, in seconds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect.bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: Labels) -> list[str]:
        total, lines = 0, []
        for bound, count in zip(self._bounds, self._counts, strict=False):
            total += count
            lines.append(_line(f"{name}_bucket", (*labels, ("le", f"{bound:g}")), total))
        whole = sum(self._counts)
        lines.append(_line(f"{name}_bucket", (*labels, ("le", "+Inf")), whole))
        return [
            *lines,
            _line(f"{name}_sum", labels, self._sum),
            _line(f"{name}_count", labels, whole),
        ]


def _plain(value: str) -> str:
    """A label: names of engines come from a search backend elsewhere, so they are looked at."""
    return value if _NAME.fullmatch(value) else "other"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP searchloop_{name} {words}", f"# TYPE searchloop_{name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels)
    return f"searchloop_{name}{f'{{{inside}}}' if inside else ''} {value:.10g}"
