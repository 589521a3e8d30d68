"""A provider made of one function: for a model of your own, a plugin, or a test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from searchloop.agent.calls.caller import OPTIONS
from searchloop.agent.settings import Setting
from searchloop.agent.types import (
    NOTHING,
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StreamEvent,
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
        self.options = {option: option for option in OPTIONS}  # they are in `Request.options`
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
        message = Message("assistant", "".join(text), tool_calls=own)
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
