"""Runs a model step: fits it into the window, sends it on the model's rung, checks the counts.

A step that is refused before any text is sent again: with a smaller plan if the prompt was too
long, one rung lower if the model has no tool calls. The rungs are `native` (the server returns
calls), `text` (our parser takes printed calls out), `envelope` (the server's grammar makes the
model write one JSON object) and `search-first` (the program searches). models.json caches the rung
of each model version; calls that the server could not parse lower it for the session alone, and a
call that it returns raises it again. The window is OLLAMA_CONTEXT_LENGTH, else that of the loaded
model; each request names it, because another number would load the model again. Until it is known
nothing is cut: the server is forbidden to cut, and the sizes in its refusal correct the plan.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from searchloop.agent.errors import ProviderError
from searchloop.agent.log.window import Budget, Fitted, fit, size_of, tokens, was_cut
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.models import ModelCatalog, full_name, names_cloud
from searchloop.agent.providers.ollama.request import (
    FOUND,
    answering,
    asking,
    encode_messages,
    encode_tools,
    first_calls,
    is_envelope,
)
from searchloop.agent.providers.ollama.response import OllamaCodec, Style
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Notice, Request, StreamEvent, TextDelta, Usage

Rung = Literal["native", "text", "envelope", "search-first"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
_FILE = "models.json"
SAID: dict[Rung, str] = {
    "text": "prints its calls as text; they are taken out of it",
    "envelope": "cannot call tools; it is asked in JSON what to look up",
    "search-first": "cannot call tools; the web is searched with the question before it answers",
}


class Ladder:
    """Caches the rung of each model in a file. `digest` returns the installed version."""

    def __init__(self, home: Path, server: str, digest: Callable[[str], str]) -> None:
        self._file = home / _FILE
        self._server = server
        self._digest = digest
        self._models: dict[str, dict[str, Any]] | None = None

    def rung(self, model: str, tools: bool) -> Rung:
        """Returns the rung to try first. `tools`: the server says that the model calls tools."""
        known = self.known(model) or "native"
        return "envelope" if known in ("native", "text") and not tools else known

    def known(self, model: str) -> Rung | None:
        """Returns the cached rung of this version, or None. An unknown version matches any."""
        entry = self._read().get(self._key(model), {})
        now, then = self._digest(model), entry.get("digest", "")
        rung = entry.get("calls")
        return rung if rung in RUNGS and (now == then or not now or not then) else None

    def learn(self, model: str, rung: Rung) -> None:
        """Caches the rung; without a writable disk only in memory."""
        if (self.known(model) or "native") == rung:
            return
        models = self._read()
        models[self._key(model)] = {"calls": rung, "digest": self._digest(model)}
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft = self._file.with_suffix(f".{os.getpid()}.tmp")
            draft.write_text(json.dumps(models, indent=1, sort_keys=True) + "\n", "utf-8")
            draft.replace(self._file)

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._models is None:
            self._models = {}
            with suppress(OSError, ValueError):
                stored = json.loads(self._file.read_text("utf-8"))
                if isinstance(stored, dict):
                    self._models = {k: v for k, v in stored.items() if isinstance(v, dict)}
        return self._models

    def _key(self, model: str) -> str:
        return f"{self._server} {full_name(model)}"


def rung_below(rung: Rung, error: ProviderError) -> Rung | None:
    """Returns the rung to try after this error, None if another rung would not help."""
    if rung in ("native", "text") and error.code in ("no_tools", "tool_call_slip"):
        return "envelope"
    if rung == "envelope" and error.code == "bad_request":
        return "search-first"
    return None


_SIZES = re.compile(r"\((\d+) tokens\)[^()]*context size \((\d+)")
_MOST = 4.0


@dataclass
class Plan:
    """The token plan of one session. `factor` corrects our estimate of this model's tokens.

    `rung` is set while the session is below the model's rung, because its calls could not be read.
    """

    rung: Rung | None = None
    words: bool = False
    window: int | None = None
    tried: int = 0
    factor: float = 1.0
    told: set[str] = field(default_factory=set)
    _sent: list[bytes] = field(default_factory=list)
    _fitted: Fitted = field(default_factory=lambda: Fitted([], 0))
    _reused: float | None = None

    def fit(self, request: Request, *, words: bool) -> Request:
        """Fits the request into the window. Raises ProviderError if its question does not fit."""
        self.words = words
        fixed = int(self._fixed(request) * self.factor)
        window = min(filter(None, (self.window, request.context_limit)), default=None)
        if window is None:
            size = sum(map(self._size, request.messages))
            self._fitted = Fitted(list(request.messages), fixed + size)
        else:
            try:
                self._fitted = fit(request.messages, Budget(window, fixed), self._size)
            except ProviderError as error:
                wider = max(16384, 2 * window)
                remedy = f"{error.remedy.rstrip('.')}, for example OLLAMA_CONTEXT_LENGTH={wider}."
                raise ProviderError(error.code, error.message, remedy) from error
        return replace(request, messages=self._fitted.messages, context_limit=window)

    @property
    def dropped(self) -> bool:
        """Returns True if the last request lost turns."""
        return self._fitted.turns > 0

    @property
    def estimate(self) -> int:
        """The tokens of the last request."""
        return self._fitted.tokens

    def _size(self, message: Message) -> int:
        """Estimates the tokens of a message, without its thinking, by its bytes on the wire."""
        if message.attachments:  # a picture takes far less than its bytes
            return int(size_of(message) * self.factor)
        (encoded,) = encode_messages([message], "", self.words)
        return int(tokens(encoded.decode()) * self.factor)

    def _fixed(self, request: Request) -> int:
        listed = encode_tools(request.tools).decode() if request.tools and not self.words else ""
        return tokens(request.system) + tokens(listed)

    def remember(self, request: Request) -> None:
        """Measures how much of the last prompt this request begins with: 1.0 if it only grew."""
        # Templates put the tools at the beginning: other tools make another prompt.
        listed = b"" if self.words or request.answer_now else encode_tools(request.tools)
        parts = [listed + request.system.encode("utf-8", "replace")]
        parts += encode_messages(request.messages, request.model, self.words)
        shared = 0
        for before, now in zip(self._sent, parts, strict=False):
            if before is not now and before != now:
                break
            shared += len(now)
        before_all = sum(map(len, self._sent))
        self._reused = round(shared / before_all, 3) if before_all else None
        self._sent = parts

    def refused(self, error: ProviderError) -> None:
        """Adopts the sizes that the server names in its refusal, else raises the estimate."""
        sizes = _SIZES.search(error.message)
        self._grow(int(sizes[1]) / max(1, self._fitted.tokens) if sizes else 1.3)
        self.window = int(sizes[2]) if sizes else self.window

    def _grow(self, by: float) -> None:
        self.factor = min(_MOST, self.factor * max(1.0, by))

    def finished(self, end: Finished) -> Finished:
        """Adds the plan and its result to the details of the message."""
        return with_details(
            end,
            prompt_estimate=self._fitted.tokens,
            window=self.window,
            prefix_reused=self._reused,
            shortened=self._fitted.shortened or None,
        )

    def check(self, end: Finished) -> Iterator[Notice]:
        """Compares the server's count with our estimate; each notice appears once a session."""
        counted, estimate = end.usage.input_tokens, self._fitted.tokens
        if not counted or not estimate:
            return
        verdict = was_cut(counted, estimate)
        if verdict == "prompt_cut":
            yield from self.tell(
                "prompt_cut",
                f"The server read {counted:,} of about {estimate:,} tokens: it cut the prompt.",
                "Give the model a larger window, for example OLLAMA_CONTEXT_LENGTH=16384.",
            )
        elif counted > estimate * 1.1:
            self._grow(counted / estimate * 1.05)
            if counted > estimate * 1.5:
                yield from self.tell(
                    "estimate_off",
                    f"The prompt took {counted:,} tokens, not about {estimate:,}; "
                    "the plan for this session is corrected.",
                )
        elif verdict:
            yield from self.tell(
                "prompt_small",
                f"The server counts {counted:,} tokens where about {estimate:,} were sent: it may "
                "have cut the prompt.",
                "Compare OLLAMA_CONTEXT_LENGTH with what `ollama ps` shows.",
            )

    def tell(self, code: str, message: str, remedy: str = "") -> Iterator[Notice]:
        """Yields a notice, once a session."""
        if code not in self.told:
            self.told.add(code)
            yield Notice(code, message, remedy)


def with_details(end: Finished, **more: Any) -> Finished:
    """Adds `more` to the details of the message, without values that are None."""
    known = {name: value for name, value in more.items() if value is not None}
    message = replace(end.message, details={**end.message.details, **known})
    return replace(end, message=message)


_SESSIONS = 256
_REMOTE = {"remote_host", "remote_model"}  # details of an answer from the cloud
_TRIES = 3
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
                await self._find_window(request, plan)
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

    async def _find_window(self, request: Request, plan: Plan) -> None:
        """Asks the server for the window, at most _TRIES times."""
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
                if await self.drops(request):
                    raise ProviderError("context_length", error.message, error.remedy) from error
