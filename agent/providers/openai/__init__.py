"""OpenAI and servers that speak its Responses API, with the provider's own web search.

Requests are stateless and streamed. The body ends with the conversation, and all before it stays
the same, so that the prompt cache is hit. No `reasoning` setting is sent: models differ in the
values they accept. A model outside the table is assumed to call functions and to search: if it
refuses the search tool, the run falls back once, while the other guess would hide the feature.

Spec: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.providers import Features
from searchloop.agent.providers._common import (
    SAMPLING,
    CodecBase,
    KeyedProvider,
    hashed_id,
    sampling,
    text_format,
)
from searchloop.agent.providers._models import ModelTable
from searchloop.agent.providers._responses.errors import classify
from searchloop.agent.providers._responses.request import encode_body, function_tool
from searchloop.agent.providers._responses.response import ResponsesDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, NativeSearch, Request

MODELS: ModelTable[Capabilities] = ModelTable(__file__, lambda able: able)

__all__ = ["FEATURES", "SETTINGS", "OpenAI", "create"]

DEFAULT_BASE = "https://api.openai.com/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting("OPENAI_API_KEY", "OpenAI (sk-...): https://platform.openai.com/api-keys", secret=True),
    Setting("OPENAI_BASE_URL", "Another server of the Responses API", DEFAULT_BASE),
)
FEATURES = Features(
    needs="OPENAI_API_KEY",
    pages="by its search",
    citations="links in the text, with spans",
    replay="raw items, byte-equal",
)


class OpenAI(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, key_setting = "openai", "OPENAI_API_KEY"
    options: ClassVar = SAMPLING
    known: ClassVar = MODELS

    def _read_list(self, answer: Any) -> dict[str, str]:
        names = sorted((str(model["id"]) for model in answer["data"]), reverse=True)
        official = self._codec.endpoint.official
        return {name: name for name in names if MODELS.answers_questions(name) or not official}


def create(env: Mapping[str, str], transport: Transport) -> OpenAI:
    """Returns the provider as the settings describe it."""
    key = (env.get("OPENAI_API_KEY") or "").strip()
    return OpenAI(ResponsesCodec(key, env.get("OPENAI_BASE_URL") or ""), transport)


class ResponsesCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no authorization is sent."""

    vendor, home, setting = "OpenAI", DEFAULT_BASE, "OPENAI_BASE_URL"
    classify = staticmethod(partial(classify, "OPENAI_API_KEY", "OPENAI_BASE_URL"))

    def url(self, request: Request) -> str:
        return self.endpoint.address("responses")

    def encode(self, request: Request) -> bytes:
        thinks = MODELS.of(request.model).thinking
        return encode_body(head(request, thinks), request, OpenAI.name, tail(request))

    def decoder(self, request: Request, content_type: str) -> ResponsesDecoder:
        return ResponsesDecoder(self, (OpenAI.name, request.model), content_type)


def head(request: Request, thinks: bool) -> dict[str, Any]:
    """Returns the members that stay the same while a conversation goes on."""
    include = []
    if request.native_search is not None:
        include.append("web_search_call.action.sources")
    if thinks:
        # Other models refuse the whole request when it is asked for.
        include.append("reasoning.encrypted_content")
    tools = [_search_tool(request.native_search)] if request.native_search is not None else []
    tools += [function_tool(tool, is_strict(tool.parameters)) for tool in request.tools]
    session = request.session_id or ""
    members = {
        "model": request.model,
        "store": False,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "include": include,
        "prompt_cache_key": session if len(session) <= 64 else hashed_id(session, ""),
        "instructions": request.system,
        "tools": tools,
    }
    return {key: value for key, value in members.items() if value not in ([], "", None)}


def tail(request: Request) -> dict[str, Any]:
    """Returns the members that may differ from step to step."""
    last: dict[str, Any] = {}
    if request.answer_now and (request.tools or request.native_search is not None):
        last["tool_choice"] = "none"
    if request.max_output_tokens is not None:
        last["max_output_tokens"] = request.max_output_tokens
    last |= sampling(request, SAMPLING) | text_format(request)
    if request.native_search is not None and request.native_search.max_searches is not None:
        last["max_tool_calls"] = request.native_search.max_searches
    return last


def _search_tool(search: NativeSearch) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "web_search"}
    lists = {"allowed_domains": search.allowed_domains, "blocked_domains": search.blocked_domains}
    filters = {name: [_domain(d) for d in listed] for name, listed in lists.items() if listed}
    if filters:
        tool["filters"] = filters
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
    """Strips scheme and path, which the filters refuse."""
    return text.strip().partition("://")[2].partition("/")[0] or text.strip().partition("/")[0]
