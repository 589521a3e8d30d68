"""Ollama: models on this machine (or in its cloud) through `/api/chat`.

A local server needs no key. The user mends its faults, so each error names the command for it. When
nothing may leave the machine, a cloud model is refused by the server's description of it, not only
by its name.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress

from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.providers import Abilities, ModelServer, PullProgress
from searchloop.agent.providers._keyed import absent
from searchloop.agent.providers.ollama.config import SETTINGS, Config, parse_address, read_config
from searchloop.agent.providers.ollama.models import Installed, ModelCatalog, can_chat, names_cloud
from searchloop.agent.providers.ollama.request import OPTIONS
from searchloop.agent.providers.ollama.server import checked_name, pull
from searchloop.agent.providers.ollama.steps import Steps
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, ModelInfo, Request, StreamEvent
from searchloop.agent.types.attachments import IMAGES

__all__ = ["SETTINGS", "Ollama", "create"]
_SECONDS = 10.0  # to unload or delete a model


class Ollama:
    """See `Provider` and `Hosts`. `check` raises `problem`, the error of a wrong setting."""

    name = "ollama"

    def __init__(
        self, config: Config, transport: Transport, problem: ConfigError | None = None
    ) -> None:
        self._config = config
        self._transport = transport
        self._problem = problem
        self._catalog = ModelCatalog(config, transport)
        self._steps = Steps(config, transport, self._catalog)
        self.abilities = Abilities(
            options=(*OPTIONS, "max_tokens", "effort"),
            files=self.takes,
            drops=self._steps.drops,
            hosts=self,
            local=self._is_local,
        )

    def capabilities(self, model: str) -> Capabilities:
        """Returns what `models()` found; an unknown model is assumed to call tools."""
        return self._catalog.capabilities(model)

    async def takes(self, model: str) -> frozenset[str]:
        """See `Abilities.files`; a server too old to describe a model is given the try."""
        if self._catalog.find(model) is None:
            with suppress(ProviderError):
                await self._catalog.look()
        found = self._catalog.find(model)
        blind = found and found.capabilities is not None and "vision" not in found.capabilities
        return frozenset() if blind else IMAGES - {"image/gif"}

    def check(self, model: str) -> None:
        """Raises ConfigError for a wrong setting, or for a model that may not be used."""
        config = self._config
        if self._problem:
            raise self._problem
        if config.offline and not config.address.loopback:
            what = f"SEARCHLOOP_OFFLINE is on, and OLLAMA_HOST is {config.address.host}."
            remedy = "Point OLLAMA_HOST at this machine, or switch SEARCHLOOP_OFFLINE off."
            raise ConfigError("offline", what, remedy)
        remote = config.address.cloud or names_cloud(model) or self._catalog.is_remote(model)
        if config.local_only and remote:
            raise self._refused(model)
        if config.address.cloud and not config.headers:
            raise ConfigError(
                "missing_key",
                "ollama.com wants a key.",
                "Set OLLAMA_API_KEY and write the address with https, or use a local OLLAMA_HOST.",
            )

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        if self._config.local_only:
            return self._stream_local(request)
        return self._steps.stream(request)

    async def server(self) -> ModelServer:
        version = None
        catalog = self._catalog
        if self._problem is None:
            version, _ = await asyncio.gather(catalog.version(), catalog.look_cloud())
        cloud = False if self._config.local_only else catalog.cloud
        return ModelServer(self.name, "Ollama", self._config.address.base, version, cloud)

    async def unload(self, model: str) -> None:
        self.check(model)
        body = {"model": checked_name(model), "messages": [], "keep_alive": 0, "stream": False}
        await self._catalog.send("api/chat", bool, seconds=_SECONDS, method="POST", body=body)

    async def remove(self, model: str) -> None:
        self.check(model)
        body = {"model": checked_name(model)}
        await self._catalog.send("api/delete", bool, seconds=_SECONDS, method="DELETE", body=body)

    def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        self.check(model)
        if self._config.offline:
            what = "SEARCHLOOP_OFFLINE is on: no model can be got from the network."
            raise ConfigError("offline", what, "Switch SEARCHLOOP_OFFLINE off for a moment.")
        return pull(self._catalog.codec, self._transport, checked_name(model))

    async def models(self) -> list[ModelInfo]:
        """Lists the installed chat models, or one entry that names what is missing."""
        try:
            self.check("")
            found = [model for model in await self._catalog.look() if can_chat(model)]
        except AgentError as error:
            if error.code == "unreachable":
                error.message = f"Ollama is not running at {self._config.address.base}."
            return [self._absent(error.message, error.remedy)]
        remedy = "Get one, for example with `ollama pull qwen3:8b`."
        missing = self._absent("Ollama has no chat model yet.", remedy)
        return [self._info(model) for model in found] or [missing]

    async def own_models(self) -> list[ModelInfo]:
        """Leaves out those in the cloud, and windows in which no page would fit."""
        found = [m for m in await self.models() if m.available and not self._config.address.cloud]
        return [m for m in found if self._catalog.runs_here(m.id.partition(":")[2])]

    async def _stream_local(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Streams once the server has confirmed that the model runs on its machine."""
        await self._catalog.look()
        self.check(request.model)
        async with aclosing(self._steps.stream(request)) as events:
            async for event in events:
                yield event

    def _is_local(self, model: str) -> bool:
        remote = names_cloud(model) or self._catalog.is_remote(model)
        return self._config.address.loopback and not remote

    def _info(self, model: Installed) -> ModelInfo:
        remote = bool(model.remote_host) or names_cloud(model.name)
        able = self._catalog.capabilities(model.name)
        error: AgentError | None = None
        if remote and self._config.local_only:
            error = self._refused(model.name)
        elif remote and self._catalog.cloud is False:
            error = self._catalog.codec.refused({"message": "cloud is disabled"})
        return ModelInfo(
            id=f"{self.name}:{model.name}",
            title=f"{model.name} ({model.size})" if model.size else model.name,
            capabilities=able,
            available=error is None,
            local=self._is_local(model.name),
            missing=error.message if error else None,
            remedy=error.remedy if error else None,
            calls=self._steps.calls(model.name),
            disk=model.disk,
            loaded=self._catalog.loaded(model.name),
        )

    def _absent(self, missing: str, remedy: str) -> ModelInfo:
        return absent(self.name, "Ollama", self._config.address.loopback, missing, remedy)

    def _refused(self, model: str) -> ConfigError:
        setting = "SEARCHLOOP_OFFLINE" if self._config.offline else "OLLAMA_NO_CLOUD"
        what = f"{model or 'This server'} runs in Ollama's cloud, and {setting} is on."
        remedy = f"Pick a model that runs on this machine, or switch {setting} off."
        return ConfigError("cloud_refused", what, remedy)


def create(env: Mapping[str, str], transport: Transport) -> Ollama:
    """Makes the provider. A wrong setting is raised by `check`, so that other providers work."""
    try:
        return Ollama(read_config(env), transport)
    except ConfigError as error:
        return Ollama(Config(parse_address(""), {}), transport, error)
