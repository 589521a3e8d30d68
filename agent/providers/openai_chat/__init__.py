"""Any server of the Chat Completions API: vLLM, llama.cpp, LM Studio, OpenRouter, OpenAI itself.

A server of one's own is named by a base URL and may want no key. A key goes only to the origin that
it was meant for.

Spec: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

from agent.errors import AgentError, ConfigError, ProviderError
from agent.features import Features
from agent.models import Capabilities, ModelInfo
from agent.providers import HttpProvider
from agent.providers.openai_chat.address import DEFAULT_BASE, SETTINGS, ChatServer, find_server
from agent.providers.openai_chat.catalog import Catalog, answers_questions
from agent.providers.openai_chat.codec import ChatCodec
from agent.providers.openai_chat.window import Window
from agent.transport import Transport
from agent.types import Request, StreamEvent

__all__ = ["DEFAULT_BASE", "FEATURES", "SETTINGS", "OpenAIChat", "create"]

_LIST_SECONDS = 2.0
FEATURES = Features(
    needs="a server; OPENAI_CHAT_BASE_URL",
    pages="ours",
    citations="links in the text, with spans",
    replay="text and calls",
    searches="search models",
    thinks="as the server sends it",
)


class OpenAIChat:
    """See `agent.providers.Provider`."""

    name = "openai-chat"

    def __init__(self, server: ChatServer, transport: Transport) -> None:
        self._server = server
        self._catalog = Catalog()
        self._codec = ChatCodec(server)
        self._transport = transport
        self._http = HttpProvider(self._codec, transport)
        self._window = Window(lambda model: self.capabilities(model).context, self._look)

    def capabilities(self, model: str) -> Capabilities:
        """What the server said of `model`, else what its name tells."""
        return self._catalog.capabilities(model)

    def check(self, model: str) -> None:
        """See `Provider.check`."""
        if self._server.needs_key:
            raise ConfigError(
                "missing_key",
                f"{self._server.name} needs a key, and none is set for it.",
                "Set OPENAI_CHAT_API_KEY, or OPENAI_CHAT_BASE_URL to a server of your own.",
            )

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`. What a server of one's own has no room for is shortened."""
        if not self._server.own:
            async with aclosing(self._counted(request)) as events:
                async for event in events:
                    yield event
            return
        for last in (False, True):
            sent = self._window.fitted(request)
            try:
                async with aclosing(self._counted(sent)) as events:
                    async for event in events:
                        yield event
                return
            except ProviderError as error:
                # A refusal comes before any event, so nothing is shown twice.
                if last or not await self._window.learn(request.model, error):
                    raise

    async def _counted(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The answer. A server that refuses to count tokens is asked without."""
        try:
            async with aclosing(self._http.stream(request)) as events:
                async for event in events:
                    yield event
            return
        except ProviderError as error:
            # A refusal comes before any event, so nothing is shown twice.
            if error.code != "usage_refused" or not self._codec.counting:
                raise
        self._codec.counting = False
        async with aclosing(self._http.stream(request)) as events:
            async for event in events:
                yield event

    async def _look(self) -> list[str]:
        """The names that the server lists, none if it does not answer; the rest is kept."""
        with suppress(AgentError):
            return await self._list()
        return []

    async def _list(self) -> list[str]:
        answer = await self._transport.get_json(
            self._server.address("models"), self._codec.headers(), timeout=_LIST_SECONDS
        )
        return self._catalog.learn(answer)

    async def models(self) -> list[ModelInfo]:
        """What the server lists, or one entry that says what is missing."""
        server = self._server
        if not server.chosen:
            return [
                self._absent(
                    "OPENAI_CHAT_BASE_URL",
                    "Set OPENAI_CHAT_BASE_URL to a Chat Completions server, for example "
                    "http://127.0.0.1:8000/v1.",
                )
            ]
        try:
            self.check("")
            names = await self._list()
        except AgentError as error:
            told = self._codec.explain(error) if isinstance(error, ProviderError) else error
            return [self._absent(told.message, told.remedy)]
        if server.official:
            names = [name for name in names if answers_questions(name)]
        if not names:
            return [self._absent(f"{server.name} lists no model.", "Load a model there.")]
        return [
            ModelInfo(f"{self.name}:{name}", name, self.capabilities(name), local=server.loopback)
            for name in names
        ]

    def _absent(self, missing: str, remedy: str) -> ModelInfo:
        return ModelInfo(
            f"{self.name}:",
            "Chat Completions server",
            available=False,
            local=self._server.loopback,
            missing=missing,
            remedy=remedy,
        )


def create(env: Mapping[str, str], transport: Transport) -> OpenAIChat:
    """The provider as the settings have it."""
    return OpenAIChat(find_server(env), transport)
