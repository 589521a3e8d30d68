"""One model step on whichever rung the model stands: planned, sent, checked, and sent again lower.

A step that was refused before anything was shown is repeated: with a smaller plan when the prompt
was too long, one rung lower when the model turns out to have no tool calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

from agent.errors import ProviderError
from agent.providers import HttpProvider
from agent.providers.ollama.catalog import Catalog
from agent.providers.ollama.codec import OllamaCodec, Style
from agent.providers.ollama.config import Config
from agent.providers.ollama.envelope import (
    answering,
    answering_found,
    asking,
    first_calls,
    is_answer,
)
from agent.providers.ollama.ladder import SAID, Ladder, Rung, rung_below
from agent.providers.ollama.plan import Plan, with_details
from agent.providers.ollama.think import think_value
from agent.transport import Transport
from agent.types import Finished, Message, Notice, Request, StreamEvent, TextDelta, Usage

_SESSIONS = 256
_TRIES = 3
_SMALLEST = 4096  # tokens: what a server gives at the least when nobody asks for a number
_SAFE = 2048  # tokens that fit any window a server gives by itself: nobody has to be asked

Events = AsyncGenerator[StreamEvent, None]


class Steps:
    """The steps of all sessions on one server."""

    def __init__(
        self, config: Config, transport: Transport, catalog: Catalog, ladder: Ladder
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._ladder = ladder
        self._plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()
        styles: tuple[Style, ...] = ("calls", "envelope", "words")
        self._http = {
            style: HttpProvider(OllamaCodec(config, catalog.names, style, self._think), transport)
            for style in styles
        }

    async def stream(self, request: Request) -> Events:
        """See `Provider.stream`."""
        plan = self._plan(request)
        if self._config.think and self._catalog.find(request.model) is None:
            with suppress(ProviderError):  # what is wrong is said better by the request itself
                await self._catalog.look()
        rung = self._rung(request.model)
        while True:
            shown = False
            try:
                async with aclosing(self._on(rung, request, plan)) as events:
                    async for event in events:
                        shown = shown or type(event) is not Notice
                        if type(event) is Finished and request.tools:
                            event = with_details(event, calls=self._rung(request.model))
                        yield event
                return
            except ProviderError as error:
                lower = None if shown or not request.tools else rung_below(rung, error)
                if lower is None:
                    raise
                rung = lower
                self._ladder.learn(request.model, rung)

    def _rung(self, model: str) -> Rung:
        return self._ladder.rung(model, self._catalog.capabilities(model).tools)

    def _think(self, model: str) -> bool | str | None:
        return think_value(self._config.think, self._catalog.find(model))

    def _plan(self, request: Request) -> Plan:
        key = (request.session_id or "", request.model)
        plan = self._plans.pop(key, None) or Plan()
        self._plans[key] = plan
        while len(self._plans) > _SESSIONS:
            self._plans.popitem(last=False)
        return plan

    async def _find_window(self, request: Request, plan: Plan) -> None:
        """Asks the server what it has, until it is known or was asked often enough."""
        if plan.window is not None or plan.tried >= _TRIES:
            return
        plan.tried += 1
        with suppress(ProviderError):
            if self._catalog.find(request.model) is None:
                await self._catalog.look()
            else:
                await self._catalog.look_loaded()
        plan.window = self._catalog.capabilities(request.model).context

    def _on(self, rung: Rung, request: Request, plan: Plan) -> Events:
        if not request.tools:
            words = rung in ("envelope", "search-first") and _has_calls(request)
            return self._send(request, plan, "words" if words else "calls")
        match rung:
            case "envelope":
                return self._envelope(request, plan)
            case "search-first":
                return self._search_first(request, plan)
        return self._calls(rung, request, plan)

    async def _calls(self, rung: Rung, request: Request, plan: Plan) -> Events:
        async with aclosing(self._send(request, plan, "calls")) as events:
            async for event in events:
                if type(event) is Finished and event.message.tool_calls:
                    written = bool(event.message.details.get("calls_as_text"))
                    for notice in self._learn(request.model, "text" if written else rung, plan):
                        yield notice
                yield event

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
                yield replace(end, message=replace(end.message, content=""))
                return
            whole = end.stop_reason != "length"
            if whole and is_answer(text) is None and first_calls(request):
                self._ladder.learn(request.model, "search-first")
                async with aclosing(self._search_first(request, plan)) as events:
                    async for event in events:
                        yield event
                return
        async with aclosing(self._send(answering(request), plan, "words")) as events:
            async for event in events:
                yield (
                    replace(event, usage=asked + event.usage)
                    if isinstance(event, Finished)
                    else event
                )

    async def _search_first(self, request: Request, plan: Plan) -> Events:
        for notice in self._learn(request.model, "search-first", plan):
            yield notice
        calls = first_calls(request)
        if calls:
            yield Finished(Message("assistant", "", tool_calls=calls), "tool_calls", Usage())
            return
        found = answering_found(request)
        async with aclosing(self._send(found, plan, "words")) as events:
            async for event in events:
                yield event

    def _learn(self, model: str, rung: Rung, plan: Plan) -> list[Notice]:
        self._ladder.learn(model, rung)
        if not SAID[rung]:
            return []
        return list(plan.tell(Notice(f"calls_{rung}", f"The model {model} {SAID[rung]}.")))

    async def _send(self, request: Request, plan: Plan, style: Style) -> Events:
        """One request within the window; once more when the server says that it was not."""
        for last in (False, True):
            sent = plan.fit(request, words=style != "calls")
            if plan.window is None and plan.estimate > _SAFE:
                await self._find_window(request, plan)
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
                await self._find_window(request, plan)  # the model is loaded now
                plan.window = plan.window or _SMALLEST


def _has_calls(request: Request) -> bool:
    return any(m.role == "tool" for m in request.messages)
