"""Runs a model step: fits it into the window, sends it as the model calls tools, checks the counts.

`native` models return calls, or print them: our parser takes those out of the text. For the others
there is the `envelope`: the server's grammar makes the model write one JSON object. A step that is
refused before any text is sent again: with a smaller plan if the prompt was too long, as envelope
if the model has no tool calls. Calls that the server could not parse lower the session alone.
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
    answering,
    asking,
    first_calls,
    in_words,
    is_envelope,
)
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.providers.ollama.window import Calls, Plan, with_details
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Notice, Request, StreamEvent, TextDelta, Usage

_SESSIONS = 256
_REMOTE = {"remote_host", "remote_model"}  # details of an answer from the cloud
_SAFE = 2048  # tokens that fit any default window: a request for the window can wait

Events = AsyncGenerator[StreamEvent, None]


class Steps:
    """Runs the steps of all sessions on one server."""

    def __init__(self, config: Config, transport: Transport, catalog: ModelCatalog) -> None:
        self._config = config
        self._catalog = catalog
        self._toolless: set[str] = set()  # full names, as the server said
        self._plans = lru_cache(_SESSIONS)(lambda session, model: Plan())
        self._http = HttpProvider(OllamaCodec(config, catalog.names), transport)

    async def stream(self, request: Request) -> Events:
        plan = self._plan(request)
        calls = self.calls(request.model, plan)
        while True:
            shown = False
            try:
                async with aclosing(self._as(calls, request, plan)) as events:
                    async for event in events:
                        shown = shown or type(event) is not Notice
                        if type(event) is Finished:
                            event = self._priced(event, request.model)
                            if request.tools:
                                printed = event.message.details.get("calls", calls)
                                way = printed if calls == "native" else calls
                                event = with_details(event, calls=way)
                        yield event
                return
            except ProviderError as error:
                lower = error.code in ("no_tools", "tool_call_slip") and calls == "native"
                if shown or not request.tools or not lower:
                    raise
                calls = "envelope"
                if error.code == "tool_call_slip":
                    plan.slipped = True
                else:
                    self._toolless.add(full_name(request.model))

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

    def calls(self, model: str, plan: Plan | None = None) -> Calls:
        """Returns how a model calls tools, in a session or in general."""
        lower = (plan and plan.slipped) or full_name(model) in self._toolless
        able = self._catalog.capabilities(model).tools
        return "native" if able and not lower else "envelope"

    def _plan(self, request: Request) -> Plan:
        return self._plans(request.session_id or "", request.model)

    def _as(self, calls: Calls, request: Request, plan: Plan) -> Events:
        if calls == "envelope" and request.tools:
            return self._envelope(request, plan)
        called = any(m.role == "tool" for m in request.messages)
        return self._send(request, plan, words=calls == "envelope" and called)

    async def _envelope(self, request: Request, plan: Plan) -> Events:
        what = f"The model {request.model} cannot call tools; it is asked in JSON what to look up."
        for notice in plan.tell("calls_envelope", what):
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
            calls = end.message.tool_calls
            if not calls and end.stop_reason != "length" and not is_envelope(text):
                calls = first_calls(request)
            if calls:
                message = replace(end.message, content="", tool_calls=calls)
                yield Finished(message, "tool_calls", asked)
                return
        async with aclosing(self._send(answering(request), plan, words=True)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    event = replace(event, usage=asked + event.usage)
                yield event

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
                await plan.find_window(self._catalog, request.model)  # the model is loaded now
                if await self.drops(request):
                    raise ProviderError("context_length", error.message, error.remedy) from error
