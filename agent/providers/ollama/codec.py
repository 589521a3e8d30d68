"""The codec of Ollama's chat API, and the value of `think` for each model.

A request says nothing of thinking: the server's default decides. https://docs.ollama.com/api/chat
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.errors import explain, provider_error, read_fault
from searchloop.agent.providers.ollama.request import encode_request, encode_tools, shape_of
from searchloop.agent.providers.ollama.response import OllamaDecoder
from searchloop.agent.transport.refusals import with_wishes
from searchloop.agent.types import Request, ToolSpec

Style = Literal["calls", "envelope", "words"]


class OllamaCodec:
    """See `Codec`. `installed` lists the models, for the error of an unknown one.

    `style`: calls of the server, an envelope (a JSON object that names a tool), or words alone.
    """

    def __init__(
        self, config: Config, installed: Callable[[], Sequence[str]] = tuple, style: Style = "calls"
    ) -> None:
        self._config = config
        self._style = style
        self._installed = installed
        self._headers = {"accept": "application/x-ndjson", **config.headers}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def url(self, request: Request) -> str:
        return f"{self._config.address.base}/api/chat"

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def encode(self, request: Request) -> bytes:
        # There is no tool_choice: `answer_now` lists no tools at all.
        if self._style != "calls":
            shape = shape_of(request.tools) if self._style == "envelope" else None
            return encode_request(request, self._config, b"", True, shape)
        if self._tools[0] is not request.tools:
            self._tools = request.tools, encode_tools(request.tools)
        listed = b"" if request.answer_now else self._tools[1]
        return encode_request(request, self._config, listed)

    def decoder(self, request: Request, content_type: str) -> OllamaDecoder:
        return OllamaDecoder(request, content_type, self._fault)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        fault = read_fault(body, status)
        return with_wishes(provider_error(fault, self._config, self._installed()), headers)

    def explain(self, error: ProviderError) -> ProviderError:
        return explain(error, self._config)

    def _fault(self, line: dict[str, Any]) -> ProviderError:
        return provider_error(read_fault(line), self._config, self._installed())
