"""Any server of the Chat Completions API: vLLM, llama.cpp, LM Studio, OpenRouter ...

A base URL names the server, which may want no key; a key goes only to the origin it was meant for.
The body is head, messages, tail: the head stays the same and messages are only appended, so that
every server's prompt cache is hit. A `temperature` is sent only if the user names one: reasoning
and search models refuse it.

Spec: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.log.window import was_cut
from searchloop.agent.providers import LIST_SECONDS, Abilities, HttpProvider, fetched
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import absent
from searchloop.agent.providers._window import Window, named_size
from searchloop.agent.providers._wire import (
    SAMPLING,
    body,
    dump,
    filled,
    function_of,
    json_schema,
    sampling,
)
from searchloop.agent.providers.openai_chat.models import (
    SETTINGS,
    ChatServer,
    Dialect,
    Dialects,
    ListedModels,
    find_server,
    taught_by,
)
from searchloop.agent.providers.openai_chat.request import encode_messages
from searchloop.agent.providers.openai_chat.response import ChatDecoder
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    ModelInfo,
    NativeSearch,
    Notice,
    Request,
    StreamEvent,
)

__all__ = ["SETTINGS", "OpenAIChat", "create"]

# Words of a model's call that its own server could not read: another try may go well.
_SLIP = re.compile(
    r"tool_use_failed|failed to (?:call a function|parse (?:tool|function|input))", re.IGNORECASE
)
_TOOLS = re.compile(
    r"(?:does not|doesn't|not) support (?:tool|function)|support tool use"
    r"|tool choice requires|tools param requires|tool-call-parser",
    re.IGNORECASE,
)
_REMEDY = (
    "Start the server with a larger window. If it is Ollama, set OLLAMA_HOST to its address "
    "without /v1 and choose the model behind ollama: - its window is then planned for."
)
_MORE = 1.3  # corrects an estimate that was too small
_OPTIONS = {**SAMPLING, "seed": "seed", "stop": "stop", "effort": "reasoning_effort"}


class OpenAIChat:
    """See `agent.providers.Provider`."""

    name = "openai-chat"

    def __init__(self, server: ChatServer, transport: Transport) -> None:
        self._server = server
        self._codec = ChatCodec(server)
        self._listed = ListedModels(self._codec.dialects)
        self._transport = transport
        self._http = HttpProvider(self._codec, transport)
        options = (*_OPTIONS, "max_tokens")
        twin = "openai" if server.shared else ""
        self.abilities = Abilities(
            options=options,
            files=self._listed.takes,
            listing=self.listing,
            local=lambda model: server.loopback,
            twin=twin,
        )
        self._windows = defaultdict[str, Window](Window)

    def capabilities(self, model: str) -> Capabilities:
        return replace(self._listed.capabilities(model), context=self._size(model))

    def check(self, model: str) -> None:
        """Raises ConfigError while no server is set."""
        if not self._server.base:
            what = "No Chat Completions server is set."
            remedy = (
                "Set OPENAI_CHAT_BASE_URL to a Chat Completions server, for example "
                "http://127.0.0.1:8000/v1."
            )
            raise ConfigError("missing_url", what, remedy)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`. Tries again without what the server refused."""
        learnt = shown = False
        while not shown:
            sent, estimate = request, 0
            if self._server.own:
                window = self._windows[request.model]
                sent = window.fit(request, self._size(request.model))
                estimate = window.fitted.tokens
            try:
                async with aclosing(self._http.stream(sent)) as events:
                    async for event in events:
                        shown = shown or type(event) is not Notice
                        if type(event) is Finished and self._server.own:
                            async for notice in self._check(request.model, event, estimate):
                                yield notice
                        yield event
                return
            except ProviderError as error:
                if shown:  # no refusal, but the end of an answer
                    raise
                said = f"{error.code} {error.message}"
                if error.status and self._codec.dialects.learn(request.model, said):
                    continue
                if learnt or error.code != "context_length" or error.status == 413:
                    raise  # 413: the body is too large for a proxy, whatever the window
                if not await self._learn(request.model, error):
                    raise
                learnt = True

    def _size(self, model: str) -> int | None:
        """Returns the window in tokens: as a refusal named it, else as the list of models does."""
        return self._windows[model].tokens or self._listed.capabilities(model).context

    async def _learn(self, model: str, error: ProviderError) -> bool:
        """Learns from a refusal for its length. Returns True if another try may succeed."""
        window, before = self._windows[model], self._size(model)
        window.tokens = named_size(error.message) or window.tokens
        if not self._server.own:
            return False  # a summary comes before the next refusal
        if self._size(model) is None:
            await self._look()
        if before is not None and before == self._size(model):
            window.grow(_MORE)
        return self._size(model) is not None

    async def _check(
        self, model: str, end: Finished, estimate: int
    ) -> AsyncGenerator[Notice, None]:
        """Compares the server's count with our estimate, and learns the window from a cut."""
        window, counted = self._windows[model], end.usage.input_tokens or 0
        verdict = was_cut(counted, estimate) if counted else None
        if verdict and self._size(model) is None:
            await self._look()
        if verdict == "prompt_cut" and self._size(model) is None:
            window.tokens = 2 * counted
        for notice in window.check(end, estimate, self._size(model), _REMEDY):
            yield notice

    async def _look(self) -> None:
        with suppress(AgentError):
            await self.listing(LIST_SECONDS)

    async def listing(self, seconds: float = 3 * LIST_SECONDS) -> list[str]:
        """See `ProviderRegistry.trial`. Raises AgentError."""
        self.check("")
        learn = self._listed.learn
        return await fetched(self._codec, self._transport, "models", learn, seconds)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. Returns one entry that names what is missing, if anything is."""
        server = self._server
        try:
            names = await self.listing(LIST_SECONDS)
        except AgentError as error:
            unset = error.code == "missing_url"
            return [self._absent(server.setting if unset else error.message, error.remedy)]
        missing = self._absent(f"{server.name} lists no model.", "Load a model there.")
        return [
            ModelInfo(f"{self.name}:{name}", name, self.capabilities(name), local=server.loopback)
            for name in names
        ] or [missing]

    def _absent(self, missing: str, remedy: str) -> ModelInfo:
        title = "Chat Completions server"
        return absent(self.name, title, self._server.loopback, missing, remedy)


def create(env: Mapping[str, str], transport: Transport) -> OpenAIChat:
    """Returns the provider as the settings describe it."""
    return OpenAIChat(find_server(env), transport)


class ChatCodec(CodecBase):
    """See `agent.providers.Codec`."""

    api, key_setting = "Chat Completions", "OPENAI_CHAT_API_KEY"
    setting, path = "OPENAI_CHAT_BASE_URL", "chat/completions"

    def __init__(self, server: ChatServer) -> None:
        self.endpoint = self._server = server
        self.dialects = Dialects(server.host)

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises ConfigError where the model cannot obey the switch."""
        dialect = self.dialects.of(request.model)
        _check_switch(request, dialect)
        head: dict[str, Any] = {"model": request.model, "stream": True}
        if dialect.counts:
            head["stream_options"] = {"include_usage": True}
        tools: list[dict[str, Any]] = [
            {"type": "function", "function": function_of(tool)} for tool in request.tools
        ]
        if request.native_search is not None and not dialect.always:
            tools.append(_search_tool(dialect.search, request.native_search))
        messages = encode_messages(request, self._server.host, dialect)
        form = None
        # Local servers have one grammar for an answer: either of its calls or of its form.
        if request.schema and dialect.shapes and (request.answer_now or not request.tools):
            form = {"type": "json_schema", "json_schema": json_schema(request.schema)}
        tail = filled(
            tool_choice="none" if request.answer_now and tools else None,
            **sampling(request, _OPTIONS),
            response_format=form,
            **{dialect.limit: request.max_output_tokens},
        )
        return body(dump(head | filled(tools=tools)), "messages", messages, tail)

    def decoder(self, request: Request, content_type: str = "") -> ChatDecoder:
        return ChatDecoder(self, request, self._server, self.dialects.of(request.model))

    def classify(self, details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        """See `CodecBase.classify`. Some refusals are those of servers of this API alone."""
        error, text = super().classify(details, refusal), details.get("message") or ""
        if error.code in ("quota", "unauthorized", "rate_limited"):
            return error
        if taught_by(text):
            return refusal.error("bad_request")  # and the next request is in that dialect
        if _TOOLS.search(text):
            return refusal.error("no_tools")
        slip = _SLIP.search(f"{text} {details.get('code')} {details.get('type')}")
        return refusal.error("tool_call_slip") if slip else error


def _check_switch(request: Request, dialect: Dialect) -> None:
    search = request.native_search
    if search is None and dialect.always:
        what = f"{request.model} searches the web with every answer and cannot be told not to."
        remedy = "Turn its own search on (--search native), or choose another model."
        raise ConfigError("always_searches", what, remedy)
    if search is not None and not dialect.search:
        what = f"{request.model} is not known to search the web by itself."
        raise ConfigError("no_native_search", what, "Choose local search, which is our own.")
    if search is not None and dialect.always and (search.allowed_domains or search.blocked_domains):
        what = f"{request.model} cannot restrict its search to domains."
        remedy = "Leave the domains out, or choose local search."
        raise ConfigError("no_domain_filter", what, remedy)


def _search_tool(kind: str, search: NativeSearch) -> dict[str, Any]:
    """Returns a server's own tool; OpenRouter's is the only one that is known."""
    place = {"type": "approximate", "country": search.country} if search.country else None
    options = filled(
        max_uses=search.max_searches or None,
        allowed_domains=search.allowed_domains,
        excluded_domains=search.blocked_domains,
        user_location=place,
    )
    return {"type": kind, "parameters": options}
