"""The server that holds a model, for commands that get, unload or delete it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.hosting import Hosts, Server, hosting
from agent.providers import load, names, split_model
from agent.settings import Settings
from agent.transport import Transport

LOCAL = "ollama"


@dataclass(frozen=True, slots=True)
class Held:
    """A model by its whole name and by the name that its server knows."""

    host: Hosts
    id: str
    name: str


@asynccontextmanager
async def held(model: str) -> AsyncIterator[Held]:
    """The model and its server; a name without a provider is Ollama's.

    Raises ConfigError for a provider that runs its models elsewhere.
    """
    given, _, rest = model.partition(":")
    whole = model if given in names() and rest else f"{LOCAL}:{model}"
    provider_name, name = split_model(whole)
    settings = Settings.load()
    transport = Transport(offline=settings.offline)
    try:
        provider = load(provider_name, settings.env, transport)
        yield Held(hosting(provider, provider_name), whole, name)
    finally:
        await transport.aclose()


async def servers(settings: Settings) -> list[Server]:
    """The servers of one's own that the settings name, whether they answer or not."""
    transport = Transport(offline=settings.offline)
    try:
        every = (load(name, settings.env, transport) for name in names())
        return [await host.server() for host in every if isinstance(host, Hosts)]
    finally:
        await transport.aclose()
