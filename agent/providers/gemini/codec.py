"""Requests to generateContent: stateless, streamed, searched by the provider when asked.

System text and tools come first and the conversation after them, so that a request is a longer form
of the one before and implicit caching hits; what may differ from step to step is at the end.

Functions and the provider's own tools stand in one tool object. Together they need a flag that only
newer models know. The flag also goes with a history that holds the server's own calls.

Spec: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from agent.endpoint import Endpoint
from agent.errors import NativeSearchRejected, ProviderError
from agent.providers.gemini.catalog import model
from agent.providers.gemini.decoding import GeminiDecoder
from agent.providers.gemini.failures import from_answer
from agent.providers.gemini.history import Contents, encode_contents
from agent.types import Request, ToolSpec

DEFAULT_BASE = "https://generativelanguage.googleapis.com/v1beta"


class GeminiCodec:
    """See `agent.providers.Codec`. Without a key none is sent."""

    def __init__(self, key: str = "", base_url: str = DEFAULT_BASE) -> None:
        self.endpoint = Endpoint(
            base_url, key, vendor="Gemini", home=DEFAULT_BASE, setting="GEMINI_BASE_URL"
        )

    def __repr__(self) -> str:
        return f"GeminiCodec({self.endpoint.name})"

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        name = request.model if "/" in request.model else f"models/{request.model}"
        return self.endpoint.address(f"{quote(name)}:streamGenerateContent?alt=sse")

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        return {"x-goog-api-key": self.endpoint.key} if self.endpoint.key else {}

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises NativeSearchRejected before anything is sent."""
        known = model(request.model)
        searching = request.native_search is not None
        _check_search(request, both=known.can.tools_with_native_search)
        contents = encode_contents(
            request.messages, request.model, searching=searching, signs=known.signs
        )
        head = _dump(_head(request, reads=known.reads))[1:-1]
        tail = _dump(_tail(request, contents, thinking=known.can.thinking))[1:-1]
        conversation = b'"contents":[%s]' % contents.body
        return b"{%s}" % b",".join(filter(None, (head, conversation, tail)))

    def decoder(self, request: Request, content_type: str) -> GeminiDecoder:
        """See `Codec.decoder`."""
        return GeminiDecoder(request, self.endpoint.name, content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        return from_answer(status, headers, body, self.endpoint.name, self.endpoint.key)

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return self.endpoint.explain(error)


def _check_search(request: Request, *, both: bool) -> None:
    """What this search cannot do is said, so that our own can be taken instead."""
    search, why = request.native_search, ""
    if search is None:
        return
    if request.tools and not both:
        why = f"{request.model} cannot search by itself while it has other tools."
    elif search.allowed_domains or search.blocked_domains:
        why = "Gemini's own search cannot be limited to certain domains."
    if why:
        remedy = "Choose local search, or another model."
        raise NativeSearchRejected("native_search_rejected", why, remedy)


def _head(request: Request, *, reads: bool) -> dict[str, Any]:
    """All that stays the same while a conversation goes on."""
    head: dict[str, Any] = {}
    if request.system:
        head["systemInstruction"] = {"parts": [{"text": request.system}]}
    tools: dict[str, Any] = {}
    if request.native_search is not None:
        tools["googleSearch"] = {}
        if reads and request.native_search.external_access:
            tools["urlContext"] = {}
    if request.tools:
        tools["functionDeclarations"] = [_function(tool) for tool in request.tools]
    if tools:
        head["tools"] = [tools]
    return head


def _tail(request: Request, contents: Contents, *, thinking: bool) -> dict[str, Any]:
    """What may differ from step to step."""
    chosen: dict[str, Any] = {}
    if request.tools and request.answer_now:
        chosen["functionCallingConfig"] = {"mode": "NONE"}
    if request.native_search is not None and (request.tools or contents.server_side):
        chosen["includeServerSideToolInvocations"] = True
    generation: dict[str, Any] = {}
    if request.max_output_tokens is not None:
        generation["maxOutputTokens"] = request.max_output_tokens
    if thinking:
        generation["thinkingConfig"] = {"includeThoughts": True}
    tail = {
        "toolConfig": chosen,
        "generationConfig": generation,
        "continuationToken": contents.token,
    }
    return {name: value for name, value in tail.items() if value}


def _function(tool: ToolSpec) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties") or "$ref" in tool.parameters:
        declared["parametersJsonSchema"] = tool.parameters
    return declared


def _dump(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
