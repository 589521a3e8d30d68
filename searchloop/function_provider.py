"""A provider made of one function: for a model of your own, a plugin, or a test.

And one of ours for programs that use the loop alone.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from searchloop.agent.calls.arguments import with_own_ids
from searchloop.agent.calls.instructions import OPTIONS
from searchloop.agent.providers import Abilities, Provider, ProviderRegistry
from searchloop.agent.settings import Setting, Settings
from searchloop.agent.text import well_formed
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    NOTHING,
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StreamEvent,
    Streams,
    TextDelta,
    ToolCall,
    Usage,
)

Said = str | ToolCall | Usage | StreamEvent
Speaks = Callable[[Request], AsyncIterator[Said]]
_TOOLS = Capabilities()


class FunctionProvider:
    """What `provider` makes: pass it as `Agent(model=...)`, or name it as the entry point of a
    package under `searchloop.providers`.

    `name` is the part of a model's name before the colon, `can` what its models are able to do.

        Agent(model=FunctionProvider("parrot", speaks))
    """

    SETTINGS: tuple[Setting, ...] = ()

    def __init__(self, name: str, speaks: Speaks, can: Capabilities = _TOOLS) -> None:
        self.name, self.can, self._speaks = name, can, speaks
        self.abilities = Abilities(options=OPTIONS)  # they are in `Request.options`
        self.model = f"{name}:default"  # answers where none is named

    def create(self, env: Mapping[str, str], transport: Any) -> FunctionProvider:
        """Returns itself: as an entry point it stands for a module of `agent.providers`."""
        return self

    def capabilities(self, model: str) -> Capabilities:
        """Returns `can`."""
        return self.can

    def check(self, model: str) -> None:
        """Has nothing that could be missing."""

    async def models(self) -> list[ModelInfo]:
        """Returns the one that answers by default."""
        return [ModelInfo(self.model, self.name, self.can)]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields what the function says as the events of one step."""
        text, calls, usage = list[str](), list[ToolCall](), NOTHING
        async for said in self._speaks(request):
            if isinstance(said, str):
                text.append(said)
                yield TextDelta(said)
            elif isinstance(said, ToolCall):
                calls.append(said)
            elif isinstance(said, Usage):
                usage = said
            else:
                yield said
            if isinstance(said, Finished):
                return
        own = tuple(replace(c, id=c.id or f"call_{secrets.token_hex(12)}") for c in calls)
        message = Message("assistant", well_formed("".join(text)), tool_calls=own)
        message = with_own_ids(message, request.messages)
        yield Finished(message, "tool_calls" if calls else "stop", usage)


def provider(name: str, *, can: Capabilities = _TOOLS) -> Callable[[Speaks], FunctionProvider]:
    """Makes a provider of an async generator that gets a `Request`.

    It yields pieces of the answer as text, a `ToolCall` for each call, and a `Usage` if it counts;
    `request.messages` ends with the question, or with the results of its calls. `name` has small
    letters, digits and hyphens. To fail it raises ProviderError.

        @provider("parrot")
        async def parrot(request):
            yield request.messages[-1].content

    `can` says what its models are able to do.

        Agent(model=parrot).ask("Who is a clever bird?")
    """
    return lambda function: FunctionProvider(name, function, can)


class _OneModel:
    """A provider's model, whatever a request calls it."""

    def __init__(self, provider: Provider, name: str) -> None:
        self._provider, self._name = provider, name

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self._provider.stream(replace(request, model=self._name))


@asynccontextmanager
async def open_model(model: str, settings: Settings | None = None) -> AsyncGenerator[Streams]:
    """Opens `provider:model` for `run_agent_loop`, and its connections until the end of the block.

    `settings` are by default those of the environment. Raises ConfigError for one without a key.

        async with open_model("ollama:qwen3:8b") as model:
            await run_agent_loop(asked, Request(), provider=model, tools=Toolset([stock]))
    """
    settings = settings or Settings.load()
    transport = Transport(offline=settings.offline)
    try:
        provider, name = ProviderRegistry(settings.env, transport).provider(model)
        provider.check(name)
        yield _OneModel(provider, name)
    finally:
        await transport.aclose()
