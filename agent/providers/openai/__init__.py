"""OpenAI and servers that speak its Responses API, with the provider's own web search."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from agent.errors import AgentError, ConfigError
from agent.features import Features
from agent.models import Capabilities, ModelInfo
from agent.providers import HttpProvider
from agent.providers.openai.catalog import OFFERED, answers_questions, capabilities
from agent.providers.openai.codec import DEFAULT_BASE, ResponsesCodec
from agent.settings import Setting
from agent.transport import Transport
from agent.types import Request, StreamEvent

__all__ = ["FEATURES", "SETTINGS", "OpenAI", "create"]

SETTINGS: tuple[Setting, ...] = (
    Setting("OPENAI_API_KEY", "Key for OpenAI: https://platform.openai.com/api-keys", secret=True),
    Setting("OPENAI_BASE_URL", "Another server of the Responses API", DEFAULT_BASE),
)
_LIST_SECONDS = 2.0
_REMEDY = "Set OPENAI_API_KEY in the environment or in .env."
FEATURES = Features(
    needs="OPENAI_API_KEY",
    pages="by its search",
    citations="links in the text, with spans",
    replay="raw items, byte-equal",
)


class OpenAI:
    """See `agent.providers.Provider`."""

    name = "openai"

    def __init__(self, key: str, base_url: str, transport: Transport) -> None:
        self._codec = ResponsesCodec(key, base_url)
        self._transport = transport
        self._http = HttpProvider(self._codec, transport)
        self._ready = not self._codec.endpoint.needs_key

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`."""
        return capabilities(model)

    def check(self, model: str) -> None:
        """See `Provider.check`."""
        if not self._ready:
            raise ConfigError("missing_key", "OpenAI needs a key, and none is set.", _REMEDY)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        return self._http.stream(request)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. Without a key: the models we know of, as not available."""
        names = await self._listed() if self._ready else None
        return [
            ModelInfo(
                f"openai:{name}",
                name,
                capabilities(name),
                available=self._ready,
                missing=None if self._ready else "OPENAI_API_KEY",
                remedy=None if self._ready else _REMEDY,
            )
            for name in names or OFFERED
        ]

    async def _listed(self) -> list[str]:
        try:
            answer = await self._transport.get_json(
                self._codec.endpoint.address("models"), self._codec.headers(), timeout=_LIST_SECONDS
            )
            names = [str(model["id"]) for model in answer["data"]]
        except (AgentError, KeyError, TypeError):
            return []
        if self._codec.endpoint.official:
            names = [name for name in names if answers_questions(name)]
        return sorted(names, reverse=True)


def create(env: Mapping[str, str], transport: Transport) -> OpenAI:
    """The provider as the settings have it."""
    key = (env.get("OPENAI_API_KEY") or "").strip()
    return OpenAI(key, env.get("OPENAI_BASE_URL") or DEFAULT_BASE, transport)
