"""Runs a model step: fits it into the window, sends it on the model's rung, checks the counts.

The rungs say how a model calls tools: `native` (the server returns calls), `text` (our parser takes
printed calls out), `envelope` (the server's grammar makes the model write one JSON object) and
`search-first` (the program searches). A step that is refused before any text is sent again: with a
smaller plan if the prompt was too long, one rung lower if the model has no tool calls. Calls that
the server could not parse lower the rung for the session alone, and a call that it returns raises
it again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import lru_cache

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.models import ModelCatalog, full_name, names_cloud
from searchloop.agent.providers.ollama.request import (
    FOUND,
    answering,
    asking,
    first_calls,
    in_words,
    is_envelope,
)
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.providers.ollama.window import Plan, Rung, with_details
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Notice, Request, StreamEvent, TextDelta, Usage

_SESSIONS = 256
_REMOTE = {"remote_host", "remote_model"}  # details of an answer from the cloud
_SMALLEST = 4096  # tokens: the smallest window that a server gives by default
_SAFE = 2048  # tokens that fit any default window: a request for the window can wait
_SAID: dict[Rung, str] = {
    "text": "prints its calls as text; they are taken out of it",
    "envelope": "cannot call tools; it is asked in JSON what to look up",
    "search-first": "cannot call tools; the web is searched with the question before it answers",
}

Events = AsyncGenerator[StreamEvent, None]


class Steps:
    """Runs the steps of all sessions on one server."""

    def __init__(self, config: Config, transport: Transport, catalog: ModelCatalog) -> None:
        self._config = config
        self._catalog = catalog
        self._rungs: dict[str, Rung] = {}
        self._plans = lru_cache(_SESSIONS)(lambda session, model: Plan())
        self._http = HttpProvider(OllamaCodec(config, catalog.names), transport)

    async def stream(self, request: Request) -> Events:
        plan = self._plan(request)
        rung = self.rung(request.model, plan)
        while True:
            shown = False
            try:
                async with aclosing(self._on(rung, request, plan)) as events:
                    async for event in events:
                        shown = shown or type(event) is not Notice
                        if type(event) is Finished:
                            if rung in ("native", "text") and event.message.tool_calls:
                                written = event.message.details.get("calls_as_text")
                                came: Rung = "text" if written else "native"
                                for notice in self._learn(request.model, came, plan):
                                    yield notice
                            event = self._priced(event, request.model)
                            if request.tools:
                                event = with_details(event, calls=self.rung(request.model, plan))
                        yield event
                return
            except ProviderError as error:
                lower = None if shown or not request.tools else _below(rung, error)
                if lower is None:
                    raise
                rung = lower
                if error.code == "tool_call_slip":
                    plan.rung = rung
                self._keep(request.model, rung, plan)

    async def drops(self, request: Request) -> bool:
        """Returns True if the request would lose turns to fit the window."""
        plan = self._plan(request)
        with suppress(ProviderError):  # a question that is too long is no matter of older turns
            await self._planned(request, plan)
            return plan.fitted.turns > 0
        return False

    async def _planned(self, request: Request, plan: Plan) -> Request:
        sent = plan.planned(request)
        if plan.tokens is None and plan.fitted.tokens > _SAFE:
            await plan.find_window(self._catalog, request.model)
            sent = plan.planned(request)
        return sent

    def _priced(self, end: Finished, model: str) -> Finished:
        """Says that an answer costs nothing if its model runs on this machine."""
        cloud = names_cloud(model) or self._catalog.is_remote(model)
        if cloud or not self._config.address.loopback or _REMOTE & end.message.details.keys():
            return end
        return replace(end, usage=end.usage._replace(cost_usd=0.0))

    def rung(self, model: str, plan: Plan | None = None) -> Rung:
        """Returns the rung to try first, for a session or in general."""
        known = (plan and plan.rung) or self._rungs.get(full_name(model), "native")
        tools = self._catalog.capabilities(model).tools
        return "envelope" if known in ("native", "text") and not tools else known

    def _plan(self, request: Request) -> Plan:
        return self._plans(request.session_id or "", request.model)

    def _on(self, rung: Rung, request: Request, plan: Plan) -> Events:
        if not request.tools:
            called = any(m.role == "tool" for m in request.messages)
            words = rung in ("envelope", "search-first") and called
            return self._send(request, plan, words=words)
        if rung == "envelope":
            return self._envelope(request, plan)
        if rung == "search-first":
            return self._search_first(request, plan)
        return self._send(request, plan)

    async def _envelope(self, request: Request, plan: Plan) -> Events:
        for notice in self._learn(request.model, "envelope", plan):
            yield notice
        asked = Usage()
        if not request.answer_now:
            text = ""
            async with aclosing(self._send(asking(request), plan, words=True)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        end, asked = event, event.usage
                    elif isinstance(event, TextDelta):
                        text += event.text
                    else:
                        yield event
            if end.message.tool_calls:
                if not end.message.details.get("calls_as_text"):
                    plan.rung = None
                    self._keep(request.model, "native", plan)
                yield replace(end, message=replace(end.message, content=""))
                return
            whole = end.stop_reason != "length"
            if whole and not is_envelope(text) and first_calls(request):
                self._keep(request.model, "search-first", plan)
                async with aclosing(self._search_first(request, plan)) as events:
                    async for event in events:
                        yield event
                return
        async with aclosing(self._send(answering(request), plan, words=True)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    event = replace(event, usage=asked + event.usage)
                yield event

    async def _search_first(self, request: Request, plan: Plan) -> Events:
        for notice in self._learn(request.model, "search-first", plan):
            yield notice
        calls = first_calls(request)
        if calls:
            yield Finished(Message("assistant", "", tool_calls=calls), "tool_calls", Usage())
            return
        async with aclosing(self._send(answering(request, FOUND), plan, words=True)) as events:
            async for event in events:
                yield event

    def _learn(self, model: str, rung: Rung, plan: Plan) -> list[Notice]:
        self._keep(model, rung, plan)
        what = f"The model {model} {_SAID.get(rung)}."
        return list(plan.tell(f"calls_{rung}", what)) if rung in _SAID else []

    def _keep(self, model: str, rung: Rung, plan: Plan) -> None:
        """Remembers the rung of the model, or that of a session which is below it."""
        if plan.rung is None:
            self._rungs[full_name(model)] = rung
        else:
            plan.rung = rung

    async def _send(self, request: Request, plan: Plan, *, words: bool = False) -> Events:
        """Sends a request that fits the window; once more if the server finds it too long.

        In `words`, calls and results go as plain messages.
        """
        for last in (False, True):
            sent = await self._planned(request, plan)
            if self._catalog.is_remote(request.model):
                sent = replace(sent, context_limit=None)
            sent = in_words(sent) if words else sent
            shown = False
            try:
                async with aclosing(self._http.stream(sent)) as events:
                    async for event in events:
                        shown = True
                        told = plan.finished(event) if type(event) is Finished else (event,)
                        for each in told:
                            yield each
                return
            except ProviderError as error:
                if shown or last or error.code != "context_too_long":
                    raise
                plan.refused(error)
                plan.tried = 0
                await plan.find_window(self._catalog, request.model)  # the model is loaded now
                plan.tokens = plan.tokens or _SMALLEST
                if await self.drops(request):
                    raise ProviderError("context_length", error.message, error.remedy) from error


def _below(rung: Rung, error: ProviderError) -> Rung | None:
    """Returns the rung to try after this error, None if another rung would not help."""
    lower = rung in ("native", "text") and error.code in ("no_tools", "tool_call_slip")
    return "envelope" if lower else None
