"""Makes OpenTelemetry spans of a run's events: invoke_agent, chat, execute_tool.

They hold no content. A span is made when its work is over, with the times of the log.
https://github.com/open-telemetry/semantic-conventions-genai (status: development)
"""

# An editor may not have the extra that this module needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import threading
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
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanKind

ENDPOINT = "SEARCHLOOP_OTEL_ENDPOINT"
_AGENT = "searchloop"
_LAST_SECONDS = 3.0  # to send what is waiting when the program ends
_FINISH: Mapping[str, str] = {"pause": "stop", "nothing": "stop", "refusal": "content_filter"}
_TOKENS: Mapping[str, str] = {  # a step's own; those of a whole run are sums of both kinds
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}


@dataclass(slots=True)
class _Turn:
    """A run: `since` is when the model was asked, `usage` the sum of tokens up to the last step."""

    span: Span
    model: Mapping[str, str]  # the attributes that name conversation, provider and model
    since: float
    calls: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    usage: Mapping[str, int] = field(default_factory=dict)


class Telemetry(Observer):
    """An observer that makes spans of events, without their content."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace

        self._trace = trace
        self._provider, self._tracer = provider, provider.get_tracer(_AGENT)
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
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(_LAST_SECONDS)

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
        return _Turn(span, model, event.at)

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
        self._chat(turn, at, attributes)
        turn.usage, turn.since = usage, at

    def _chat(self, turn: _Turn, end: float, more: Mapping[str, Any]) -> None:
        operation = {"gen_ai.operation.name": "chat", "gen_ai.request.stream": True}
        name = f"chat {turn.model['gen_ai.request.model']}"
        attributes = {**turn.model, **operation, **more}
        self._span(turn, name, (turn.since, end), attributes, self._trace.SpanKind.CLIENT)

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
                self._chat(turn, at, error)
        turn.span.end(_ns(at))

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
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "searchloop"})
    spans = TracerProvider(resource=about, shutdown_on_exit=False)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    return Telemetry(spans)
