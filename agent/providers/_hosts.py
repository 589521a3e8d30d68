"""What providers offer: in words, and models that the user installs on their servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol, runtime_checkable

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import ModelInfo


class Features(NamedTuple):
    """Describes a provider in the words of the README's table.

    `replay` says how history is sent back; `searches` and `thinks` are set where the models are not
    known beforehand.
    """

    needs: str
    pages: str
    citations: str
    replay: str
    searches: str | None = None
    thinks: str | None = None


class PullProgress(NamedTuple):
    """Progress of a download: `done` of `total` bytes, 0 of 0 while the size is unknown."""

    status: str
    done: int = 0
    total: int = 0


class ModelServer(NamedTuple):
    """A server that runs models. `version` is None while it does not answer; `cloud` is True if it
    may pass questions on to a cloud, None if it does not say.
    """

    provider: str
    name: str
    address: str
    version: str | None = None
    cloud: bool | None = None


@runtime_checkable
class Hosts(Protocol):
    """A provider on whose server the user installs, unloads and removes models.

    Methods raise ConfigError for what is not allowed and ProviderError for what failed.
    """

    async def server(self) -> ModelServer:
        """Describes the server; never raises."""

    async def own_models(self) -> list[ModelInfo]:
        """Lists the models with a usable window that run on the server itself; never raises."""

    def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Downloads a model from the server's own library."""

    async def unload(self, model: str) -> None:
        """Unloads a model from memory, if it is loaded."""

    async def remove(self, model: str) -> None:
        """Deletes a model from the server's disk."""


def hosting(provider: object, name: str) -> Hosts:
    """Returns `provider` if it hosts models. Raises ConfigError for any other."""
    if isinstance(provider, Hosts):
        return provider
    what = f"{name} runs its models elsewhere; there is nothing to get or unload."
    remedy = "Write the name of a local model, for example ollama:qwen3:8b."
    raise ConfigError("no_host", what, remedy)
