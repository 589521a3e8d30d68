"""xAI through its Responses API, with its own searches of the web and of X.

The search of X stays out of a request that restricts the search to domains, unless x.com is among
them. Chat Completions of this vendor no longer search: Live Search answers 410.

Spec: https://docs.x.ai/docs/guides/tools/search-tools
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers import Features
from searchloop.agent.providers._common import (
    SAMPLING,
    CodecBase,
    KeyedProvider,
    member,
    sampling,
    text_format,
)
from searchloop.agent.providers._models import ModelTable
from searchloop.agent.providers._responses import errors
from searchloop.agent.providers._responses.request import encode_body, function_tool
from searchloop.agent.providers._responses.response import (
    Action,
    Event,
    Item,
    ResponsesDecoder,
    WebSearchCalls,
    read_usage,
    search_action,
)
from searchloop.agent.settings import Setting
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, NativeSearch, Request, Usage

__all__ = ["FEATURES", "SETTINGS", "XAI", "create"]

DEFAULT_BASE = "https://api.x.ai/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting("XAI_API_KEY", "xAI (xai-...): https://console.x.ai", secret=True),
    Setting("XAI_BASE_URL", "Another server for it", DEFAULT_BASE),
)
FEATURES = Features(
    needs="XAI_API_KEY",
    pages="by its search",
    citations="links in the text, with spans",
    replay="raw items, byte-equal",
)
MODELS: ModelTable[Capabilities] = ModelTable(__file__, lambda able: able)
_POSTS = frozenset({"x.com", "twitter.com"})
_TICKS = 1e10  # of a dollar, in which the server reports the cost


class XAI(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, key_setting = "xai", "XAI_API_KEY"
    options: ClassVar = SAMPLING
    known: ClassVar = MODELS
    media: ClassVar = frozenset({"image/png", "image/jpeg"})

    def _read_list(self, answer: Any) -> dict[str, str]:
        names = sorted((str(model["id"]) for model in answer["data"]), reverse=True)
        return {name: name for name in names if MODELS.answers_questions(name)}


def create(env: Mapping[str, str], transport: Transport) -> XAI:
    """Returns the provider as the settings describe it."""
    key = (env.get("XAI_API_KEY") or "").strip()
    return XAI(XAICodec(key, env.get("XAI_BASE_URL") or ""), transport)


class XAICodec(CodecBase):
    """See `agent.providers.Codec`."""

    vendor, home, setting = "xAI", DEFAULT_BASE, "XAI_BASE_URL"

    @staticmethod
    def classify(details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        """See `CodecBase.classify`. The server words a bad key and a bad model with status 400."""
        text = str(details.get("message") or "").lower()
        if "api key" in text:
            return refusal.unauthorized("XAI_API_KEY")
        if "maximum prompt length" in text:
            return refusal.too_long()
        if "model" in text and ("does not exist" in text or "not found" in text):
            return refusal.no_model()
        return errors.classify("XAI_API_KEY", "XAI_BASE_URL", details, refusal)

    def url(self, request: Request) -> str:
        return self.endpoint.address("responses")

    def encode(self, request: Request) -> bytes:
        head: dict[str, Any] = {"model": request.model, "store": False, "stream": True}
        if MODELS.of(request.model).thinking:
            head["include"] = ["reasoning.encrypted_content"]
        if request.system:
            head["instructions"] = request.system
        search = request.native_search
        tools = [
            *(_search_tools(search) if search else ()),
            *(function_tool(t, False) for t in request.tools),
        ]
        if tools:
            head["tools"] = tools
        tail: dict[str, Any] = {"tool_choice": "none"} if request.answer_now and tools else {}
        if request.max_output_tokens is not None:
            tail["max_output_tokens"] = request.max_output_tokens
        tail |= sampling(request, SAMPLING) | text_format(request)
        return encode_body(head, request, XAI.name, tail)

    def decoder(self, request: Request, content_type: str) -> ResponsesDecoder:
        made = (XAI.name, request.model)
        return ResponsesDecoder(self, made, content_type, _action, _usage)


def _search_tools(search: NativeSearch) -> list[dict[str, Any]]:
    lists = {"allowed_domains": search.allowed_domains, "excluded_domains": search.blocked_domains}
    filters = {name: list(listed) for name, listed in lists.items() if listed}
    web = {"type": "web_search", **({"filters": filters} if filters else {})}
    allowed, blocked = _POSTS & set(search.allowed_domains), _POSTS & set(search.blocked_domains)
    posts = not blocked and (bool(allowed) or not search.allowed_domains)
    return [web, {"type": "x_search"}] if posts else [web]


def _action(item: Item) -> Action | None:
    """Returns what a search does; one of X is a call whose arguments say it."""
    if item.get("type") not in ("custom_tool_call", "x_search_call"):
        return search_action(item)
    said, _ = read_arguments(item.get("input") or item.get("arguments"))
    urls = (said.get(name) for name in ("video_url", "image_url"))
    post = said.get("post_id")
    url = next((u for u in urls if u), f"https://x.com/i/status/{post}" if post else None)
    if url:
        return {"type": "open_page", "url": url}
    return {"type": "search", "query": said.get("query") or said.get("username")}


def _usage(response: Event, searches: WebSearchCalls) -> Usage:
    """Reads counts and cost; searches are those billed."""
    counts = response.get("usage")
    details = member(counts, "server_side_tool_usage_details")
    ticks = member(counts, "cost_in_usd_ticks")
    billed = [member(details, f"{kind}_search_calls") for kind in ("web", "x")]
    usage = read_usage(response, searches)
    return usage._replace(
        searches=sum(n for n in billed if isinstance(n, int)) if details else usage.searches,
        cost_usd=ticks / _TICKS if isinstance(ticks, int) else None,
    )
