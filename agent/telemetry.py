"""Spans for OpenTelemetry, made of the events of a run: invoke_agent, chat, execute_tool.

Off unless `SEARCHLOOP_OTEL_ENDPOINT` names a collector (OTLP over HTTP, extra `otel`); nothing of
OpenTelemetry is imported before that. No content unless `SEARCHLOOP_OTEL_CONTENT` is on. A span is
made when what it stands for is over, with the times of the log, so a run that another process has
taken over ends here as lost and goes on there as a trace of its own.

https://github.com/open-telemetry/semantic-conventions-genai (status: development)
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.errors import ConfigError
from agent.events import Event
from agent.observing import Asked
from agent.settings import is_on
from agent.wire import Origin

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

ENDPOINT, CONTENT = "SEARCHLOOP_OTEL_ENDPOINT", "SEARCHLOOP_OTEL_CONTENT"
_LAST_SECONDS = 3.0  # to send what is waiting when the program ends
_FINISH: Mapping[str, str] = {"pause": "stop", "refusal": "content_filter"}


@dataclass(slots=True)
class _Turn:
    """A run whose spans are being made. `since` is when the model was asked, in epoch seconds."""

    span: Span
    provider: str
    model: str
    since: float
    calls: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    question: str = ""


class Telemetry:
    """An observer. `content`: questions, answers, arguments and results go along."""

    def __init__(self, provider: TracerProvider, *, content: bool = False) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("searchloop")
        self._content = content
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}
        self._asked: dict[str, str] = {}  # session -> the question, where content may go along

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """See `Observer.stored`."""
        with self._lock:
            for event in events:
                fold = _FOLDS.get(event.type)
                if fold:
                    fold(self, session_id, event)

    def lost(self, session_id: str) -> None:
        """See `Observer.lost`."""
        with self._lock:
            turn = self._turns.pop(session_id, None)
        if turn:
            turn.span.set_attribute("error.type", "fenced")
            turn.span.end()

    def asked(self, asked: Asked) -> None:
        """See `Observer.asked`."""

    def close(self) -> None:
        """Sends what is waiting, for as long as that may take."""
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(_LAST_SECONDS)

    def _question(self, session_id: str, event: Event) -> None:
        if self._content:
            self._asked[session_id] = event.data["text"]

    def _began(self, session_id: str, event: Event) -> None:
        provider, _, model = event.data.get("model", "").partition(":")
        span = self._tracer.start_span(
            "invoke_agent searchloop",
            start_time=_ns(event.at),
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
                "gen_ai.agent.name": "searchloop",
                "gen_ai.conversation.id": session_id,
                "searchloop.run_id": event.data["run_id"],
                "searchloop.mode": event.data.get("mode", ""),
                "searchloop.search_path": event.data.get("search_path", ""),
            },
        )
        question = self._asked.pop(session_id, "")
        self._turns[session_id] = _Turn(span, provider, model, event.at, question=question)

    def _said(self, session_id: str, event: Event) -> None:
        turn, data = self._turns.get(session_id), event.data
        if turn is None or data.get("partial"):
            return
        why = str(data["stop_reason"])
        usage = {k: n for k, n in data["usage"].items() if isinstance(n, int)}
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": turn.provider,
            "gen_ai.request.model": turn.model,
            "gen_ai.response.finish_reasons": [_FINISH.get(why, why)],
            "gen_ai.conversation.id": session_id,
        }
        for kind in ("input", "output"):  # the log holds sums; a span has the step's own
            name = f"{kind}_tokens"
            if name in usage:
                own = usage[name] - turn.used.get(name, 0)
                attributes[f"gen_ai.usage.{name}"] = own
        if self._content:
            attributes["gen_ai.output.messages"] = _spoken("assistant", data["text"], why)
        self._span(turn, f"chat {turn.model}", (turn.since, event.at), attributes, client=True)
        turn.used, turn.since = usage, event.at

    def _called(self, session_id: str, event: Event) -> None:
        turn = self._turns.get(session_id)
        if turn:
            turn.calls[event.data["call_id"]] = (event.at, event.data)

    def _answered(self, session_id: str, event: Event) -> None:
        turn = self._turns.get(session_id)
        if turn is None:
            return
        turn.since = event.at
        began, call = turn.calls.pop(event.data["call_id"], (event.at, event.data))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": event.data["call_id"],
            "gen_ai.tool.type": "function",
        }
        if event.data["is_error"]:
            attributes["error.type"] = "tool_error"
        if self._content:
            arguments = json.dumps(dict(call.get("arguments", {})), ensure_ascii=False)
            attributes["gen_ai.tool.call.arguments"] = arguments
            attributes["gen_ai.tool.call.result"] = event.data["content"]
        self._span(turn, f"execute_tool {call['name']}", (began, event.at), attributes)

    def _ended(self, session_id: str, event: Event) -> None:
        turn, data = self._turns.pop(session_id, None), event.data
        if turn is None:
            return
        turn.span.set_attribute("searchloop.reason", data["reason"])
        for kind in ("input", "output"):
            count = (data.get("usage") or {}).get(f"{kind}_tokens")
            if count is not None:
                turn.span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
        if data.get("error"):
            self._failed(turn.span, data["error"]["code"])
        if self._content:
            asked = _spoken("user", turn.question)
            turn.span.set_attribute("gen_ai.input.messages", asked)
            said = _spoken("assistant", data["answer"], data["reason"])
            turn.span.set_attribute("gen_ai.output.messages", said)
        turn.span.end(_ns(event.at))

    def _span(
        self,
        turn: _Turn,
        name: str,
        times: tuple[float, float],
        attributes: Mapping[str, Any],
        *,
        client: bool = False,
    ) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context

        span = self._tracer.start_span(
            name,
            context=set_span_in_context(turn.span),
            kind=SpanKind.CLIENT if client else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=_ns(times[0]),
        )
        if "error.type" in attributes:
            self._failed(span, attributes["error.type"])
        span.end(_ns(times[1]))

    @staticmethod
    def _failed(span: Span, code: str) -> None:
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", code)
        span.set_status(StatusCode.ERROR)


_FOLDS: Mapping[str, Callable[[Telemetry, str, Event], None]] = {
    "user_message": Telemetry._question,
    "run_started": Telemetry._began,
    "message": Telemetry._said,
    "tool_call": Telemetry._called,
    "tool_result": Telemetry._answered,
    "run_finished": Telemetry._ended,
}


def telemetry(env: Mapping[str, str], *, offline: bool) -> Telemetry | None:
    """Telemetry as the settings have it, None when it is off. Raises ConfigError."""
    endpoint = (env.get(ENDPOINT) or "").strip().rstrip("/")
    if not endpoint:
        return None
    address = urlsplit(endpoint)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigError(
            "bad_otel",
            f"{ENDPOINT} is not an http:// or https:// address.",
            "Name your collector, for example http://127.0.0.1:4318.",
        )
    if offline and not Origin(address.scheme, address.hostname, address.port or 0).here:
        raise ConfigError(
            "offline",
            f"SEARCHLOOP_OFFLINE is on, and {ENDPOINT} is another machine.",
            "Unset one of the two.",
        )
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise ConfigError(
            "missing_extra",
            f"{ENDPOINT} is set, and OpenTelemetry is not installed.",
            "Install it with `pip install 'searchloop[otel]'`, or unset the setting.",
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return _made(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces"), is_on(env.get(CONTENT)))


def _made(exporter: SpanExporter, content: bool) -> Telemetry:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(
        resource=Resource.create({"service.name": "searchloop"}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Telemetry(provider, content=content)


def _spoken(role: str, text: str, why: str | None = None) -> str:
    message = {"role": role, "parts": [{"type": "text", "content": text}]}
    return json.dumps([{**message, "finish_reason": why} if why else message], ensure_ascii=False)


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
