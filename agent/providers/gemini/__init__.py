"""Gemini: the Developer API, with the provider's own search and its tool that reads pages.

The body begins with what stays the same and ends with what may change, so that the provider's
prompt cache is hit. Gemini's search has no filter for domains, and older models refuse functions
beside it: then the codec raises NativeSearchRejected and the run falls back to local search. Both
together need a flag that only newer models know, as does a history with the server's searches.

Spec: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.providers import Features
from searchloop.agent.providers._common import CodecBase, KeyedProvider, dump
from searchloop.agent.providers._options import sampling
from searchloop.agent.providers.gemini.errors import classify
from searchloop.agent.providers.gemini.links import Links
from searchloop.agent.providers.gemini.models import OFFERED, answers_questions, model
from searchloop.agent.providers.gemini.request import Contents, encode_contents
from searchloop.agent.providers.gemini.response import GeminiDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Finished, Request, StreamEvent, ToolSpec
from searchloop.agent.types.attachments import IMAGES, PDF

__all__ = ["FEATURES", "SETTINGS", "SYSTEM", "Gemini", "create"]

SYSTEM = "gcp.gemini"
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "GEMINI_API_KEY",
        "Key for Gemini: https://aistudio.google.com/apikey",
        aliases=("GOOGLE_API_KEY",),
        secret=True,
    ),
    Setting(
        "GEMINI_BASE_URL",
        "Another server of the Gemini API",
        "https://generativelanguage.googleapis.com/v1beta",
    ),
)
FEATURES = Features(
    needs="GEMINI_API_KEY",
    pages="its own tool",
    citations="passages, with spans",
    replay="raw parts, byte-equal",
)


class GeminiCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no request names one."""

    vendor, home, setting = "Gemini", SETTINGS[1].default, "GEMINI_BASE_URL"
    classify = staticmethod(classify)

    def url(self, request: Request) -> str:
        name = request.model if "/" in request.model else f"models/{request.model}"
        return self.endpoint.address(f"{quote(name)}:streamGenerateContent?alt=sse")

    def headers(self) -> Mapping[str, str]:
        return {"x-goog-api-key": self.endpoint.key} if self.endpoint.key else {}

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises NativeSearchRejected before anything is sent."""
        known = model(request.model)
        _check_search(request, both=known.can.tools_with_native_search)
        searching = request.native_search is not None
        own = request.model if request.replay == "whole" else ""
        signs = known.signs or request.replay == "neutral"
        contents = encode_contents(request.messages, own, searching=searching, signs=signs)
        head = dump(_head(request, reads=known.reads))[1:-1]
        thinks, both = known.can.thinking, known.can.tools_with_native_search
        tail = dump(_tail(request, contents, thinking=thinks, both=both))[1:-1]
        conversation = b'"contents":[%s]' % contents.body
        return b"{%s}" % b",".join(filter(None, (head, conversation, tail)))

    def decoder(self, request: Request, content_type: str) -> GeminiDecoder:
        return GeminiDecoder(self, request, content_type)


def _check_search(request: Request, *, both: bool) -> None:
    """Raises NativeSearchRejected if this search cannot do the request; local search then does."""
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
    """Returns the fields that stay the same during a conversation."""
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


def _tail(request: Request, contents: Contents, *, thinking: bool, both: bool) -> dict[str, Any]:
    """Returns the fields that may differ from step to step.

    Models that refuse functions beside the search refuse a schema beside either.
    """
    chosen: dict[str, Any] = {}
    if request.tools and request.answer_now:
        chosen["functionCallingConfig"] = {"mode": "NONE"}
    if request.native_search is not None and (request.tools or contents.server_side):
        chosen["includeServerSideToolInvocations"] = True
    generation = sampling(request, Gemini.options)
    free = not request.tools and request.native_search is None
    if request.schema and (free or both):
        generation |= {"responseMimeType": "application/json"}
        generation |= {"responseJsonSchema": request.schema}
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


class Gemini(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, key_setting = "gemini", "GEMINI_API_KEY"
    list_path, offered = "models?pageSize=1000", OFFERED
    media = IMAGES - {"image/gif"} | {PDF}
    options: ClassVar = {
        "temperature": "temperature",
        "top_p": "topP",
        "seed": "seed",
        "stop": "stopSequences",
    }

    def __init__(self, codec: GeminiCodec, transport: Transport) -> None:
        super().__init__(codec, transport)
        endpoint = codec.endpoint
        self._links = Links(transport, None if endpoint.official else endpoint.address(""))
        self._windows: dict[str, int] = {}

    def capabilities(self, model_name: str) -> Capabilities:
        can = model(model_name).can
        return replace(can, context=self._windows.get(model_name, can.context))

    async def takes(self, model_name: str) -> frozenset[str]:
        """See `providers.media_types`: Gemma and models for pictures take pictures only."""
        found = await super().takes(model_name)
        return found if model(model_name).can.tools else found - {PDF}

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        events = super().stream(request)
        return events if request.native_search is None else self._with_pages(events)

    async def _with_pages(
        self, events: AsyncGenerator[StreamEvent, None]
    ) -> AsyncGenerator[StreamEvent, None]:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Finished):
                    event = replace(event, message=await self._links.resolve(event.message))
                yield event

    def _read_list(self, answer: Any) -> dict[str, str]:
        found = {}
        for entry in answer["models"]:
            name = str(entry["name"]).removeprefix("models/")
            does = entry.get("supportedGenerationMethods") or ["generateContent"]
            wanted = answers_questions(name) or not self._codec.endpoint.official
            if "generateContent" in does and wanted:
                found[name] = str(entry.get("displayName") or name)
                if isinstance(window := entry.get("inputTokenLimit"), int) and window:
                    self._windows[name] = window
        return dict(sorted(found.items(), reverse=True))


def create(env: Mapping[str, str], transport: Transport) -> Gemini:
    """Returns the provider as the settings describe it."""
    key = (env.get("GEMINI_API_KEY") or env.get("GOOGLE_API_KEY") or "").strip()
    return Gemini(GeminiCodec(key, env.get("GEMINI_BASE_URL") or ""), transport)
