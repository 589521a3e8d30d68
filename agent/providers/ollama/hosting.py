"""Models of one server at the user's wish: which may be got, unloading, deleting.

A model's name may begin with a host, from which the server would then load it. What asks here may
be a page, so only hosts that Ollama itself knows are passed on.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from agent.errors import ConfigError, ProviderError
from agent.providers.ollama.config import Config
from agent.providers.ollama.errors import explain, provider_error, read_fault
from agent.transport import Transport

_SECONDS = 10.0
_PART = r"[A-Za-z0-9_][\w.-]{0,79}"
_NAME = re.compile(rf"(?:{_PART}/)?(?:{_PART}/)?{_PART}(?::{_PART})?", re.ASCII)
_LIBRARIES = frozenset({"registry.ollama.ai", "ollama.com", "hf.co", "huggingface.co"})


def checked_name(model: str) -> str:
    """The name of a model. Raises ConfigError for what is none, or names a foreign host."""
    host, slash, rest = model.partition("/")
    foreign = "/" in rest and host.lower() not in _LIBRARIES
    if not _NAME.fullmatch(model) or foreign or (slash and (":" in host or host == "localhost")):
        raise ConfigError(
            "bad_model_name",
            f"{model[:100]!r} is not the name of a model in Ollama's library.",
            "Write a name like qwen3:8b; from a registry of your own, get it with `ollama pull`.",
        )
    return model


async def unload(config: Config, transport: Transport, model: str) -> None:
    """Takes the model out of memory now."""
    body = {"model": model, "messages": [], "keep_alive": 0, "stream": False}
    await _do(config, transport, "POST", "/api/chat", body)


async def remove(config: Config, transport: Transport, model: str) -> None:
    """Deletes the model from that machine's disk."""
    await _do(config, transport, "DELETE", "/api/delete", {"model": model})


async def _do(
    config: Config, transport: Transport, method: str, path: str, body: dict[str, Any]
) -> None:
    url, headers = config.address.base + path, {**config.headers}
    headers["content-type"] = "application/json"
    try:
        async with (
            asyncio.timeout(_SECONDS),
            transport.post(url, headers, json.dumps(body).encode(), method) as response,
        ):
            status, answer = response.status, await response.read()
    except TimeoutError as error:
        late = ProviderError("timeout", "", "")
        raise explain(late, config) from error
    except ProviderError as error:
        raise explain(error, config) from error
    if status >= 400:
        raise provider_error(read_fault(answer, status), config)
