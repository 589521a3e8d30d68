"""Lists the models of an Ollama server and what they can do.

The catalog remembers the list, because `capabilities` must not wait. A server from before May 2026
lists names alone: its models are given the try. The list names the window that a model was trained
for, not the one that this server gives it.

https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import fetched
from searchloop.agent.providers._wire import can_chat as answers_in_text
from searchloop.agent.providers._wire import count, member, number, text_in
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Loaded

T = TypeVar("T")
TIMEOUT_S = 8.0  # a machine at work on another answer is slow
_SMALL = 4096  # tokens: the window that the server gives by itself
_NEVER = 4e9  # the year 2096


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed model. `remote_host` is set when it runs in the cloud."""

    name: str
    size: str = ""
    remote_host: str = ""
    trained: int | None = None
    capabilities: frozenset[str] | None = None
    disk: int | None = None


class ModelCatalog:
    """The models of one server at the last look. `cloud`: it may use its cloud, None if unknown."""

    def __init__(self, config: Config, transport: Transport) -> None:
        self._config = config
        self._transport = transport
        self.codec = OllamaCodec(config, self.names)
        self._models: dict[str, Installed] = {}
        self._loaded: dict[str, Loaded] = {}
        self.cloud: bool | None = None

    def names(self) -> list[str]:
        """Lists the names of the chat models."""
        return [m.name for m in self._models.values() if can_chat(m)]

    def find(self, model: str) -> Installed | None:
        """Returns the model by any of its names, None for an unknown one."""
        return self._models.get(full_name(model))

    def capabilities(self, model: str) -> Capabilities:
        """Returns what `model` can do; an unknown model is assumed to call tools."""
        found = self.find(model)
        context = self._window(found, model)
        if found is None or found.capabilities is None:
            return Capabilities(context=context)
        able = {name: name in found.capabilities for name in ("tools", "thinking", "vision")}
        words = ("low", "medium", "high") if "gpt-oss" in model else ("off", "on")
        return Capabilities(**able, context=context, efforts=words if able["thinking"] else ())

    async def look(self) -> list[Installed]:
        """Lists the installed models. Raises ProviderError without an answer in time."""
        found, _ = await asyncio.gather(
            self.send("api/tags", lambda body: [*read_tags(body)], seconds=TIMEOUT_S),
            self.look_loaded(),
        )
        if any(m.remote_host for m in found):
            await self.look_cloud()
        self._models = {full_name(m.name): m for m in found}
        return list(self._models.values())

    async def look_cloud(self) -> None:
        """Asks whether the server may use its cloud; older servers do not say."""
        answer = await self._ask("api/status", lambda body: (read_cloud(body),))
        self.cloud = answer[0] if answer else self.cloud

    async def version(self) -> str | None:
        """Returns the server's version, None without an answer."""
        return await self._ask("api/version", lambda body: text_in(body, "version")) or None

    def loaded(self, model: str) -> Loaded | None:
        """Returns its size and window in memory at the last look, None if it was not loaded."""
        return self._loaded.get(full_name(model))

    async def look_loaded(self) -> None:
        """Asks which models are loaded now, and with which windows."""
        self._loaded = await self._ask("api/ps", read_loaded) or {}

    def is_remote(self, model: str) -> bool:
        """Returns True for a model in the cloud, which gives each model its full window."""
        return bool((found := self.find(model)) and found.remote_host)

    def runs_here(self, model: str) -> bool:
        """Returns True for a model on the server itself with a window for more than a question."""
        found = self.find(model)
        if found is None or found.remote_host or names_cloud(model):
            return False
        return (found.trained or _SMALL) >= _SMALL

    async def send(self, path: str, read: Callable[[Any], T], **more: Any) -> T:
        """See `fetched`."""
        return await fetched(self.codec, self._transport, path, read, **more)

    async def _ask(self, path: str, read: Callable[[Any], T]) -> T | None:
        with suppress(ProviderError):
            return await self.send(path, read, seconds=TIMEOUT_S)
        return None

    def _window(self, found: Installed | None, model: str) -> int | None:
        trained = found.trained if found else None
        if found and found.remote_host:
            return trained
        if self._config.num_ctx:
            return min(self._config.num_ctx, trained or self._config.num_ctx)
        loaded = self.loaded(model)
        return loaded.window if loaded else None


def read_tags(body: Any) -> Iterable[Installed]:
    """Yields the models in the answer of `/api/tags`. Raises ProviderError for any other answer."""
    listed = body.get("models", ...) if isinstance(body, dict) else ...
    if not isinstance(listed, list | None):
        remedy = "Set OLLAMA_HOST to the server itself, without /v1 or /api at the end."
        raise ProviderError("not_ollama", "What answers there is not Ollama.", remedy)
    for entry in listed or ():
        name, details = member(entry, "model") or member(entry, "name"), member(entry, "details")
        if isinstance(name, str):
            yield Installed(
                name=name,
                size=str(member(details, "parameter_size") or ""),
                remote_host=str(member(entry, "remote_host") or ""),
                trained=count(details, "context_length") or None,
                capabilities=read_capabilities(entry),
                disk=count(entry, "size") or None,
            )


def read_capabilities(body: Any) -> frozenset[str] | None:
    """Reads the list under `capabilities`, None on servers that do not say."""
    named = member(body, "capabilities")
    if not isinstance(named, list) or not named:
        return None
    return frozenset(item for item in named if isinstance(item, str))


def read_loaded(body: Any) -> dict[str, Loaded]:
    """Reads the loaded models in the answer of `/api/ps`, by full name. A size may be 0."""
    listed = member(body, "models")
    return {
        full_name(text_in(entry, "model") or text_in(entry, "name")): Loaded(
            size=number(entry, "size"),
            gpu=number(entry, "size_vram"),
            window=count(entry, "context_length") or None,
            until=_epoch(member(entry, "expires_at")),
        )
        for entry in (listed if isinstance(listed, list) else [])
    }


def read_cloud(body: Any) -> bool | None:
    """Returns True if the server may use its cloud, None if it does not say."""
    disabled = member(member(body, "cloud"), "disabled")
    return not disabled if isinstance(disabled, bool) else None


def _epoch(value: Any) -> float | None:
    """Reads a time as seconds since 1970, None for one a lifetime away."""
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return at if 0 < at < _NEVER else None


def can_chat(model: Installed) -> bool:
    """Returns True for a chat model, False for one that only makes embeddings or images."""
    if model.capabilities is None:
        return answers_in_text({"id": model.name})
    return "completion" in model.capabilities


def full_name(model: str) -> str:
    """Returns the name with its tag: `llama3.2` is `llama3.2:latest`."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def names_cloud(model: str) -> bool:
    """Returns True for a name in Ollama's cloud (`name:cloud`, `name:120b-cloud`)."""
    tag = full_name(model).rpartition(":")[2]
    return tag == "cloud" or tag.endswith("-cloud")
