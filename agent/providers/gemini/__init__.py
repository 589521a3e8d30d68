"""Google's Gemini models and servers that speak their API, with the provider's own web search.

Requests go to generateContent, stateless and streamed. System text and tools come first, then the
conversation, so that each request extends the one before and implicit caching hits; values that
differ from step to step come last. Functions and the provider's own tools share one tool object.
Together they need a flag that only newer models know, as does a history with the server's searches.

Spec: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from searchloop.agent.errors import AgentError, ConfigError, NativeSearchRejected, ProviderError
from searchloop.agent.providers import Features, HttpProvider
from searchloop.agent.providers.gemini.errors import from_answer
from searchloop.agent.providers.gemini.links import Links
from searchloop.agent.providers.gemini.models import OFFERED, answers_questions, model, short
from searchloop.agent.providers.gemini.request import Contents, encode_contents
from searchloop.agent.providers.gemini.response import GeminiDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.exchange import Endpoint
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Finished, ModelInfo, Request, StreamEvent, ToolSpec

DEFAULT_BASE = "https://generativelanguage.googleapis.com/v1beta"


class GeminiCodec:
    """See `agent.providers.Codec`. Without a key no request names one."""

    def __init__(self, key: str = "", base_url: str = DEFAULT_BASE) -> None:
        self.endpoint = Endpoint(
            base_url, key, vendor="Gemini", home=DEFAULT_BASE, setting="GEMINI_BASE_URL"
        )

    def __repr__(self) -> str:
        return f"GeminiCodec({self.endpoint.name})"

    def url(self, request: Request) -> str:
        """See `Codec.url`."""
        name = request.model if "/" in request.model else f"models/{request.model}"
        return self.endpoint.address(f"{quote(name)}:streamGenerateContent?alt=sse")

    def headers(self) -> Mapping[str, str]:
        """See `Codec.headers`."""
        return {"x-goog-api-key": self.endpoint.key} if self.endpoint.key else {}

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises NativeSearchRejected before anything is sent."""
        known = model(request.model)
        searching = request.native_search is not None
        _check_search(request, both=known.can.tools_with_native_search)
        contents = encode_contents(
            request.messages, request.model, searching=searching, signs=known.signs
        )
        head = _dump(_head(request, reads=known.reads))[1:-1]
        tail = _dump(_tail(request, contents, thinking=known.can.thinking))[1:-1]
        conversation = b'"contents":[%s]' % contents.body
        return b"{%s}" % b",".join(filter(None, (head, conversation, tail)))

    def decoder(self, request: Request, content_type: str) -> GeminiDecoder:
        """See `Codec.decoder`."""
        return GeminiDecoder(request, self.endpoint.name, content_type)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """See `Codec.error`."""
        return from_answer(status, headers, body, self.endpoint.name, self.endpoint.key)

    def explain(self, error: ProviderError) -> ProviderError:
        """See `Codec.explain`."""
        return self.endpoint.explain(error)


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
    """The fields that stay the same during a conversation."""
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


def _tail(request: Request, contents: Contents, *, thinking: bool) -> dict[str, Any]:
    """The fields that may differ from step to step."""
    chosen: dict[str, Any] = {}
    if request.tools and request.answer_now:
        chosen["functionCallingConfig"] = {"mode": "NONE"}
    if request.native_search is not None and (request.tools or contents.server_side):
        chosen["includeServerSideToolInvocations"] = True
    generation: dict[str, Any] = {}
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


def _dump(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


__all__ = ["FEATURES", "SETTINGS", "SYSTEM", "Gemini", "create"]

SYSTEM = "gcp.gemini"

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "GEMINI_API_KEY",
        "Key for Gemini: https://aistudio.google.com/apikey",
        aliases=("GOOGLE_API_KEY",),
        secret=True,
    ),
    Setting("GEMINI_BASE_URL", "Another server of the Gemini API", DEFAULT_BASE),
)
_LIST_SECONDS = 2.0
_REMEDY = "Set GEMINI_API_KEY in the environment or in .env."
FEATURES = Features(
    needs="GEMINI_API_KEY",
    pages="its own tool",
    citations="passages, with spans",
    replay="raw parts, byte-equal",
)


class Gemini:
    """See `agent.providers.Provider`."""

    name = "gemini"

    def __init__(self, key: str, base_url: str, transport: Transport) -> None:
        self._codec = GeminiCodec(key, base_url)
        self._transport = transport
        self._http = HttpProvider(self._codec, transport)
        endpoint = self._codec.endpoint
        self._links = Links(transport, None if endpoint.official else endpoint.address(""))
        self._ready = not endpoint.needs_key

    def capabilities(self, model_name: str) -> Capabilities:
        """See `Provider.capabilities`."""
        return model(model_name).can

    def check(self, model_name: str) -> None:
        """See `Provider.check`."""
        if not self._ready:
            raise ConfigError("missing_key", "Gemini needs a key, and none is set.", _REMEDY)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        events = self._http.stream(request)
        return events if request.native_search is None else self._with_pages(events)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. Without a key it lists OFFERED as not available."""
        missing = (None, None) if self._ready else ("GEMINI_API_KEY", _REMEDY)
        listed = await self._listed() if self._ready else None
        return [
            ModelInfo(
                f"gemini:{name}",
                title or name,
                replace(model(name).can, context=context or model(name).can.context),
                available=self._ready,
                missing=missing[0],
                remedy=missing[1],
            )
            for name, title, context in listed or ((name, "", None) for name in OFFERED)
        ]

    async def _with_pages(
        self, events: AsyncGenerator[StreamEvent, None]
    ) -> AsyncGenerator[StreamEvent, None]:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Finished):
                    event = replace(event, message=await self._links.resolve(event.message))
                yield event

    async def _listed(self) -> list[tuple[str, str, int | None]]:
        try:
            answer = await self._transport.get_json(
                self._codec.endpoint.address("models?pageSize=1000"),
                self._codec.headers(),
                timeout=_LIST_SECONDS,
            )
            found = [_entry(entry) for entry in answer["models"] if _generates(entry)]
        except (AgentError, KeyError, TypeError, AttributeError):
            return []
        if self._codec.endpoint.official:
            found = [entry for entry in found if answers_questions(entry[0])]
        return sorted(found, reverse=True, key=lambda entry: entry[0])


def _entry(entry: Mapping[str, Any]) -> tuple[str, str, int | None]:
    context = entry.get("inputTokenLimit")
    return (
        short(str(entry["name"])),
        str(entry.get("displayName") or ""),
        context if isinstance(context, int) else None,
    )


def _generates(entry: Mapping[str, Any]) -> bool:
    return "generateContent" in (entry.get("supportedGenerationMethods") or ["generateContent"])


def create(env: Mapping[str, str], transport: Transport) -> Gemini:
    """The provider with the settings of `env`."""
    key = (env.get("GEMINI_API_KEY") or env.get("GOOGLE_API_KEY") or "").strip()
    return Gemini(key, env.get("GEMINI_BASE_URL") or DEFAULT_BASE, transport)
