"""Ollama's chat API as a codec: no I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from agent.errors import ProviderError
from agent.providers.ollama.config import Config
from agent.providers.ollama.decoding import OllamaDecoder
from agent.providers.ollama.encoding import encode_request, encode_tools
from agent.providers.ollama.envelope import shape_of
from agent.providers.ollama.errors import explain, provider_error, read_fault
from agent.retry import parse_retry_after
from agent.types import Request, ToolSpec

Style = Literal["calls", "envelope", "words"]


class OllamaCodec:
    """See `Codec`. `installed` names the models that a wrong name could have meant.

    `style`: the server's tool calls; one JSON object that names a tool; or words alone. `think` is
    what to say of thinking to a model.
    """

    def __init__(
        self,
        config: Config,
        installed: Callable[[], Sequence[str]] = tuple,
        style: Style = "calls",
        think: Callable[[str], bool | str | None] = lambda model: None,
    ) -> None:
        self._config = config
        self._style = style
        self._think = think
        self._installed = installed
        self._url = f"{config.address.base}/api/chat"
        self._headers = {
            "content-type": "application/json",
            "accept": "application/x-ndjson",
            **config.headers,
        }
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        return self._url

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        return self._headers

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. There is no tool_choice: `answer_now` lists no tools at all."""
        think = self._think(request.model)
        if self._style != "calls":
            shape = shape_of(request.tools) if self._style == "envelope" else None
            return encode_request(request, self._config, b"", True, shape, think)
        tools, encoded = self._tools
        if tools is not request.tools:
            tools, encoded = self._tools = request.tools, encode_tools(request.tools)
        listed = b"" if request.answer_now else encoded
        return encode_request(request, self._config, listed, think=think)

    def decoder(self, request: Request, content_type: str) -> OllamaDecoder:
        """See `Codec.decoder`."""
        return OllamaDecoder(request, content_type, self._fault)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        fault = replace(
            read_fault(body, status), retry_after=parse_retry_after(headers, time.time())
        )
        return provider_error(fault, self._config, self._installed())

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return explain(error, self._config)

    def _fault(self, line: dict[str, Any]) -> ProviderError:
        return provider_error(read_fault(line), self._config, self._installed())
