"""Requests to the Messages API: stateless, streamed, searched by the provider when asked.

The body ends with the conversation, and everything before it stays the same from step to step, so
that a request is a longer form of the one before. Prompt caching: a mark on the last tool and one
on the system text, which never move, and the automatic mark of the request itself, which moves
without changing a message. A step longer than the cache looks back gets one mark more; see
`history.assemble`.

Version 2023-06-01 of the API: still served, and all that we rely on is written down and recorded
for it. What the later version forbids (sampling settings, cited text in user messages) is never
sent either. No `thinking` setting is sent: which values a model takes differs from model to model.

Spec: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from operator import is_
from typing import Any

from agent.endpoint import Endpoint
from agent.errors import ProviderError
from agent.providers.anthropic.catalog import known
from agent.providers.anthropic.decoding import MessagesDecoder
from agent.providers.anthropic.failures import from_answer
from agent.providers.anthropic.history import Replay, View, assemble, container
from agent.providers.anthropic.offers import CACHED, function_tool, server_tools
from agent.types import Request

DEFAULT_BASE = "https://api.anthropic.com"
_VERSION = "2023-06-01"


class MessagesCodec:
    """See `agent.providers.Codec`. Without a key no authorization is sent.

    `replay` says how much of earlier raw answers is sent back: `whole`, `unsigned` (no thinking)
    or `neutral` (text and calls only).
    """

    def __init__(
        self, key: str = "", base_url: str = DEFAULT_BASE, replay: Replay = "whole"
    ) -> None:
        self._replay = replay
        base = base_url.rstrip("/")
        # Both forms are in use: the vendor's own without the version, proxies' with it.
        base = base if base.endswith("/v1") else f"{base}/v1"
        self.endpoint = Endpoint(
            base, key, vendor="Anthropic", home=DEFAULT_BASE, setting="ANTHROPIC_BASE_URL"
        )
        self._last: tuple[tuple[Any, ...], bytes, str] | None = None

    def __repr__(self) -> str:
        return f"MessagesCodec({self.endpoint.name}, {self._replay})"

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        return self.endpoint.address("messages")

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        version = {"anthropic-version": _VERSION}
        return {**version, "x-api-key": self.endpoint.key} if self.endpoint.key else version

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`."""
        head, prefix = self._start(request)
        view = View(
            request.model,
            prefix,
            searching=request.native_search is not None,
            cites=known(request.model).cites,
            replay=self._replay,
        )
        messages = assemble(request.messages, view)
        return b"".join((head[:-1], b',"messages":[', messages, b"],", _dump(_tail(request))[1:]))

    def decoder(self, request: Request, content_type: str) -> MessagesDecoder:
        """See `Codec.decoder`."""
        return MessagesDecoder(request, self._start(request)[1], self.endpoint.name, content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        return from_answer(status, headers, body, self.endpoint.name, self.endpoint.key)

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return self.endpoint.explain(error)

    def _start(self, request: Request) -> tuple[bytes, str]:
        """All that stays the same while a conversation goes on, and a hash that tells it apart."""
        told = (request.tools, request.native_search, request.system, request.model)
        last = self._last
        if last is not None and all(map(is_, last[0], told)):
            return last[1], last[2]
        head = _dump(_head(request, self.endpoint.official))
        prefix = blake2b(head, digest_size=8).hexdigest()
        self._last = (told, head, prefix)
        return head, prefix


def _head(request: Request, official: bool) -> dict[str, Any]:
    head: dict[str, Any] = {"model": request.model, "stream": True}
    tools = [function_tool(tool) for tool in request.tools]
    if request.native_search is not None:
        tools += server_tools(request.native_search, known(request.model), official)
    if tools:
        tools[-1]["cache_control"] = CACHED
        head["tools"] = tools
    if request.system.strip():
        head["system"] = [{"type": "text", "text": request.system, "cache_control": CACHED}]
    return head


def _tail(request: Request) -> dict[str, Any]:
    """What may differ from step to step."""
    tail: dict[str, Any] = {
        "max_tokens": request.max_output_tokens or known(request.model).max_tokens,
        "cache_control": CACHED,
    }
    if request.answer_now and (request.tools or request.native_search is not None):
        tail["tool_choice"] = {"type": "none"}
    used = container(request.messages, request.model)
    return {**tail, "container": used} if used else tail


def _dump(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
