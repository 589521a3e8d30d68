"""What the loop is handed: a provider, a toolset and an emitter, as protocols."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from agent.types import (
    Request,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
)


class Streams(Protocol):
    """The part of a provider that the loop needs."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """One model step: events, the last of them `Finished`, or ProviderError."""


class Calls(Protocol):
    """The part of a toolset that the loop needs."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""

    @property
    def exhausted(self) -> str | None:
        """Why no further calls help, in words; None while they may."""

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """Runs the calls together; results in call order; whatever goes wrong is a result."""


class Emit(Protocol):
    """Where a run's events go."""

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """A piece of text; many a second, so it must cost next to nothing."""

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Everything else that `agent.events` lists."""

    async def activity(self, event: StreamEvent) -> None:
        """What the provider does by itself: its searches and page reads."""
