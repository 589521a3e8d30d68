"""A server of one's own: what a provider offers beside answers when models are installed there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a model has been got: `done` of `total` bytes, 0 of 0 while that is not known."""

    status: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """Where models run. `version` is None while nobody answers; `cloud` whether it may pass
    questions on to a cloud, None where it does not say.
    """

    provider: str
    name: str
    address: str
    version: str | None = None
    cloud: bool | None = None


@runtime_checkable
class Hosts(Protocol):
    """A provider whose models are installed, loaded and removed at the user's wish.

    Each method raises ConfigError for what may not be done and ProviderError for what failed.
    """

    async def server(self) -> Server:
        """Which server it is; never raises."""

    def pull(self, model: str) -> AsyncGenerator[Progress, None]:
        """Gets a model from the server's own library."""

    async def unload(self, model: str) -> None:
        """Takes a model out of memory; one that is not loaded stays so."""

    async def remove(self, model: str) -> None:
        """Deletes a model from the server's disk."""


def hosting(provider: object, name: str) -> Hosts:
    """The provider as one whose models are installed; ConfigError for one that has none."""
    if isinstance(provider, Hosts):
        return provider
    raise ConfigError(
        "no_host",
        f"{name} runs its models elsewhere; there is nothing to get or unload.",
        "Write the name of a local model, for example ollama:qwen3:8b.",
    )
