"""xAI through its Responses API, with its own searches of the web and of X.

The search of X stays out of a request that restricts the search to domains, unless x.com is among
them. Chat Completions of this vendor no longer search: Live Search answers 410.

Spec: https://docs.x.ai/docs/guides/tools/search-tools
"""

from __future__ import annotations

from typing import Any

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import KeyedProvider, ModelTable
from searchloop.agent.providers._responses.request import encode_request
from searchloop.agent.providers._responses.response import (
    Action,
    Event,
    Item,
    ResponsesDecoder,
    WebSearchCalls,
    read_usage,
    search_action,
)
from searchloop.agent.providers._wire import filled, member, money
from searchloop.agent.settings import Setting
from searchloop.agent.types import Capabilities, NativeSearch, Request, Usage

__all__ = ["SETTINGS", "XAI", "create"]

DEFAULT_BASE = "https://api.x.ai/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting("XAI_API_KEY", "xAI (xai-...): https://console.x.ai", secret=True),
    Setting("XAI_BASE_URL", "Another server for it", DEFAULT_BASE),
)
MODELS: ModelTable[Capabilities] = ModelTable(__file__, lambda able: able)
_POSTS = frozenset({"x.com", "twitter.com"})
_TICKS = 1e10  # of a dollar, in which the server reports the cost


class XAICodec(CodecBase):
    """See `agent.providers.Codec`."""

    vendor, home, api = "xAI", DEFAULT_BASE, "the Responses API"
    path = "responses"
    setting, key_setting = "XAI_BASE_URL", "XAI_API_KEY"

    def encode(self, request: Request) -> bytes:
        thinks = MODELS.of(request.model).thinking
        head = {"include": ["reasoning.encrypted_content"] if thinks else []}
        tools = _search_tools(request.native_search) if request.native_search else []
        return encode_request(request, "xai", tools, strict=False, head=head, tail={})

    def decoder(self, request: Request, content_type: str = "") -> ResponsesDecoder:
        return ResponsesDecoder(self, "xai", request, _action, _usage)


class XAI(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, codec, known = "xai", XAICodec, MODELS
    media = frozenset({"image/png", "image/jpeg"})


create = XAI.create


def _search_tools(search: NativeSearch) -> list[dict[str, Any]]:
    allowed, blocked = search.allowed_domains, search.blocked_domains
    filters = filled(allowed_domains=allowed, excluded_domains=blocked)
    web = filled(type="web_search", filters=filters)
    posts = _POSTS.isdisjoint(blocked) and (not allowed or not _POSTS.isdisjoint(allowed))
    return [web, {"type": "x_search"}] if posts else [web]


def _action(item: Item) -> Action | None:
    """Returns what a search does; one of X is a call whose arguments say it."""
    if item.get("type") not in ("custom_tool_call", "x_search_call"):
        return search_action(item)
    said, _ = read_arguments(item.get("input") or item.get("arguments"))
    if post := said.get("post_id"):
        return {"type": "open_page", "url": f"https://x.com/i/status/{post}"}
    return {"type": "search", "query": said.get("query") or said.get("username")}


def _usage(response: Event, searches: WebSearchCalls) -> Usage:
    """Reads counts and cost; searches are those billed."""
    counts = response.get("usage")
    details = member(counts, "server_side_tool_usage_details")
    ticks = money(member(counts, "cost_in_usd_ticks"))
    billed = [member(details, f"{kind}_search_calls") for kind in ("web", "x")]
    usage = read_usage(response, searches)
    return usage._replace(
        searches=sum(n for n in billed if isinstance(n, int)) if details else usage.searches,
        cost_usd=None if ticks is None else ticks / _TICKS,
    )
