"""Which models a server has and what they can do.

Newer servers say it all in `/api/tags`; for older ones `/api/show` is asked, a few at a time and
once per version of a model. What was learnt stays here, because capabilities are asked for without
waiting. The window is stated only where it is known: `/api/show` tells what a model was trained
for, not what this server gives it.

https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent.errors import ProviderError
from agent.models import Capabilities, Loaded
from agent.providers.ollama.config import Config
from agent.transport import Transport

TIMEOUT_S = 4.0  # for a list that a user waits for
PATIENT_S = 15.0  # where an answer depends on it: a machine at work on another answer is slow
SHOW_TOTAL_S = 6.0
SHOW_AT_ONCE = 4
_NEVER = 4e9  # the year 2096


@dataclass(frozen=True, slots=True)
class Installed:
    """One model of the server. `remote_host` is set when it runs in the cloud."""

    name: str
    digest: str = ""
    size: str = ""
    remote_host: str = ""
    trained: int | None = None
    capabilities: frozenset[str] | None = None
    family: str = ""
    disk: int | None = None


Shown = tuple[frozenset[str] | None, int | None]
"""Capabilities (None on servers too old to say) and the window a model was trained for."""


class Catalog:
    """What one server was found to have."""

    def __init__(self, config: Config, transport: Transport) -> None:
        self._config = config
        self._transport = transport
        self._models: dict[str, Installed] = {}
        self._shown: dict[str, Shown] = {}
        self._loaded: dict[str, Loaded] = {}
        self.cloud: bool | None = None
        """Whether the server may use its cloud; None while it did not say."""

    def names(self) -> list[str]:
        """Chat models seen at the last look, as users write them."""
        return [m.name for m in self._models.values() if can_chat(m)]

    def find(self, model: str) -> Installed | None:
        """The model by any of its names, if it was seen."""
        return self._models.get(full_name(model))

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model`; one nobody has seen is taken to call tools."""
        found = self.find(model)
        if found is None or found.capabilities is None:
            return Capabilities(context=self._window(found, model))
        return Capabilities(
            tools="tools" in found.capabilities,
            thinking="thinking" in found.capabilities,
            vision="vision" in found.capabilities,
            context=self._window(found, model),
        )

    async def look(self, seconds: float = TIMEOUT_S) -> list[Installed]:
        """The installed models. Raises ProviderError when the server does not tell in time."""
        tags, loaded = await asyncio.gather(self._get("/api/tags", seconds), self._running())
        found = list(read_tags(tags))
        self._loaded = loaded
        unknown = [m for m in found if m.capabilities is None and self._key(m) not in self._shown]
        await self._show_all(unknown)
        if any(m.remote_host for m in found):
            await self.look_cloud()
        self._models = {full_name(m.name): self._with_shown(m) for m in found}
        return list(self._models.values())

    async def look_cloud(self) -> None:
        """Whether the server may use its cloud; older ones do not say."""
        with suppress(ProviderError):
            self.cloud = read_cloud(await self._get("/api/status"))

    async def version(self) -> str | None:
        """What the server calls its version, None when it does not answer."""
        try:
            told = await self._get("/api/version")
        except ProviderError:
            return None
        version = told.get("version") if isinstance(told, dict) else None
        return version if isinstance(version, str) else None

    def loaded(self, model: str) -> Loaded | None:
        """How it stood in memory at the last look."""
        return self._loaded.get(full_name(model))

    async def look_loaded(self) -> None:
        """Which models are loaded now, and with which windows."""
        self._loaded = await self._running()

    def is_remote(self, model: str) -> bool:
        """Whether it runs in the cloud, which gives each model its full window."""
        found = self.find(model)
        return bool(found and found.remote_host)

    def digest(self, model: str) -> str:
        """Which version is installed; empty when it was not seen."""
        found = self.find(model)
        return found.digest if found else ""

    async def _get(self, path: str, seconds: float = TIMEOUT_S) -> Any:
        config = self._config
        return await self._transport.get_json(
            config.address.base + path, config.headers, timeout=seconds
        )

    async def _running(self) -> dict[str, Loaded]:
        try:
            return read_loaded(await self._get("/api/ps"))
        except ProviderError:
            return {}

    async def _show_all(self, models: list[Installed]) -> None:
        gate = asyncio.Semaphore(SHOW_AT_ONCE)

        async def show(model: Installed) -> None:
            async with gate:
                told = await self._show(model.name)
            if told is not None:
                self._shown[self._key(model)] = told

        if models:
            with suppress(TimeoutError):
                async with asyncio.timeout(SHOW_TOTAL_S):
                    await asyncio.gather(*map(show, models))

    async def _show(self, name: str) -> Shown | None:
        """What the server tells of one model, None without an answer."""
        base, headers = self._config.address.base, self._config.headers
        try:
            status, body = await self._transport.post_json(
                f"{base}/api/show", {"model": name}, headers, timeout=TIMEOUT_S
            )
        except ProviderError:
            return None
        return (read_capabilities(body), read_trained(body)) if status == 200 else None

    def _with_shown(self, model: Installed) -> Installed:
        capabilities, trained = self._shown.get(self._key(model), (None, None))
        return replace(
            model,
            capabilities=model.capabilities or capabilities,
            trained=model.trained or trained,
        )

    def _key(self, model: Installed) -> str:
        return f"{model.name}@{model.digest}"

    def _window(self, found: Installed | None, model: str) -> int | None:
        trained = found.trained if found else None
        if found and found.remote_host:
            return trained
        if self._config.num_ctx:
            return min(self._config.num_ctx, trained or self._config.num_ctx)
        loaded = self.loaded(model)
        return loaded.window if loaded else None


def read_tags(body: Any) -> Iterable[Installed]:
    """`/api/tags` as models. Raises ProviderError when it is something else."""
    listed = body.get("models") if isinstance(body, dict) else None
    if listed is None and isinstance(body, dict) and "models" in body:
        listed = []
    if not isinstance(listed, list):
        raise ProviderError(
            "not_ollama",
            "What answers there is not Ollama.",
            "Set OLLAMA_HOST to the server itself, without /v1 or /api at the end.",
        )
    for item in listed:
        entry = item if isinstance(item, Mapping) else {}
        name = entry.get("model") or entry.get("name")
        if not isinstance(name, str):
            continue
        details = entry.get("details")
        details = details if isinstance(details, Mapping) else {}
        trained = details.get("context_length")
        yield Installed(
            name=name,
            digest=str(entry.get("digest") or ""),
            size=str(details.get("parameter_size") or ""),
            remote_host=str(entry.get("remote_host") or ""),
            trained=trained if isinstance(trained, int) and trained > 0 else None,
            capabilities=read_capabilities(entry),
            family=str(details.get("family") or ""),
            disk=_count(entry.get("size")),
        )


def read_capabilities(body: Any) -> frozenset[str] | None:
    """The list under `capabilities`, None on servers that do not say."""
    named = body.get("capabilities") if isinstance(body, Mapping) else None
    if not isinstance(named, list) or not named:
        return None
    return frozenset(item for item in named if isinstance(item, str))


def read_trained(body: Any) -> int | None:
    """`/api/show`: the window a model was trained for, under the name of its architecture."""
    info = body.get("model_info") if isinstance(body, Mapping) else None
    info = info if isinstance(info, Mapping) else {}
    return _count(info.get(f"{info.get('general.architecture')}.context_length"))


def read_loaded(body: Any) -> dict[str, Loaded]:
    """`/api/ps` by full model name; only loaded models are in it."""
    listed = body.get("models") if isinstance(body, Mapping) else None
    return {
        full_name(str(entry.get("model") or entry.get("name"))): Loaded(
            size=_count(entry.get("size")) or 0,
            gpu=_count(entry.get("size_vram")) or 0,
            window=_count(entry.get("context_length")),
            until=_epoch(entry.get("expires_at")),
        )
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, Mapping)
    }


def read_cloud(body: Any) -> bool | None:
    """`/api/status`: whether the cloud may be used."""
    cloud = body.get("cloud") if isinstance(body, Mapping) else None
    disabled = cloud.get("disabled") if isinstance(cloud, Mapping) else None
    return not disabled if isinstance(disabled, bool) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _epoch(value: Any) -> float | None:
    """A time in seconds since 1970; one a lifetime away means never."""
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return at if 0 < at < _NEVER else None


def can_chat(model: Installed) -> bool:
    """Whether it is a chat model: not one that only makes embeddings or images."""
    return model.capabilities is None or "completion" in model.capabilities


def full_name(model: str) -> str:
    """The name with its tag: `llama3.2` is `llama3.2:latest`."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def names_cloud(model: str) -> bool:
    """Whether the name itself asks for Ollama's cloud (`name:cloud`, `name:120b-cloud`)."""
    tag = full_name(model).rpartition(":")[2]
    return tag == "cloud" or tag.endswith("-cloud")
