"""Requests to a Chat Completions server: streamed, with usage, without sampling settings.

The body is head, messages, tail. The head stays the same while a conversation goes on and messages
are only appended, so that every server's prompt cache is hit. No `temperature` is sent: reasoning
and search models refuse it, and every server has its own good default.

Spec: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.errors import ConfigError, ProviderError
from agent.providers.openai_chat.address import ChatServer
from agent.providers.openai_chat.catalog import searcher
from agent.providers.openai_chat.decoding import ChatDecoder
from agent.providers.openai_chat.failures import from_answer
from agent.providers.openai_chat.history import encode_messages, tool_name
from agent.types import NativeSearch, Request, ToolSpec


class ChatCodec:
    """See `agent.providers.Codec`. `counting`: whether the server is asked to count tokens."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")
        self.counting = True

    def __repr__(self) -> str:
        return f"ChatCodec({self._server.name})"

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        return self._server.address("chat/completions")

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        return {"authorization": f"Bearer {self._server.key}"} if self._server.key else {}

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises ConfigError where the switch could not be kept."""
        _check_switch(request)
        head: dict[str, Any] = {"model": request.model, "stream": True}
        if self.counting:
            head["stream_options"] = {"include_usage": True}
        if request.native_search is not None and _takes_options(request.model):
            head["web_search_options"] = _search_options(request.native_search)
        tools = self._encoded_tools(request.tools)
        parts = [_dump(head)[:-1], b',"tools":' + tools if tools else b"", b',"messages":[']
        parts += [encode_messages(request, self._server.host), b"]"]
        tail = _dump(self._tail(request))[1:]
        return b"".join((*parts, b"," if len(tail) > 1 else b"", tail))

    def decoder(self, request: Request, content_type: str) -> ChatDecoder:
        """See `Codec.decoder`."""
        return ChatDecoder(request, self._server, content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        return from_answer(status, headers, body, self._server)

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return self._server.explain(error)

    def _encoded_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        known, encoded = self._tools
        if known is not tools:
            encoded = _dump([_function(tool) for tool in tools]) if tools else b""
            self._tools = tools, encoded
        return encoded

    def _tail(self, request: Request) -> dict[str, Any]:
        """What may differ from step to step."""
        tail: dict[str, Any] = {}
        if request.answer_now and request.tools:
            tail["tool_choice"] = "none"
        if request.max_output_tokens is not None:
            # Reasoning models of the official server refuse the old name, others know only it.
            name = "max_completion_tokens" if self._server.official else "max_tokens"
            tail[name] = request.max_output_tokens
        return tail


def _check_switch(request: Request) -> None:
    always = searcher(request.model)
    if request.native_search is None:
        if always:
            raise ConfigError(
                "always_searches",
                f"{request.model} searches the web with every answer and cannot be told not to.",
                "Turn its own search on (--search native), or choose another model.",
            )
        return
    if always is None:
        raise ConfigError(
            "no_native_search",
            f"{request.model} is not known to search the web by itself.",
            "Choose local search, which is our own.",
        )
    if request.native_search.allowed_domains or request.native_search.blocked_domains:
        raise ConfigError(
            "no_domain_filter",
            f"{request.model} cannot restrict its search to domains.",
            "Leave the domains out, or choose local search.",
        )


def _takes_options(model: str) -> bool:
    known = searcher(model)
    return known is not None and known.options


def _search_options(search: NativeSearch) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if search.context_size:
        options["search_context_size"] = search.context_size
    if search.country:
        place = {"country": search.country}
        options["user_location"] = {"type": "approximate", "approximate": place}
    return options


def _function(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool_name(tool.name),
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _dump(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-8", "replace")
