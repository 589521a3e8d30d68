"""Gemini: the Developer API, with the provider's own search and its tool that reads pages.

The body begins with what stays the same and ends with what may change, so that the provider's
prompt cache is hit. Gemini's search has no filter for domains, and older models refuse functions
beside it: then the codec raises NativeSearchRejected and the run falls back to local search. Both
together need a flag that only newer models know, as does a history with the server's searches.

The longest prefix of a model's name counts. A model newer than those listed is assumed to be like
the newest. Any other is assumed to call functions and to search: a refused search tool falls back
once, while the opposite guess would hide the feature. Errors come with an HTTP status or inside a
stream that began with status 200; the body, not a header, names the delay before a retry. Waiting
does not bring back a daily quota.

Spec: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import quote

from searchloop.agent.errors import NativeSearchRejected, ProviderError
from searchloop.agent.providers import HttpProvider
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._keyed import KeyedProvider, ModelTable
from searchloop.agent.providers._wire import dump, filled, function_of, sampling
from searchloop.agent.providers.gemini.links import Links
from searchloop.agent.providers.gemini.request import Contents, encode_contents
from searchloop.agent.providers.gemini.response import GeminiDecoder
from searchloop.agent.settings import Setting
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Request, ToolSpec
from searchloop.agent.types.attachments import IMAGES, PDF


@dataclass(frozen=True, slots=True)
class GeminiModel:
    """`signs`: its calls must come back signed. `reads`: it opens pages named in the question."""

    can: Capabilities
    signs: bool = False
    reads: bool = False


MODELS = ModelTable(__file__, GeminiModel)

__all__ = ["SETTINGS", "SYSTEM", "Gemini", "create"]

SYSTEM = "gcp.gemini"
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "GEMINI_API_KEY",
        "Gemini (AIza...): https://aistudio.google.com/apikey",
        aliases=("GOOGLE_API_KEY",),
        secret=True,
    ),
    Setting(
        "GEMINI_BASE_URL",
        "Another server of the Gemini API",
        "https://generativelanguage.googleapis.com/v1beta",
    ),
)


_KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_MISSING"})
_SPENT = re.compile(r'per_?day|"quotaValue": "?0"?[,}]|limit: 0|credits are depleted', re.I)
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{0,9})?)s")  # 47.434392449s


def _exhausted(details: list[Mapping[str, Any]], text: str, refusal: Refusal) -> ProviderError:
    """A limit per minute can be retried; one per day, or a limit of zero, cannot."""
    if _SPENT.search(f"{json.dumps(details)} {text}"):
        what = f"The quota of this key at {refusal.server} is used up."
        remedy = "Wait for the next day, enable billing, or choose another model."
        return refusal.error("quota", what, remedy=remedy)
    return refusal.error("rate_limited")


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    yield from (d for d in found if isinstance(d, dict)) if isinstance(found, list) else ()


def _delay(details: list[Mapping[str, Any]]) -> float | None:
    """Returns the seconds to wait."""
    delays = (_DELAY.fullmatch(str(detail.get("retryDelay") or "")) for detail in details)
    return next((float(delay[1]) for delay in delays if delay), None)


class GeminiCodec(CodecBase):
    """See `agent.providers.Codec`. Without a key no request names one."""

    vendor, home, api = "Gemini", SETTINGS[1].default, "the Gemini API"
    setting, key_setting, ends = "GEMINI_BASE_URL", "GEMINI_API_KEY", "/v1beta"

    def url(self, request: Request) -> str:
        name = request.model if "/" in request.model else f"models/{request.model}"
        return self.endpoint.address(f"{quote(name)}:streamGenerateContent?alt=sse")

    def headers(self) -> Mapping[str, str]:
        return {"x-goog-api-key": self.endpoint.key} if self.endpoint.key else {}

    def classify(self, details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        """See `CodecBase.classify`. The body names the delay before a retry."""
        causes = list(_details(details))
        if any(cause.get("reason") in _KEY_REASONS for cause in causes):
            return refusal.error("unauthorized", key="the key", setting=self.key_setting)
        if refusal.status == 429 or details.get("status") == "RESOURCE_EXHAUSTED":
            error = _exhausted(causes, str(details.get("message") or ""), refusal)
        else:
            error = super().classify(details, refusal)
        error.retry_after = _delay(causes) if error.retryable else None
        return error

    def encode(self, request: Request) -> bytes:
        """See `Codec.encode`. Raises NativeSearchRejected before anything is sent."""
        known = MODELS.of(request.model)
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

    def decoder(self, request: Request, content_type: str = "") -> GeminiDecoder:
        return GeminiDecoder(self, request)


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
    search = ("googleSearch", *(["urlContext"] if reads else []))
    tools: dict[str, Any] = {} if request.native_search is None else {name: {} for name in search}
    if request.tools:
        tools["functionDeclarations"] = [_function(tool) for tool in request.tools]
    system = {"parts": [{"text": request.system}]} if request.system else None
    return filled(systemInstruction=system, tools=[tools] if tools else None)


def _tail(request: Request, contents: Contents, *, thinking: bool, both: bool) -> dict[str, Any]:
    """Returns the fields that may differ from step to step.

    Models that refuse functions beside the search refuse a schema beside either.
    """
    searching = request.native_search is not None
    served = searching and (request.tools or contents.server_side)
    chosen = filled(
        functionCallingConfig={"mode": "NONE"} if request.tools and request.answer_now else None,
        includeServerSideToolInvocations=True if served else None,
    )
    form = request.schema if both or not (request.tools or searching) else None
    level = str(request.options.get("effort") or "").upper()
    generation = filled(
        **sampling(request, Gemini.options),
        responseMimeType="application/json" if form else None,
        responseJsonSchema=form,
        maxOutputTokens=request.max_output_tokens,
        thinkingConfig=filled(includeThoughts=True, thinkingLevel=level) if thinking else None,
    )
    token = contents.token
    return filled(toolConfig=chosen, generationConfig=generation, continuationToken=token)


def _function(tool: ToolSpec) -> dict[str, Any]:
    declared = function_of(tool)
    parameters = declared.pop("parameters")
    if parameters.get("properties") or "$ref" in parameters:
        declared["parametersJsonSchema"] = parameters
    return declared


class Gemini(KeyedProvider):
    """See `agent.providers.Provider`."""

    name, codec = "gemini", GeminiCodec
    list_path, known = "models?pageSize=1000", MODELS
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
        links = Links(transport, None if endpoint.official else endpoint.address(""))
        self._http = HttpProvider(codec, transport, links.resolve)
        self._windows: dict[str, int] = {}

    def capabilities(self, model_name: str) -> Capabilities:
        can = MODELS.of(model_name).can
        return replace(can, context=self._windows.get(model_name, can.context))

    async def takes(self, model_name: str) -> frozenset[str]:
        """See `Abilities.files`: Gemma and models for pictures take pictures only."""
        found = await super().takes(model_name)
        return found if MODELS.of(model_name).can.tools else found - {PDF}

    def _read_list(self, answer: Any) -> dict[str, str]:
        found = {}
        for entry in answer["models"]:
            name = str(entry["name"]).removeprefix("models/")
            does = entry.get("supportedGenerationMethods") or ["generateContent"]
            wanted = MODELS.answers_questions(name) or not self._codec.endpoint.official
            if "generateContent" in does and wanted:
                found[name] = str(entry.get("displayName") or name)
                if isinstance(window := entry.get("inputTokenLimit"), int) and window:
                    self._windows[name] = window
        return dict(sorted(found.items(), reverse=True))


def create(env: Mapping[str, str], transport: Transport) -> Gemini:
    """Returns the provider as the settings describe it; the key has two names."""
    key = env.get("GEMINI_API_KEY") or env.get("GOOGLE_API_KEY") or ""
    return Gemini.create({**env, "GEMINI_API_KEY": key}, transport)
