"""The one way from a client's protocol into the loop: a `Wish` in, the events of a run out.

A client's own tools are offered to the model and handed back: the run ends with their calls, and
none of them is run here. Nothing is stored; a run that its client leaves is stopped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import AgentError, ConfigError, NativeSearchRejected
from searchloop.agent.guard.egress import Egress, Exposure, Secrets
from searchloop.agent.log.events import citation_data, day_of, result_message, source_data
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.providers import Provider, abilities_of, check_options, has
from searchloop.agent.run.prompts import system_text
from searchloop.agent.run.question.files import NewFile, check_takes, checked_files
from searchloop.agent.run.question.structured import StructuredProvider, unfit
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.switch import (
    OFF,
    Facts,
    SearchPath,
    choose_path,
    fallback,
    search_options,
)
from searchloop.agent.settings import Settings
from searchloop.agent.settings.secrets import secrets_of
from searchloop.agent.tools import Tool
from searchloop.agent.tools.backend import ChatBackend
from searchloop.agent.tools.dispatcher import Fence, Toolset
from searchloop.agent.tools.open_page import open_page
from searchloop.agent.tools.web_search import web_search
from searchloop.agent.types import (
    ANYWHERE,
    Limits,
    Message,
    ModelInfo,
    NativeSearch,
    Price,
    Request,
    Search,
    Streams,
    ToolSpec,
)
from searchloop.analysis.told import one_of
from searchloop.compose import Services
from searchloop.protocols.handing import Events, HandedOut, HandingOut, Happened, Unattended
from searchloop.protocols.kept import Kept
from searchloop.protocols.programs import OF_MODELS, OF_SEARCH, Counted, Program, Purse

SUFFIXES: Mapping[str, Search] = {"+web": "auto", "+offline": "offline"}
_POSITIONS: tuple[Search, ...] = ("auto", "offline", "off")
PROGRAMS = "other programs"  # in the place of a chat: whose pages these are
_COUNTS = ("input_tokens", "output_tokens", "seconds", "cost_usd")

_log = logging.getLogger(__name__)


def switch(settings: Settings, program: Program | None = None) -> Search:
    """Returns the switch of all programs, or of one: auto, offline or off. Raises ConfigError."""
    chosen = settings.env.get("SEARCHLOOP_CLIENT_SEARCH") or "auto"
    position = next((each for each in _POSITIONS if each == chosen), None)
    if position is None:
        what = f"SEARCHLOOP_CLIENT_SEARCH is {chosen!r}."
        raise ConfigError("bad_search", what, one_of(chosen, _POSITIONS))
    position = "offline" if position == "auto" and settings.offline else position
    return max(position, program.search, key=_POSITIONS.index) if program else position


def search_off(position: str) -> ConfigError:
    """Returns the error of a search that the switch of other programs does not allow."""
    what = "Search is switched off for other programs on this machine."
    if position == "offline":
        what = "Other programs may search this machine's library only."
    remedy = (
        "The user can allow it on the page in Settings, Other programs, or set "
        "SEARCHLOOP_CLIENT_SEARCH=auto and unset SEARCHLOOP_OFFLINE. Do not claim a search."
    )
    return ConfigError("search_off", what, remedy)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client asks for. `tools` are its own; `files` stand by the place of their message.

    The first `whole` messages are ours, not what a client was shown; `keep` lets us remember;
    `client` is the name that a program gives itself, `program` the one whose key it sent; `effort`
    names the field of that option.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    search: Search = "off"
    sites: NativeSearch = ANYWHERE
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    files: Mapping[int, Sequence[NewFile]] = field(default_factory=dict)
    whole: int = 0
    keep: bool = True
    client: str = ""
    program: Program | None = None
    effort: str = ""


class Ready(NamedTuple):
    """A wish whose model, options, path and files are checked; `ignored` had no effect."""

    wish: Wish
    provider: Provider
    model: str
    path: SearchPath
    messages: list[Message]
    ignored: tuple[str, ...]
    purse: Purse


class _Terms(NamedTuple):
    """What a run may use: its limits, its price, and the backend that counts what it asks."""

    limits: Limits
    price: Price
    backend: Counted


class ClientRuns:
    """Runs for the clients of one user."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._kept: defaultdict[str, Kept] = defaultdict(Kept)
        self._looked: set[Provider] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._own = Purse(Program(""), ())  # of the user, without an end
        self._purses: WeakValueDictionary[str, Purse] = WeakValueDictionary()

    def stop(self) -> None:
        """Ends every run with an error that its client gets: the server stops."""
        for task in self._tasks:
            task.cancel()

    def kept(self, program: Program | None) -> Kept:
        """Returns the answers that are kept for a program."""
        return self._kept[program.name if program else ""]

    async def models(self, program: Program | None = None) -> list[ModelInfo]:
        """Returns the models that can be asked now, by a program."""
        found = [model for model in await self.services.runner.registry.models() if model.available]
        return [each for each in found if program is None or program.may_ask(each.id)]

    async def ready(self, wish: Wish) -> Ready:
        """Checks a wish before anything is sent. Raises AgentError that names what cannot be."""
        runner, settings = self.services.runner, self.services.settings
        last = wish.messages[-1] if wish.messages else Message("user", "")
        shows = len(wish.messages) - 1 in wish.files
        if last.role == "user" and not (last.content.strip() or shows):
            raise ConfigError("empty_question", "The question is empty.", "Send a message.")
        for suffix, search in SUFFIXES.items():
            if wish.model.endswith(suffix):
                wish = replace(wish, model=wish.model.removesuffix(suffix), search=search)
        provider, model = runner.provider(await self._named(wish.model))
        if program := wish.program:
            program.check(f"{provider.name}:{model}")
        provider.check(model)
        wish, ignored = await self._effective(wish, provider, model)
        taken = Instructions.of(wish.system or None, wish.options, wish.schema)
        check_options(provider, taken, model)
        wish = replace(wish, search=self._allowed(wish.search, program), options=taken.options)
        sites = wish.sites
        if wish.search != "off" and sites == ANYWHERE:
            wish = replace(wish, sites=search_options(settings.env))
        facts = Facts(
            wish.search,
            provider.name,
            provider.capabilities(model),
            tools=bool(wish.tools),
            offline=settings.offline,
        )
        path = choose_path(facts, wish.sites)
        whole, shown = wish.messages[: wish.whole], wish.messages[wish.whole :]
        filed = {
            id(wish.messages[at]): await self._with_files(wish.messages[at], files, provider, model)
            for at, files in wish.files.items()
        }
        messages = [*whole, *self.kept(program).restored(shown)]
        messages = [filed.get(id(each), each) for each in messages]
        purse = await self.purse(program)
        return Ready(wish, provider, model, path, messages, ignored, purse)

    async def purse(self, program: Program | None) -> Purse:
        """Returns the purse of a program: a new one where nothing of it is under way."""
        if program is None:
            return self._own
        purse, log = self._purses.get(program.name), self.services.log
        if purse is None:
            rows = await log.aside(log.used, None, program.name)
            purse = self._purses.setdefault(program.name, Purse(program, rows))
        purse.program = program  # its rights may have changed
        return purse

    async def _effective(
        self, wish: Wish, provider: Provider, model: str
    ) -> tuple[Wish, tuple[str, ...]]:
        """Returns the wish without options that have nothing to act on, and their fields.

        A provider that quotes takes none; a model that does not think takes no effort.
        """
        effort = wish.options.get("effort")
        if effort and provider not in self._looked:  # some know their models only then
            self._looked.add(provider)
            with suppress(AgentError):
                await provider.models()
        kept = dict(wish.options) if abilities_of(provider).writes else {}
        if effort not in provider.capabilities(model).efforts:
            kept.pop("effort", None)
        lost = [name for name in wish.options if name not in kept]
        fields = tuple(wish.effort if name == "effort" else name for name in lost)
        return replace(wish, options=kept), fields

    async def _named(self, model: str) -> str:
        """Returns `provider:model`; a bare name belongs to the one provider that has it."""
        if not model or model in ("default", "searchloop"):
            return (await self.services.runner.usual.choose()).model
        if has(model.partition(":")[0]):  # no server is asked for its list
            return model
        found = [m.id for m in await self.models() if m.id.partition(":")[2] == model]
        return found[0] if len(found) == 1 else model

    def _allowed(self, search: Search, program: Program | None) -> Search:
        """Returns the search as the user's switch for programs allows it. Raises ConfigError."""
        position = switch(self.services.settings, program)
        if search == "off" or position == "auto" or search == position:
            return search
        raise search_off(position)

    async def _with_files(
        self, message: Message, files: Sequence[NewFile], provider: Provider, model: str
    ) -> Message:
        """Returns a question with its pictures, and documents as fenced text."""
        held = await checked_files(files, self.services.backend)
        await check_takes(provider, model, [file.attachment for file in held])
        pictures = tuple(
            replace(file.attachment, data=b64encode(file.data).decode())
            for file in held
            if file.attachment.is_image
        )
        fence = Fence()
        texts = [
            fence.around("\n\n".join(file.texts), f"file {file.attachment.name}")
            for file in held
            if not file.attachment.is_image
        ]
        content = "\n\n".join([message.content, *texts])
        return replace(message, content=content, attachments=pictures)

    @asynccontextmanager
    async def answer(self, ready: Ready) -> AsyncIterator[AsyncIterator[list[Happened]]]:
        """Runs a wish, and gives the events of the run: those together that happen at once, last
        `run_finished`; none where nothing happens for a while.

        To leave stops the run. The transcript grows in `ready.messages`. Raises ConfigError where a
        budget is used up.
        """
        emit, purse = Events(), ready.purse
        bounds = OF_MODELS if ready.path == OFF else (*OF_MODELS, *OF_SEARCH)
        price = self.services.runner.price_of(f"{ready.provider.name}:{ready.model}")
        async with purse.answer(price) as counted:
            limits = purse.program.within(purse.spent, self.services.settings.limits, bounds)
            backend = Counted(self.services.backend, purse, Counter())
            terms = _Terms(limits, counted, backend)
            task = asyncio.create_task(self._run(ready, emit, terms))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _: emit.end())

            async def events() -> AsyncIterator[list[Happened]]:
                while (batch := await emit.take()) is not None:
                    yield batch
                task.result()

            try:
                yield events()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self, ready: Ready, emit: Events, terms: _Terms) -> None:
        table, began = SourceTable.of(ready.messages), time.monotonic()
        before = len(ready.messages)
        outcome: Outcome | None = None
        reason, error, path = "error", None, ready.path
        try:
            try:
                outcome = await self._loop(ready, path, table, emit, terms)
            except NativeSearchRejected as problem:
                other = fallback(ready.wish.search, path, problem.message)
                if other is None:
                    raise
                path = other
                outcome = await self._loop(ready, path, table, emit, terms)
            reason, lack = await _judged(outcome, ready.wish.schema)
            error = lack.as_dict() if lack else None
            if ready.wish.keep and not error:
                names = {spec.name for spec in ready.wish.tools}
                self.kept(ready.wish.program).put_steps(
                    ready.wish.messages, ready.messages[before:], names
                )
        except AgentError as problem:
            error = problem.as_dict()
        except asyncio.CancelledError:
            what, remedy = "searchloop stopped before the answer was whole.", "Ask again later."
            error = {"code": "stopped", "message": what, "remedy": remedy}
        except Exception as problem:
            _log.exception("a client's run failed")
            what = f"searchloop failed: {type(problem).__name__}."
            error = {"code": "internal", "message": what, "remedy": "Its log has the details."}
        broken_off = {**emit.usage.as_dict(), **terms.backend.used}
        usage = outcome.usage.as_dict() if outcome else broken_off
        seconds = round(time.monotonic() - began, 3)
        citations = outcome.message.citations if outcome else ()
        finished = {
            "reason": reason,
            "stop_reason": outcome.why if outcome else None,
            "limit": outcome.limit if outcome else None,
            "answer": outcome.message.content if outcome else "",
            "citations": [citation_data(each) for each in citations],
            "sources": [source_data(each) for each in table.touched()],
            "usage": {**usage, "seconds": seconds},
            "search_path": emit.path_taken(path.name),
            "model": f"{ready.provider.name}:{ready.model}",
            "error": error,
        }
        await self._told(ready.wish, finished)
        await emit.event("run_finished", finished)

    async def _told(self, wish: Wish, finished: Mapping[str, Any]) -> None:
        """Writes a line of the log, and counts what a person and a program used."""
        name, log = wish.program.name if wish.program else "", self.services.log
        usage, error = finished["usage"], finished["error"]
        fields = {name: finished[name] for name in ("model", "reason", "search_path")}
        fields |= {name: usage.get(name) for name in _COUNTS}
        fields |= {"code": error["code"]} if error else {}
        _log.info("client_answered", extra={"fields": {"client": name or wish.client, **fields}})
        await log.aside(log.count, finished, name)

    async def called(self, tool: str, program: Program | None, usage: Mapping[str, int]) -> None:
        """Writes a line of the log, and counts what one call of a tool searched and opened."""
        name, log = program.name if program else "", self.services.log
        _log.info("client_called", extra={"fields": {"client": name, "tool": tool, **usage}})
        await log.aside(log.count, {"usage": {**usage, "cost_usd": 0.0}}, name, answers=0)

    async def _loop(
        self, ready: Ready, path: SearchPath, table: SourceTable, emit: Events, terms: _Terms
    ) -> Outcome:
        wish, settings, fence = ready.wish, self.services.settings, Fence()
        emit.path = path.name
        backend = ChatBackend(terms.backend, PROGRAMS, {}, offline=path.name == "offline")
        web: tuple[Tool, ...] = ()
        if path.local:
            web = (web_search(backend, fence, wish.sites), open_page(backend, fence, wish.sites))
        secrets = Secrets(secrets_of(settings.env))
        egress = Egress(lambda: secrets, table, Exposure(ready.messages), "allow")
        ours = Toolset(web, "ask", table, guard=Unattended(egress), fence=fence)
        request = _request(ready, path)
        provider: Streams = ready.provider
        if wish.schema:
            provider = StructuredProvider(provider, wish.schema)
        try:
            return await run_agent_loop(
                ready.messages,
                request,
                provider=provider,
                tools=HandingOut(ours, wish.tools, ready.purse.reached),
                emit=emit,
                sources=table,
                limits=terms.limits,
                price=terms.price,
            )
        except HandedOut as end:
            reply = ready.messages[-1]
            ready.messages.extend(map(result_message, end.results))
            return Outcome(reply, emit.usage, "tool_calls")


async def _judged(
    outcome: Outcome, schema: Mapping[str, Any] | None
) -> tuple[str, AgentError | None]:
    """Returns how a run ended, and what its answer lacks."""
    if outcome.why == "tool_calls":
        return "stop", None
    reason, lack = str(outcome.reason), outcome.error
    if schema and reason == "stop":
        lack = await unfit(outcome.message, schema)
    if lack and outcome.why not in ("length", "refusal"):
        misfit = reason == "stop"
        reason = "error" if misfit or not outcome.message.content.strip() else reason
    return reason, lack


def _request(ready: Ready, path: SearchPath) -> Request:
    """Returns the request of each step, without messages and tools."""
    wish = ready.wish
    system = system_text(
        date=day_of(time.time()),
        mode="ask",
        native_search=path.native is not None,
        local_search=path.local,
        agent=None,
        own=Instructions(wish.system or None),
    )
    return Request(
        model=ready.model,
        messages=(),
        system=system,
        native_search=path.native,
        max_output_tokens=wish.options.get("max_tokens"),
        options={k: v for k, v in wish.options.items() if k != "max_tokens"},
        schema=wish.schema,
    )
