"""What a provider can do beyond answering."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import ModelInfo, Request


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


async def no_files(model: str) -> frozenset[str]:
    """Returns the media types of a model that takes text alone: none."""
    return frozenset()


def never(model: str) -> bool:
    """Returns False: what this model is asked goes to another machine."""
    return False


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a provider can do beyond answering; the defaults are those of one that only answers.

    `writes`: it is a language model, so it can also write titles, summaries and JSON; one that
    `decides` writes nothing and fills in schemas of choices. `options` names the options that its
    API takes. `files(model)` returns the media types of files that go to a model as they are.
    `drops(request)` returns True if the provider, which alone knows the window of a model, would
    leave out turns: a summary is better. `listing()` asks the server for the names of its models
    and raises AgentError. `hosts` manages the models on the user's own server. `local(model)`
    returns True if nothing that is asked leaves this machine, as far as is known. `twin` is a
    provider with the same server; a model that both list is shown with that one.
    """

    writes: bool = True
    decides: bool = False
    options: tuple[str, ...] = ()
    files: Callable[[str], Awaitable[frozenset[str]]] = no_files
    drops: Callable[[Request], Awaitable[bool]] | None = None
    listing: Callable[[], Awaitable[Iterable[str]]] | None = None
    hosts: Hosts | None = None
    local: Callable[[str], bool] = never
    twin: str = ""


_ONLY_ANSWERS = Abilities()


def abilities_of(provider: object) -> Abilities:
    """Returns the abilities of a provider; the defaults for one that names none."""
    # Each step asks: a check against a protocol takes forty times as long.
    named: Abilities = getattr(provider, "abilities", _ONLY_ANSWERS)
    return named


def hosting(provider: object, name: str) -> Hosts:
    """Returns what manages the provider's models. Raises ConfigError for one that hosts none."""
    if hosts := abilities_of(provider).hosts:
        return hosts
    what = f"{name} runs its models elsewhere; there is nothing to get or unload."
    remedy = "Write the name of a local model, for example ollama:qwen3:8b."
    raise ConfigError("no_host", what, remedy)
