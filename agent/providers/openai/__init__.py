"""OpenAI and servers that speak its Responses API, with the provider's own web search.

Requests are stateless and streamed. The body ends with the conversation, and all before it stays
the same, so that the prompt cache is hit. No `reasoning` setting is sent: models differ in the
values they accept. A model outside the table is assumed to call functions and to search: if it
refuses the search tool, the run falls back once, while the other guess would hide the feature.

Spec: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import KeyedProvider, ModelTable
from searchloop.agent.providers._responses.request import encode_request
from searchloop.agent.providers._responses.response import ResponsesDecoder
from searchloop.agent.providers._wire import filled, hashed_id
from searchloop.agent.settings import Setting
from searchloop.agent.types import Capabilities, NativeSearch, Request

MODELS: ModelTable[Capabilities] = ModelTable(__file__, lambda able: able)

__all__ = ["SETTINGS", "OpenAI", "create"]

DEFAULT_BASE = "https://api.openai.com/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting("OPENAI_API_KEY", "OpenAI (sk-...): https://platform.openai.com/api-keys", secret=True),
    Setting("OPENAI_BASE_URL", "Another server of the Responses API", DEFAULT_BASE),
)


class ResponsesCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no authorization is sent."""

    vendor, home, api = "OpenAI", DEFAULT_BASE, "the Responses API"
    path = "responses"
    setting, key_setting = "OPENAI_BASE_URL", "OPENAI_API_KEY"

    def encode(self, request: Request) -> bytes:
        search = request.native_search
        include = [] if search is None else ["web_search_call.action.sources"]
        if MODELS.of(request.model).thinking:
            # Other models refuse the whole request when it is asked for.
            include.append("reasoning.encrypted_content")
        session = request.session_id or ""
        head = {
            "stream_options": {"include_obfuscation": False},
            "include": include,
            "prompt_cache_key": session if len(session) <= 64 else hashed_id(session, ""),
        }
        tail = {"max_tool_calls": search.max_searches if search else None}
        tools = [] if search is None else [_search_tool(search)]
        return encode_request(request, "openai", tools, strict=True, head=head, tail=tail)

    def decoder(self, request: Request, content_type: str = "") -> ResponsesDecoder:
        return ResponsesDecoder(self, "openai", request)


class OpenAI(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, codec, known = "openai", ResponsesCodec, MODELS

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`. Of another server only OpenAI's own models may search."""
        able = super().capabilities(model)
        if self._codec.endpoint.official or MODELS.answers_questions(model):
            return able
        return replace(able, native_search=False, tools_with_native_search=False)


create = OpenAI.create


def _search_tool(search: NativeSearch) -> dict[str, Any]:
    allowed, blocked = search.allowed_domains, search.blocked_domains
    return filled(
        type="web_search",
        # Left out, it would mean a user in the United States.
        user_location=filled(type="approximate", country=search.country),
        filters=filled(allowed_domains=allowed, blocked_domains=blocked),
    )
