"""Getting a model: `POST /api/pull`, one JSON object a line until `success`.

The server tells the layers one by one; what is shown is the sum of those it has told of.

https://github.com/ollama/ollama/blob/main/docs/api.md#pull-a-model
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from agent.errors import IncompleteError, ProviderError
from agent.framing import NdjsonSplitter
from agent.hosting import Progress
from agent.providers.ollama.config import Config
from agent.providers.ollama.errors import explain, provider_error, read_fault
from agent.transport import Transport


class Layers:
    """Lines in, progress out."""

    def __init__(self, config: Config, model: str) -> None:
        self._config = config
        self._model = model
        self._lines = NdjsonSplitter()
        self._done: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self.succeeded = False

    def feed(self, data: bytes) -> list[Progress]:
        """What these bytes tell. Raises ProviderError for an error line."""
        return [self._read(line) for line in self._lines.feed(data)]

    def close(self) -> list[Progress]:
        """What a last line without its end tells. Raises IncompleteError without a success."""
        out = [self._read(line) for line in self._lines.close()]
        if not self.succeeded:
            raise IncompleteError(
                "incomplete",
                f"{self._model} was not got completely.",
                "Run the same command again: what was loaded is kept.",
            )
        return out

    def _read(self, line: bytes) -> Progress:
        try:
            told: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ProviderError(
                "bad_response",
                "The answer is not what Ollama sends.",
                "Check OLLAMA_HOST and what stands before that server.",
            ) from error
        told = told if isinstance(told, dict) else {}
        if told.get("error"):
            raise refusal(self._model, read_fault(told).text, self._config)
        status = str(told.get("status") or "")
        self.succeeded = self.succeeded or status == "success"
        layer, size = told.get("digest"), told.get("total")
        if isinstance(layer, str) and isinstance(size, int):
            done = told.get("completed")
            self._sizes[layer] = size
            self._done[layer] = done if isinstance(done, int) else self._done.get(layer, 0)
        return Progress(status, sum(self._done.values()), sum(self._sizes.values()))


async def pull(config: Config, transport: Transport, model: str) -> AsyncGenerator[Progress, None]:
    """Progress until the model is there. Raises ProviderError with what to do."""
    url, headers = f"{config.address.base}/api/pull", {**config.headers}
    headers["content-type"] = "application/json"
    body = json.dumps({"model": model, "stream": True}).encode()
    layers = Layers(config, model)
    try:
        async with transport.post(url, headers, body) as response:
            if response.status >= 400:
                fault = read_fault(await response.read(), response.status)
                raise refusal(model, fault.text, config, response.status)
            async for data in response.chunks():
                for progress in layers.feed(data):
                    yield progress
            for progress in layers.close():
                yield progress
    except ProviderError as error:
        raise explain(error, config) from error


def refusal(model: str, said: str, config: Config, status: int | None = None) -> ProviderError:
    """Why a model cannot be got."""
    if "file does not exist" in said or "not found" in said.lower():
        return ProviderError(
            "unknown_model",
            f"Ollama's library has no model {model!r}.",
            "See https://ollama.com/library for the names, for example qwen3:8b.",
            status=status,
        )
    error = provider_error(read_fault({"error": said}, status), config)
    if error.code in ("server_error", "bad_request"):
        error.message = f"Ollama could not get {model}: {said or 'no reason given'}"
        error.remedy = "Check the connection and the disk of that machine, then try again."
    return error
