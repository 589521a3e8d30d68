"""Anthropic and servers that speak its Messages API, with the provider's own web search.

Requests are stateless and streamed. The body ends with the conversation, and all before it stays
the same. Cache marks: one on the last tool, one on the system text, the automatic mark of the
request, and one more for a step that is longer than the cache looks back. No `thinking` setting is
sent: models differ in the values they accept.

Spec: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import Features
from searchloop.agent.providers._common import SAMPLING, CodecBase, KeyedProvider, dump, sampling
from searchloop.agent.providers.anthropic.request import (
    CACHED,
    MODELS,
    ReplayView,
    assemble,
    container,
    function_tool,
    server_tools,
)
from searchloop.agent.providers.anthropic.response import MessagesDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.exchange import document_of
from searchloop.agent.transport.refusals import TOO_LONG, Refusal
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Request
from searchloop.agent.types.attachments import PDF

__all__ = ["FEATURES", "SETTINGS", "Anthropic", "create"]

DEFAULT_BASE = "https://api.anthropic.com"
_VERSION = "2023-06-01"
SETTINGS: tuple[Setting, ...] = (
    Setting("ANTHROPIC_API_KEY", "Claude (sk-ant-...): https://platform.claude.com", secret=True),
    Setting("ANTHROPIC_BASE_URL", "Another server of the Messages API", DEFAULT_BASE),
)
FEATURES = Features(
    needs="ANTHROPIC_API_KEY",
    pages="its own tool",
    citations="quoted passages, by paragraph",
    replay="raw blocks, byte-equal",
)


_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_MONEY = ("credit balance is too low", "spend limit", "spending limit", "usage limits")
_THINKING = ("bound to a different conversation", "blocks in the latest assistant message")
_SIGNATURE = re.compile(
    r"invalid [`'\"]?(?:signature|data)[`'\"]? in [`'\"]?(?:redacted_)?thinking"
    r"|content\.\d+\.(?:(?:redacted_)?thinking\.)?(?:signature|data)\b|signature verification"
    r"|expected [`'\"]?thinking|thinking[`'\"]? blocks?\b.{0,60}(?:different|expired|decrypt)"
)
_BLOCKS = (
    *("without a corresponding", "without a preceding", "encrypted_content", "encrypted_index"),
    *("`tool_use` ids were found without", "unexpected `tool_use_id`"),
)
_SEARCH = ("web_search", "web search", "web_fetch", "web fetch", "allowed_callers")
_SEARCH_OPTION = ("domain", "country", "user_location", "max_uses")
SPENT = "has no credit left, or reached its limit"


def classify(details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
    """Returns our error for an error object {type, message, details}."""
    means = _STATUS.get(str(details.get("type") or "")) or refusal.status or 500
    text = str(details.get("message") or "").lower()

    def says(words: Iterable[str]) -> bool:
        return any(word in text for word in words)

    if means == 402 or says(_MONEY):
        return refusal.no_credit(SPENT)
    if means == 401:
        return refusal.unauthorized("ANTHROPIC_API_KEY")
    if means == 429:
        return refusal.too_many()
    if means == 529:
        what = f"{refusal.server} is overloaded right now."
        return refusal.error("overloaded", what, "Try again.", retryable=True)
    if means >= 500 or means in (408, 409):
        return refusal.failed()
    if means == 403:
        return refusal.forbidden("Use a key of a workspace that has access, or another model.")
    if means == 404 and "model" in text:
        return refusal.no_model()
    if means == 404:
        return refusal.wrong_address("the Messages API", "Check ANTHROPIC_BASE_URL.")
    if means == 413 or TOO_LONG.search(text):
        return refusal.too_long()
    if says(_THINKING) or _SIGNATURE.search(text):
        return refusal.no_thinking()
    if says(_BLOCKS):
        return refusal.no_history()
    if says(_SEARCH) and not says(_SEARCH_OPTION):
        return refusal.no_search()
    return refusal.bad_request()


class Anthropic(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, key_setting = "anthropic", "ANTHROPIC_API_KEY"
    list_path, known = "models?limit=1000", MODELS
    options: ClassVar = {**SAMPLING, "stop": "stop_sequences"}

    def capabilities(self, model: str) -> Capabilities:
        return MODELS.of(model).can

    async def takes(self, model: str) -> frozenset[str]:
        """See `providers.media_types`: PDF came with the models that cite."""
        found = await super().takes(model)
        return found if MODELS.of(model).cites else found - {PDF}


def create(env: Mapping[str, str], transport: Transport) -> Anthropic:
    """Returns the provider as the settings describe it."""
    key = (env.get("ANTHROPIC_API_KEY") or "").strip()
    return Anthropic(MessagesCodec(key, env.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE), transport)


class MessagesCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no authorization is sent."""

    vendor, home, setting = "Anthropic", DEFAULT_BASE, "ANTHROPIC_BASE_URL"
    classify = staticmethod(classify)

    def __init__(self, key: str = "", base_url: str = DEFAULT_BASE) -> None:
        base = base_url.rstrip("/")
        # Both forms are in use: the vendor's own without the version, proxies' with it.
        super().__init__(key, base if base.endswith("/v1") else f"{base}/v1")

    def url(self, request: Request) -> str:
        return self.endpoint.address("messages")

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
        messages = assemble(request.messages, view) or [b""]
        messages[0] = head[:-1] + b',"messages":[' + messages[0]
        messages[-1] += b"]," + dump(_tail(request))[1:]
        return b",".join(messages)  # the one copy of a long history

    def decoder(self, request: Request, content_type: str) -> MessagesDecoder:
        return MessagesDecoder(self, request, self._start(request)[1], content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`. A rate limit names its time, a spending cap does not."""
        error = super().error(status, headers, body)
        if status == 429 and error.retry_after is None:
            return self.refusal(self.details_of(document_of(body)), status).no_credit(SPENT)
        return error

    def _start(self, request: Request) -> tuple[bytes, str]:
        """Returns the members that stay the same while a conversation goes on, and their hash."""
        head = dump(_head(request, self.endpoint.official))
        return head, blake2b(head, digest_size=8).hexdigest()


def _head(request: Request, official: bool) -> dict[str, Any]:
    head: dict[str, Any] = {"model": request.model, "stream": True}
    tools = [function_tool(tool) for tool in request.tools]
    if request.native_search is not None:
        tools += server_tools(request.native_search, MODELS.of(request.model), official)
    if tools:
        tools[-1]["cache_control"] = CACHED
        head["tools"] = tools
    if request.system.strip():
        head["system"] = [{"type": "text", "text": request.system, "cache_control": CACHED}]
    return head


def _formed(request: Request) -> bool:
    """Returns True if the server enforces the schema, which it does not beside citations.

    Spec: https://platform.claude.com/docs/en/build-with-claude/structured-outputs
    """
    free = request.native_search is None and MODELS.of(request.model).formed
    return free and is_strict(request.schema)


def _tail(request: Request) -> dict[str, Any]:
    """Returns the members that may differ from step to step."""
    tail: dict[str, Any] = {
        "max_tokens": request.max_output_tokens or MODELS.of(request.model).max_tokens,
        "cache_control": CACHED,
    }
    if request.answer_now and (request.tools or request.native_search is not None):
        tail["tool_choice"] = {"type": "none"}
    tail |= sampling(request, Anthropic.options)
    if _formed(request):
        tail["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    used = container(request.messages, request.model)
    return {**tail, "container": used} if used else tail
