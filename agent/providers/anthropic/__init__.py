"""Anthropic and servers that speak its Messages API, with the provider's own web search.

Requests are stateless and streamed. The body ends with the conversation, and all before it stays
the same. Cache marks: one on the last tool, one on the system text, the automatic mark of the
request, and one more for a step that is longer than the cache looks back. No `thinking` setting is
sent: models differ in the values they accept.

Spec: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import KeyedProvider
from searchloop.agent.providers._wire import SAMPLING, body, dump, filled, sampling
from searchloop.agent.providers.anthropic.request import (
    CACHED,
    MODELS,
    ReplayView,
    assemble,
    function_tool,
    server_tools,
)
from searchloop.agent.providers.anthropic.response import MessagesDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.types import Capabilities, Request
from searchloop.agent.types.attachments import PDF

__all__ = ["SETTINGS", "Anthropic", "create"]

DEFAULT_BASE = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_OPTIONS = {**SAMPLING, "stop": "stop_sequences"}
_SPENT = "has no credit left, or reached its limit"
SETTINGS: tuple[Setting, ...] = (
    Setting("ANTHROPIC_API_KEY", "Claude (sk-ant-...): https://platform.claude.com", secret=True),
    Setting("ANTHROPIC_BASE_URL", "Another server of the Messages API", DEFAULT_BASE),
)


class MessagesCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no authorization is sent."""

    vendor, home, api = "Anthropic", DEFAULT_BASE, "the Messages API"
    path = "messages"
    setting, key_setting, ends = "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "the host"

    def __init__(self, key: str = "", base_url: str = "") -> None:
        base = (base_url or DEFAULT_BASE).rstrip("/")
        # Both forms are in use: the vendor's own without the version, proxies' with it.
        super().__init__(key, base if base.endswith("/v1") else f"{base}/v1")

    def headers(self) -> Mapping[str, str]:
        version = {"anthropic-version": _VERSION}
        return {**version, "x-api-key": self.endpoint.key} if self.endpoint.key else version

    def encode(self, request: Request) -> bytes:
        head, prefix = self._start(request)
        view = ReplayView(
            request.model,
            prefix,
            searching=request.native_search is not None,
            cites=MODELS.of(request.model).cites and not _formed(request),
            replay=request.replay,
        )
        return body(head, "messages", assemble(request.messages, view), _tail(request))

    def decoder(self, request: Request, content_type: str = "") -> MessagesDecoder:
        return MessagesDecoder(self, request, self._start(request)[1])

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`. A rate limit names its time, a spending cap does not."""
        error = super().error(status, headers, body)
        if status == 429 and error.retry_after is None:
            return Refusal(self.endpoint.name, status=status).error("quota", why=_SPENT)
        return error

    def _start(self, request: Request) -> tuple[bytes, str]:
        """Returns the members that stay the same while a conversation goes on, and their hash."""
        head = dump(_head(request, self.endpoint.official))
        return head, blake2b(head, digest_size=8).hexdigest()


class Anthropic(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, codec, known = "anthropic", MessagesCodec, MODELS
    list_path, options = "models?limit=1000", _OPTIONS

    def capabilities(self, model: str) -> Capabilities:
        return MODELS.of(model).can

    async def takes(self, model: str) -> frozenset[str]:
        """See `Abilities.files`: PDF came with the models that cite."""
        found = await super().takes(model)
        return found if MODELS.of(model).cites else found - {PDF}


create = Anthropic.create


def _head(request: Request, official: bool) -> dict[str, Any]:
    tools = [function_tool(tool) for tool in request.tools]
    if request.native_search is not None:
        tools += server_tools(request.native_search, MODELS.of(request.model), official)
    if tools:
        tools[-1]["cache_control"] = CACHED
    system = {"type": "text", "text": request.system, "cache_control": CACHED}
    told = [system] if request.system.strip() else None
    return filled(model=request.model, stream=True, tools=tools, system=told)


def _formed(request: Request) -> bool:
    """Returns True if the server enforces the schema, which it does not beside citations.

    Spec: https://platform.claude.com/docs/en/build-with-claude/structured-outputs
    """
    free = request.native_search is None and MODELS.of(request.model).formed
    return free and is_strict(request.schema)


def _tail(request: Request) -> dict[str, Any]:
    """Returns the members that may differ from step to step."""
    listed = request.tools or request.native_search is not None
    form = {"type": "json_schema", "schema": request.schema} if _formed(request) else None
    return filled(
        max_tokens=request.max_output_tokens or MODELS.of(request.model).max_tokens,
        cache_control=CACHED,
        tool_choice={"type": "none"} if request.answer_now and listed else None,
        **sampling(request, _OPTIONS),
        output_config=filled(effort=request.options.get("effort"), format=form),
    )
