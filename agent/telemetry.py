"""Spans and numbers for OpenTelemetry, made of the events of a run: invoke_agent, chat, tool calls.

Off unless a collector is named: see `agent.collector`. No content unless that was asked for. A span
is made when what it stands for is over, with the times of the log, so a run that another process
has taken over ends here as lost and goes on there as a trace of its own.

https://github.com/open-telemetry/semantic-conventions-genai (status: development)
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.events import Event
from agent.observing import Asked
from agent.providers import system_name
from agent.telemetry_numbers import Numbers

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_AGENT = "searchloop"
_LAST_SECONDS = 3.0  # to send what is waiting when the program ends
_FINISH: Mapping[str, str] = {"pause": "stop", "refusal": "content_filter"}
_TOKENS: Mapping[str, str] = {  # a step's own; those of a whole run are sums of both kinds
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}


@dataclass(slots=True)
class _Turn:
    """A run whose spans are being made. `since` is when the model was asked, in epoch seconds."""

    span: Span
    provider: str
    model: str
    began: float
    since: float
    calls: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    question: str = ""


class Telemetry:
    """An observer. `content`: questions, answers, arguments and results go along."""

    def __init__(
        self,
        provider: TracerProvider,
        meters: MeterProvider | None = None,
        *,
        content: bool = False,
    ) -> None:
        self._providers = (provider, *((meters,) if meters else ()))
        self._tracer = provider.get_tracer("searchloop")
        self._numbers = Numbers(meters.get_meter("searchloop")) if meters else None
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
        sending = [threading.Thread(target=p.shutdown, daemon=True) for p in self._providers]
        for each in sending:
            each.start()
        end = time.monotonic() + _LAST_SECONDS
        for each in sending:
            each.join(max(0.0, end - time.monotonic()))

    def _question(self, session_id: str, event: Event) -> None:
        if self._content:
            self._asked[session_id] = event.data["text"]

    def _began(self, session_id: str, event: Event) -> None:
        named, _, model = event.data.get("model", "").partition(":")
        provider = system_name(named)
        span = self._tracer.start_span(
            f"invoke_agent {_AGENT}",
            start_time=_ns(event.at),
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
                "gen_ai.agent.name": _AGENT,
                "gen_ai.conversation.id": session_id,
                "searchloop.run_id": event.data["run_id"],
                "searchloop.mode": event.data.get("mode", ""),
                "searchloop.search_path": event.data.get("search_path", ""),
            },
        )
        question = self._asked.pop(session_id, "")
        self._turns[session_id] = _Turn(
            span, provider, model, event.at, event.at, question=question
        )

    def _said(self, session_id: str, event: Event) -> None:
        turn, data = self._turns.get(session_id), event.data
        if turn is None or data.get("partial"):
            return
        why = str(data["stop_reason"])
        usage = {k: n for k, n in data["usage"].items() if isinstance(n, int)}
        own = {name: n - turn.used.get(name, 0) for name, n in usage.items()}
        attributes = {**self._asking(session_id, turn)}
        attributes["gen_ai.response.finish_reasons"] = [_FINISH.get(why, why)]
        for name, known_as in _TOKENS.items():
            if name in own:
                attributes[f"gen_ai.usage.{known_as}"] = own[name]
        if self._content:
            attributes["gen_ai.output.messages"] = _spoken("assistant", data["text"], why)
        self._chat(turn, event.at, attributes, own)
        turn.used, turn.since = usage, event.at

    @staticmethod
    def _asking(session_id: str, turn: _Turn) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": turn.provider,
            "gen_ai.request.model": turn.model,
            "gen_ai.request.stream": True,
            "gen_ai.conversation.id": session_id,
        }

    def _chat(
        self, turn: _Turn, end: float, attributes: dict[str, Any], tokens: Mapping[str, int]
    ) -> None:
        self._span(turn, f"chat {turn.model}", (turn.since, end), attributes, client=True)
        if self._numbers:
            self._numbers.chat(end - turn.since, attributes, tokens)

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
            "gen_ai.agent.name": _AGENT,
        }
        if event.data["is_error"]:
            attributes["error.type"] = "tool_error"
        if self._content:
            arguments = json.dumps(dict(call.get("arguments", {})), ensure_ascii=False)
            attributes["gen_ai.tool.call.arguments"] = arguments
            attributes["gen_ai.tool.call.result"] = event.data["content"]
        self._span(turn, f"execute_tool {call['name']}", (began, event.at), attributes)
        if self._numbers:
            self._numbers.tool(event.at - began, attributes)

    def _ended(self, session_id: str, event: Event) -> None:
        turn, data = self._turns.pop(session_id, None), event.data
        if turn is None:
            return
        turn.span.set_attribute("searchloop.reason", data["reason"])
        for kind in ("input", "output"):
            count = (data.get("usage") or {}).get(f"{kind}_tokens")
            if count is not None:
                turn.span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
        code = data["error"]["code"] if data.get("error") else ""
        if code:
            self._failed(turn.span, code)
            if not turn.calls:  # it was the model that was waited for
                failed = {**self._asking(session_id, turn), "error.type": code}
                self._chat(turn, event.at, failed, {})
        if self._content:
            asked = _spoken("user", turn.question)
            turn.span.set_attribute("gen_ai.input.messages", asked)
            said = _spoken("assistant", data["answer"], data["reason"])
            turn.span.set_attribute("gen_ai.output.messages", said)
        turn.span.end(_ns(event.at))
        if self._numbers:
            self._numbers.agent(event.at - turn.began, _AGENT, code)

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


def _spoken(role: str, text: str, why: str | None = None) -> str:
    message = {"role": role, "parts": [{"type": "text", "content": text}]}
    return json.dumps([{**message, "finish_reason": why} if why else message], ensure_ascii=False)


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
