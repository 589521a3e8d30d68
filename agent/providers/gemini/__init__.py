"""Google's Gemini models and servers that speak their API, with the provider's own web search."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent.errors import AgentError, ConfigError
from agent.features import Features
from agent.models import Capabilities, ModelInfo
from agent.providers import HttpProvider
from agent.providers.gemini.catalog import OFFERED, answers_questions, model, short
from agent.providers.gemini.codec import DEFAULT_BASE, GeminiCodec
from agent.providers.gemini.links import Links
from agent.settings import Setting, is_on
from agent.transport import Transport
from agent.types import Finished, Request, StreamEvent

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
    Setting(
        "GEMINI_RESOLVE_REDIRECTS",
        "1 = ask Google where the links of a searched answer lead; 0 = keep its redirect links",
        "1",
    ),
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

    def __init__(
        self, key: str, base_url: str, transport: Transport, *, resolve: bool = True
    ) -> None:
        self._codec = GeminiCodec(key, base_url)
        self._transport = transport
        self._http = HttpProvider(self._codec, transport)
        self._links = Links(
            transport,
            None if self._codec.endpoint.official else self._codec.endpoint.address(""),
            ask=resolve,
        )
        self._ready = not self._codec.endpoint.needs_key

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
        """See `Provider.models`. Without a key: the models we know of, as not available."""
        listed = await self._listed() if self._ready else None
        return [
            ModelInfo(
                f"gemini:{name}",
                title or name,
                replace(model(name).can, context=context or model(name).can.context),
                available=self._ready,
                missing=None if self._ready else "GEMINI_API_KEY",
                remedy=None if self._ready else _REMEDY,
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
    """The provider as the settings have it."""
    key = (env.get("GEMINI_API_KEY") or env.get("GOOGLE_API_KEY") or "").strip()
    return Gemini(
        key,
        env.get("GEMINI_BASE_URL") or DEFAULT_BASE,
        transport,
        resolve=is_on(env.get("GEMINI_RESOLVE_REDIRECTS") or "1"),
    )
