"""Requests to the Responses API: stateless, streamed, searched by the provider when asked.

The body ends with the conversation, and everything before it stays the same from step to step, so
that a request is a longer form of the one before and the provider's prompt cache is hit. No
`reasoning` setting is sent: which values a model takes differs from model to model, and summaries
are refused to accounts that are not verified.

Spec: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agent.endpoint import Endpoint
from agent.errors import ProviderError
from agent.providers.openai.catalog import capabilities
from agent.providers.openai.decoding import ResponsesDecoder
from agent.providers.openai.failures import from_answer
from agent.providers.openai.history import encode_items
from agent.providers.openai.strict import is_strict
from agent.types import NativeSearch, Request, ToolSpec

DEFAULT_BASE = "https://api.openai.com/v1"


class ResponsesCodec:
    """See `agent.providers.Codec`. Without a key no authorization is sent."""

    def __init__(self, key: str = "", base_url: str = DEFAULT_BASE) -> None:
        self.endpoint = Endpoint(
            base_url, key, vendor="OpenAI", home=DEFAULT_BASE, setting="OPENAI_BASE_URL"
        )

    def __repr__(self) -> str:
        return f"ResponsesCodec({self.endpoint.name})"

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        return self.endpoint.address("responses")

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`."""
        items = encode_items(
            request.messages, request.model, searching=request.native_search is not None
        )
        head = _dump(_head(request))[:-1]
        tail = _dump(_tail(request))[1:]
        return b"".join((head, b',"input":[', items, b"]", b"," if len(tail) > 1 else b"", tail))

    def decoder(self, request: Request, content_type: str) -> ResponsesDecoder:
        """See `Codec.decoder`."""
        return ResponsesDecoder(request.model, self.endpoint.name, content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        return from_answer(status, headers, body, self.endpoint.name, self.endpoint.key)

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return self.endpoint.explain(error)


def _head(request: Request) -> dict[str, Any]:
    """All that stays the same while a conversation goes on."""
    include = []
    if request.native_search is not None:
        include.append("web_search_call.action.sources")
    if capabilities(request.model).thinking:
        # Other models refuse the whole request when it is asked for.
        include.append("reasoning.encrypted_content")
    tools = [_search_tool(request.native_search)] if request.native_search is not None else []
    tools += [_function(tool) for tool in request.tools]
    head = {
        "model": request.model,
        "store": False,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "include": include,
        "prompt_cache_key": _short(request.session_id),
        "instructions": request.system,
        "tools": tools,
    }
    return {key: value for key, value in head.items() if value not in ([], "", None)}


def _tail(request: Request) -> dict[str, Any]:
    """What may differ from step to step."""
    tail: dict[str, Any] = {}
    if request.answer_now and (request.tools or request.native_search is not None):
        tail["tool_choice"] = "none"
    if request.max_output_tokens is not None:
        tail["max_output_tokens"] = request.max_output_tokens
    if request.native_search is not None and request.native_search.max_searches is not None:
        tail["max_tool_calls"] = request.native_search.max_searches
    return tail


def _search_tool(search: NativeSearch) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "web_search"}
    filters = {
        "allowed_domains": [_domain(d) for d in search.allowed_domains],
        "blocked_domains": [_domain(d) for d in search.blocked_domains],
    }
    if any(filters.values()):
        tool["filters"] = {name: domains for name, domains in filters.items() if domains}
    if search.context_size:
        tool["search_context_size"] = search.context_size
    # Left out, it would mean a user in the United States.
    tool["user_location"] = {"type": "approximate"}
    if search.country:
        tool["user_location"]["country"] = search.country
    if not search.external_access:
        tool["external_web_access"] = False
    return tool


def _domain(text: str) -> str:
    """A domain as the filters want it: no scheme, no path."""
    return text.strip().partition("://")[2].partition("/")[0] or text.strip().partition("/")[0]


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": is_strict(tool.parameters),
    }


def _short(session_id: str | None) -> str | None:
    if session_id is None or len(session_id) <= 64:
        return session_id
    return blake2b(session_id.encode(), digest_size=16).hexdigest()


def _dump(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
