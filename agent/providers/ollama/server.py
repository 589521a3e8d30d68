"""Pulls models onto an Ollama server.

A model's name may begin with a host, from which the server would then load it. The request may come
from a web page, so `checked_name` passes only the hosts that Ollama itself knows. A pull answers
with one JSON object a line until `success`; progress is the sum of the layers listed so far.

https://github.com/ollama/ollama/blob/main/docs/api.md#pull-a-model
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from searchloop.agent.errors import ConfigError, IncompleteError, ProviderError
from searchloop.agent.providers import PullProgress
from searchloop.agent.providers._wire import error_in, member, text_in
from searchloop.agent.providers.ollama.errors import NOT_OLLAMA
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.transport.exchange import NdjsonSplitter, document_of
from searchloop.agent.transport.transport import Transport

_PART = r"[A-Za-z0-9_][\w.-]{0,79}"
_NAME = re.compile(rf"(?:{_PART}/)?(?:{_PART}/)?{_PART}(?::{_PART})?", re.ASCII)
_LIBRARIES = frozenset({"registry.ollama.ai", "ollama.com", "hf.co", "huggingface.co"})


def checked_name(model: str) -> str:
    """Returns a valid name. Raises ConfigError for any other text, and for a foreign host."""
    host, slash, rest = model.partition("/")
    foreign = "/" in rest and host.lower() not in _LIBRARIES
    if not _NAME.fullmatch(model) or foreign or (slash and (":" in host or host == "localhost")):
        what = f"{model[:100]!r} is not the name of a model in Ollama's library."
        remedy = (
            "Write a name like qwen3:8b; from a registry of your own, get it with `ollama pull`."
        )
        raise ConfigError("bad_model_name", what, remedy)
    return model


async def pull(
    codec: OllamaCodec, transport: Transport, model: str
) -> AsyncGenerator[PullProgress, None]:
    """Downloads the model and yields progress. Raises ProviderError."""
    body = json.dumps({"model": model, "stream": True}).encode()
    url, lines = codec.endpoint.address("api/pull"), NdjsonSplitter()
    layers: dict[str, tuple[int, int]] = {}
    succeeded = False
    try:
        async with transport.post(url, codec.headers(), body) as response:
            if response.status >= 400:
                said = error_in(document_of(await response.read()), failed=True)
                raise refusal(codec, model, said or {}, response.status)
            data: bytes | None = b""
            while data is not None:
                data = await anext(response, None)
                for line in lines.close() if data is None else lines.feed(data):
                    row = document_of(line)
                    if row is None:
                        what = "The answer is not what Ollama sends."
                        raise ProviderError("bad_response", what, NOT_OLLAMA)
                    if error := error_in(row):
                        raise refusal(codec, model, error)
                    progress = _progress(row, layers)
                    succeeded = succeeded or progress.status == "success"
                    yield progress
        if not succeeded:
            what = f"{model} was not got completely."
            remedy = "Run the same command again: what was loaded is kept."
            raise IncompleteError("incomplete", what, remedy)
    except ProviderError as error:
        raise codec.explain(error) from error


def _progress(row: Any, layers: dict[str, tuple[int, int]]) -> PullProgress:
    """Adds a line to the layers, each as (done, size)."""
    layer, size, done = (member(row, name) for name in ("digest", "total", "completed"))
    if isinstance(layer, str) and isinstance(size, int):
        before = layers.get(layer, (0, 0))[0]
        layers[layer] = (done if isinstance(done, int) else before, size)
    return PullProgress(text_in(row, "status"), *map(sum, zip(*layers.values(), strict=True)))


def refusal(
    codec: OllamaCodec, model: str, details: Mapping[str, Any], status: int | None = None
) -> ProviderError:
    """Makes the error of a pull that the server refuses."""
    said = str(details.get("message") or "")
    if "file does not exist" in said or "not found" in said.lower():
        what = f"Ollama's library has no model {model!r}."
        remedy = "See https://ollama.com/library for the names, for example qwen3:8b."
        return ProviderError("unknown_model", what, remedy, status=status)
    return codec.refused(details, status)
