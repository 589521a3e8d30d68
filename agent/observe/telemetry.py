"""Makes OpenTelemetry spans and histograms of a run's events: invoke_agent, chat, execute_tool.

They hold no content. A span is made when its work is over, with the times of the log.
https://github.com/open-telemetry/semantic-conventions-genai (status: development)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import Event
from searchloop.agent.observe import Observer
from searchloop.agent.providers import system_name
from searchloop.agent.transport.exchange import Origin

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanKind

ENDPOINT = "SEARCHLOOP_OTEL_ENDPOINT"
_AGENT = "searchloop"
_LAST_SECONDS = 3.0  # to send what is waiting when the program ends
_FINISH: Mapping[str, str] = {"pause": "stop", "refusal": "content_filter"}
_TOKENS: Mapping[str, str] = {  # a step's own; those of a whole run are sums of both kinds
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}

_SECONDS = tuple(0.01 * 2**n for n in range(14))
_LONG = tuple(0.1 * 2**n for n in range(13))
_COUNTS = tuple(4.0**n for n in range(14))
_ABOUT = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
_TOOL = ("gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name", "error.type")
# Name: description, unit, bounds, and the attributes of its span that it has too.
_HISTOGRAMS: Mapping[str, tuple[str, str, tuple[float, ...], tuple[str, ...]]] = {
    "client.operation.duration": ("GenAI operation duration.", "s", _SECONDS, _ABOUT),
    "client.token.usage": (
        *("Number of input and output tokens used.", "{token}", _COUNTS),
        (*_ABOUT, "gen_ai.token.type"),
    ),
    "invoke_agent.duration": (
        *("The end-to-end duration of a single agent invocation.", "s", _LONG),
        ("gen_ai.agent.name", "error.type"),
    ),
    "execute_tool.duration": ("The duration of a single tool execution.", "s", _SECONDS, _TOOL),
}


@dataclass(slots=True)
class _Turn:
    """A run: `since` is when the model was asked, `usage` the sum of tokens up to the last step."""

    span: Span
    model: Mapping[str, str]  # the attributes that name conversation, provider and model
    began: float
    since: float
    calls: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    usage: Mapping[str, int] = field(default_factory=dict)


class Telemetry(Observer):
    """An observer that makes spans and histograms of events, without their content."""

    def __init__(self, provider: TracerProvider, meters: MeterProvider | None = None) -> None:
        from opentelemetry import trace

        self._trace = trace
        self._providers = (provider, *((meters,) if meters else ()))
        self._tracer = provider.get_tracer(_AGENT)
        self._histograms: dict[str, Histogram] = {}
        for name, (words, unit, bounds, _) in _HISTOGRAMS.items():
            if meters:
                self._histograms[name] = meters.get_meter(_AGENT).create_histogram(
                    f"gen_ai.{name}", unit, words, explicit_bucket_boundaries_advisory=bounds
                )
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        with self._lock:
            for event in events:
                fold, turn = _FOLDS.get(event.type), self._turns.get(session_id)
                if event.type == "run_started":
                    self._turns[session_id] = self._began(session_id, event)
                elif fold and turn:
                    fold(self, turn, event.at, event.data)
                if event.type == "run_finished":
                    self._turns.pop(session_id, None)

    def lost(self, session_id: str) -> None:
        with self._lock:
            turn = self._turns.pop(session_id, None)
        if turn:
            turn.span.set_attribute("error.type", "fenced")
            turn.span.end()

    def close(self) -> None:
        """Sends what is waiting, for at most `_LAST_SECONDS`."""
        sending = [threading.Thread(target=p.shutdown, daemon=True) for p in self._providers]
        for each in sending:
            each.start()
        end = time.monotonic() + _LAST_SECONDS
        for each in sending:
            each.join(max(0.0, end - time.monotonic()))

    def _began(self, session_id: str, event: Event) -> _Turn:
        named, _, name = event.data.get("model", "").partition(":")
        model = {
            "gen_ai.conversation.id": session_id,
            "gen_ai.provider.name": system_name(named),
            "gen_ai.request.model": name,
        }
        attributes = {
            **model,
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": _AGENT,
            "searchloop.run_id": event.data["run_id"],
            "searchloop.mode": event.data.get("mode", ""),
            "searchloop.search_path": event.data.get("search_path", ""),
        }
        start = _ns(event.at)
        span = self._tracer.start_span(
            f"invoke_agent {_AGENT}", attributes=attributes, start_time=start
        )
        return _Turn(span, model, event.at, event.at)

    def _said(self, turn: _Turn, at: float, data: Mapping[str, Any]) -> None:
        if data.get("partial"):
            return
        why = str(data["stop_reason"])
        usage = {k: n for k, n in data["usage"].items() if isinstance(n, int)}
        tokens = {name: n - turn.usage.get(name, 0) for name, n in usage.items()}
        attributes: dict[str, Any] = {
            "gen_ai.response.finish_reasons": [_FINISH.get(why, why)],
            **{f"gen_ai.usage.{known}": tokens[n] for n, known in _TOKENS.items() if n in tokens},
        }
        self._chat(turn, at, attributes, tokens)
        turn.usage, turn.since = usage, at

    def _chat(
        self, turn: _Turn, end: float, more: Mapping[str, Any], tokens: Mapping[str, int]
    ) -> None:
        operation = {"gen_ai.operation.name": "chat", "gen_ai.request.stream": True}
        attributes = {**turn.model, **operation, **more}
        name = f"chat {turn.model['gen_ai.request.model']}"
        self._span(turn, name, (turn.since, end), attributes, self._trace.SpanKind.CLIENT)
        self._record("client.operation.duration", end - turn.since, attributes)
        for kind in ("input", "output"):
            if f"{kind}_tokens" in tokens:
                typed = {**attributes, "gen_ai.token.type": kind}
                self._record("client.token.usage", tokens[f"{kind}_tokens"], typed)

    def _record(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        if self._histograms:
            about = {key: attributes[key] for key in _HISTOGRAMS[name][3] if key in attributes}
            self._histograms[name].record(max(0, value), about)

    def _answered(self, turn: _Turn, at: float, data: Mapping[str, Any]) -> None:
        turn.since = at
        began, call = turn.calls.pop(data["call_id"], (at, data))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": data["call_id"],
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": _AGENT,
        }
        if data["is_error"]:
            attributes["error.type"] = "tool_error"
        kind = self._trace.SpanKind.INTERNAL
        self._span(turn, f"execute_tool {call['name']}", (began, at), attributes, kind)
        self._record("execute_tool.duration", at - began, attributes)

    def _ended(self, turn: _Turn, at: float, data: Mapping[str, Any]) -> None:
        turn.span.set_attribute("searchloop.reason", data["reason"])
        for kind in ("input", "output"):
            count = (data.get("usage") or {}).get(f"{kind}_tokens")
            if count is not None:
                turn.span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
        error = {"error.type": data["error"]["code"]} if data.get("error") else {}
        if error:
            self._failed(turn.span, error["error.type"])
            if not turn.calls:  # the run was waiting for the model
                self._chat(turn, at, error, {})
        turn.span.end(_ns(at))
        about = {"gen_ai.agent.name": _AGENT, **error}
        self._record("invoke_agent.duration", at - turn.began, about)

    def _span(
        self,
        turn: _Turn,
        name: str,
        times: tuple[float, float],
        attributes: Mapping[str, Any],
        kind: SpanKind,
    ) -> None:
        parent, start = self._trace.set_span_in_context(turn.span), _ns(times[0])
        span = self._tracer.start_span(name, parent, kind, attributes, start_time=start)
        if "error.type" in attributes:
            self._failed(span, attributes["error.type"])
        span.end(_ns(times[1]))

    def _failed(self, span: Span, code: str) -> None:
        span.set_attribute("error.type", code)
        span.set_status(self._trace.StatusCode.ERROR)


_FOLDS: Mapping[str, Callable[[Telemetry, _Turn, float, Mapping[str, Any]], None]] = {
    "message": Telemetry._said,
    "tool_call": lambda _, turn, at, data: turn.calls.update({data["call_id"]: (at, data)}),
    "tool_result": Telemetry._answered,
    "run_finished": Telemetry._ended,
}


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def telemetry(env: Mapping[str, str], *, offline: bool) -> Telemetry | None:
    """Returns the telemetry of these settings, None when it is off. Raises ConfigError."""
    endpoint = (env.get(ENDPOINT) or "").strip().rstrip("/")
    if not endpoint:
        return None
    address = urlsplit(endpoint)
    if address.scheme not in ("http", "https") or not address.hostname:
        what = f"{ENDPOINT} is not an http:// or https:// address."
        remedy = "Name your collector, for example http://127.0.0.1:4318."
        raise ConfigError("bad_otel", what, remedy)
    if offline and not Origin(address.scheme, address.hostname, address.port or 0).here:
        what = f"SEARCHLOOP_OFFLINE is on, and {ENDPOINT} is another machine."
        raise ConfigError("offline", what, "Unset one of the two.")
    try:
        return _exporting(endpoint)
    except ImportError:
        what = f"{ENDPOINT} is set, and OpenTelemetry is not installed."
        remedy = "Install it with `pip install 'searchloop[otel]'`, or unset the setting."
        raise ConfigError("missing_extra", what, remedy) from None


def _exporting(endpoint: str) -> Telemetry:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "searchloop"})
    spans = TracerProvider(resource=about, shutdown_on_exit=False)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{endpoint}/v1/metrics"))
    meters = MeterProvider([reader], resource=about, shutdown_on_exit=False)
    return Telemetry(spans, meters)
