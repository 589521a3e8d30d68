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
from searchloop.agent.providers._wire import error_in
from searchloop.agent.providers.ollama.errors import NOT_OLLAMA
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.transport.exchange import NdjsonSplitter, document_of
from searchloop.agent.transport.refusals import sentence
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


class Layers:
    """Turns the lines of a pull into progress."""

    def __init__(self, codec: OllamaCodec, model: str) -> None:
        self._codec = codec
        self._model = model
        self._lines = NdjsonSplitter()
        self._done: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self.succeeded = False

    def feed(self, data: bytes) -> list[PullProgress]:
        """Returns the progress in these bytes. Raises ProviderError for an error line."""
        return [self._read(line) for line in self._lines.feed(data)]

    def close(self) -> list[PullProgress]:
        """Reads a last line without its end. Raises IncompleteError without a success."""
        out = [self._read(line) for line in self._lines.close()]
        if not self.succeeded:
            what = f"{self._model} was not got completely."
            remedy = "Run the same command again: what was loaded is kept."
            raise IncompleteError("incomplete", what, remedy)
        return out

    def _read(self, line: bytes) -> PullProgress:
        row = document_of(line)
        if row is None:
            what, remedy = "The answer is not what Ollama sends.", NOT_OLLAMA
            raise ProviderError("bad_response", what, remedy)
        row = row if isinstance(row, dict) else {}
        if row.get("error"):
            raise refusal(self._codec, self._model, error_in(row) or {})
        status = str(row.get("status") or "")
        self.succeeded = self.succeeded or status == "success"
        layer, size = row.get("digest"), row.get("total")
        if isinstance(layer, str) and isinstance(size, int):
            done = row.get("completed")
            self._sizes[layer] = size
            self._done[layer] = done if isinstance(done, int) else self._done.get(layer, 0)
        return PullProgress(status, sum(self._done.values()), sum(self._sizes.values()))


async def pull(
    codec: OllamaCodec, transport: Transport, model: str
) -> AsyncGenerator[PullProgress, None]:
    """Downloads the model and yields progress. Raises ProviderError."""
    body = json.dumps({"model": model, "stream": True}).encode()
    layers, url = Layers(codec, model), codec.endpoint.address("api/pull")
    try:
        async with transport.post(url, codec.headers(), body) as response:
            if response.status >= 400:
                said = error_in(document_of(await response.read()), failed=True)
                raise refusal(codec, model, said or {}, response.status)
            async for data in response.chunks():
                for progress in layers.feed(data):
                    yield progress
            for progress in layers.close():
                yield progress
    except ProviderError as error:
        raise codec.explain(error) from error


def refusal(
    codec: OllamaCodec, model: str, details: Mapping[str, Any], status: int | None = None
) -> ProviderError:
    """Makes the error of a pull that the server refuses."""
    said = str(details.get("message") or "")
    if "file does not exist" in said or "not found" in said.lower():
        what = f"Ollama's library has no model {model!r}."
        remedy = "See https://ollama.com/library for the names, for example qwen3:8b."
        return ProviderError("unknown_model", what, remedy, status=status)
    error = codec.refused(details, status)
    if error.code in ("server_error", "bad_request"):
        error.message = f"Ollama could not get {model}: {sentence(said) or 'no reason given.'}"
        error.remedy = "Check the connection and the disk of that machine, then try again."
    return error
