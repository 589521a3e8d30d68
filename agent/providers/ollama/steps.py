"""Runs a model step: fits it into the window, sends it on the model's rung, checks the counts.

A step that is refused before any text is sent again: with a smaller plan if the prompt was too
long, one rung lower if the model has no tool calls. Calls that the server could not parse lower the
rung for the session alone, and a call that it returns raises it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.ladder import SAID, Ladder, Rung, rung_below
from searchloop.agent.providers.ollama.models import ModelCatalog, names_cloud
from searchloop.agent.providers.ollama.request import (
    FOUND,
    answering,
    asking,
    first_calls,
    is_envelope,
)
from searchloop.agent.providers.ollama.response import OllamaCodec, Style
from searchloop.agent.providers.ollama.window import Plan, with_details
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Notice, Request, StreamEvent, TextDelta, Usage

_SESSIONS = 256
_REMOTE = {"remote_host", "remote_model"}  # details of an answer from the cloud
_SMALLEST = 4096  # tokens: the smallest window that a server gives by default
_SAFE = 2048  # tokens that fit any default window: a request for the window can wait

Events = AsyncGenerator[StreamEvent, None]


class Steps:
    """Runs the steps of all sessions on one server."""

    def __init__(
        self, config: Config, transport: Transport, catalog: ModelCatalog, ladder: Ladder
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._ladder = ladder
        self._plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()
        styles: tuple[Style, ...] = ("calls", "envelope", "words")
        self._http = {
            style: HttpProvider(OllamaCodec(config, catalog.names, style), transport)
            for style in styles
        }

    async def stream(self, request: Request) -> Events:
        plan = self._plan(request)
        rung = self._rung(request.model, plan)
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
                                event = with_details(event, calls=self._rung(request.model, plan))
                        yield event
                return
            except ProviderError as error:
                lower = None if shown or not request.tools else rung_below(rung, error)
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
            plan.fit(request, words=plan.words)
            if plan.window is None and plan.estimate > _SAFE:
                await plan.find_window(self._catalog, request.model)
                plan.fit(request, words=plan.words)
            return plan.dropped
        return False

    def _priced(self, end: Finished, model: str) -> Finished:
        """Says that an answer costs nothing if its model runs on this machine."""
        cloud = names_cloud(model) or self._catalog.is_remote(model)
        if cloud or not self._config.address.loopback or _REMOTE & end.message.details.keys():
            return end
        return replace(end, usage=end.usage._replace(cost_usd=0.0))

    def _rung(self, model: str, plan: Plan) -> Rung:
        return plan.rung or self._ladder.rung(model, self._catalog.capabilities(model).tools)

    def _plan(self, request: Request) -> Plan:
        key = (request.session_id or "", request.model)
        plan = self._plans.pop(key, None) or Plan()
        self._plans[key] = plan
        while len(self._plans) > _SESSIONS:
            self._plans.popitem(last=False)
        return plan

    def _on(self, rung: Rung, request: Request, plan: Plan) -> Events:
        if not request.tools:
            called = any(m.role == "tool" for m in request.messages)
            words = rung in ("envelope", "search-first") and called
            return self._send(request, plan, "words" if words else "calls")
        if rung == "envelope":
            return self._envelope(request, plan)
        if rung == "search-first":
            return self._search_first(request, plan)
        return self._send(request, plan, "calls")

    async def _envelope(self, request: Request, plan: Plan) -> Events:
        for notice in self._learn(request.model, "envelope", plan):
            yield notice
        asked = Usage()
        if not request.answer_now:
            text = ""
            async with aclosing(self._send(asking(request), plan, "envelope")) as events:
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
                    self._ladder.learn(request.model, "native")
                yield replace(end, message=replace(end.message, content=""))
                return
            whole = end.stop_reason != "length"
            if whole and not is_envelope(text) and first_calls(request):
                self._keep(request.model, "search-first", plan)
                async with aclosing(self._search_first(request, plan)) as events:
                    async for event in events:
                        yield event
                return
        async with aclosing(self._send(answering(request), plan, "words")) as events:
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
        async with aclosing(self._send(answering(request, FOUND), plan, "words")) as events:
            async for event in events:
                yield event

    def _learn(self, model: str, rung: Rung, plan: Plan) -> list[Notice]:
        self._keep(model, rung, plan)
        what = f"The model {model} {SAID.get(rung)}."
        return list(plan.tell(f"calls_{rung}", what)) if rung in SAID else []

    def _keep(self, model: str, rung: Rung, plan: Plan) -> None:
        """Remembers the rung of the model, or that of a session which is below it."""
        if plan.rung is None:
            self._ladder.learn(model, rung)
        else:
            plan.rung = rung

    async def _send(self, request: Request, plan: Plan, style: Style) -> Events:
        """Sends a request that fits the window; once more if the server finds it too long."""
        for last in (False, True):
            sent = plan.fit(request, words=style != "calls")
            if plan.window is None and plan.estimate > _SAFE:
                await plan.find_window(self._catalog, request.model)
                sent = plan.fit(request, words=style != "calls")
            if self._catalog.is_remote(request.model):
                sent = replace(sent, context_limit=None)
            plan.remember(sent)
            shown = False
            try:
                async with aclosing(self._http[style].stream(sent)) as events:
                    async for event in events:
                        shown = True
                        if type(event) is Finished:
                            for notice in plan.check(event):
                                yield notice
                            event = plan.finished(event)
                        yield event
                return
            except ProviderError as error:
                if shown or last or error.code != "context_too_long":
                    raise
                plan.refused(error)
                plan.tried = 0
                await plan.find_window(self._catalog, request.model)  # the model is loaded now
                plan.window = plan.window or _SMALLEST
                if await self.drops(request):
                    raise ProviderError("context_length", error.message, error.remedy) from error
