"""Anthropic and servers that speak its Messages API, with the provider's own web search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from agent.errors import AgentError, ConfigError, ProviderError
from agent.features import Features
from agent.models import Capabilities, ModelInfo
from agent.providers import HttpProvider
from agent.providers.anthropic.catalog import OFFERED, capabilities
from agent.providers.anthropic.codec import DEFAULT_BASE, MessagesCodec
from agent.providers.anthropic.failures import replay_after
from agent.providers.anthropic.history import Replay
from agent.settings import Setting
from agent.transport import Transport
from agent.types import Request, StreamEvent

__all__ = ["FEATURES", "SETTINGS", "Anthropic", "create"]

SETTINGS: tuple[Setting, ...] = (
    Setting("ANTHROPIC_API_KEY", "Key for Claude: https://platform.claude.com", secret=True),
    Setting("ANTHROPIC_BASE_URL", "Another server of the Messages API", DEFAULT_BASE),
)
_LIST_SECONDS = 2.0
_REMEDY = "Set ANTHROPIC_API_KEY in the environment or in .env."
_REMEMBERED = 256  # sessions whose history is known to be refused as it is
_LESS: dict[Replay, int] = {"whole": 0, "unsigned": 1, "neutral": 2}
FEATURES = Features(
    needs="ANTHROPIC_API_KEY",
    pages="its own tool",
    citations="quoted passages, by paragraph",
    replay="raw blocks, byte-equal",
)


class Anthropic:
    """See `agent.providers.Provider`.

    A history that the server refuses because of its opaque blocks is sent once more without them,
    as long as nothing was shown; from then on the session's requests begin that way.
    """

    name = "anthropic"

    def __init__(self, key: str, base_url: str, transport: Transport) -> None:
        self._codec = MessagesCodec(key, base_url)
        self._transport = transport
        self._https: dict[Replay, HttpProvider] = {
            replay: HttpProvider(MessagesCodec(key, base_url, replay), transport)
            for replay in _LESS
        }
        self._refused: OrderedDict[str, Replay] = OrderedDict()
        self._ready = not self._codec.endpoint.needs_key

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`."""
        return capabilities(model)

    def check(self, model: str) -> None:
        """See `Provider.check`."""
        if not self._ready:
            raise ConfigError("missing_key", "Anthropic needs a key, and none is set.", _REMEDY)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        replay: Replay = self._refused.get(request.session_id or "", "whole")
        while True:
            shown = False
            try:
                async with aclosing(self._https[replay].stream(request)) as events:
                    async for event in events:
                        shown = True
                        yield event
                return
            except ProviderError as error:
                less = replay_after(error)
                if shown or less is None or _LESS[less] <= _LESS[replay]:
                    raise
                replay = less
                self._remember(request.session_id, replay)

    def _remember(self, session_id: str | None, replay: Replay) -> None:
        if session_id:
            self._refused[session_id] = replay
            while len(self._refused) > _REMEMBERED:
                self._refused.popitem(last=False)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. Without a key: the models we know of, as not available."""
        listed = await self._listed() if self._ready else {}
        return [
            ModelInfo(
                f"anthropic:{name}",
                title,
                capabilities(name),
                available=self._ready,
                missing=None if self._ready else "ANTHROPIC_API_KEY",
                remedy=None if self._ready else _REMEDY,
            )
            for name, title in (listed or OFFERED).items()
        ]

    async def _listed(self) -> dict[str, str]:
        """Names and titles in the server's order, newest first; empty when it does not say."""
        try:
            answer = await self._transport.get_json(
                self._codec.endpoint.address("models?limit=1000"),
                self._codec.headers(),
                timeout=_LIST_SECONDS,
            )
            return {
                str(model["id"]): str(model.get("display_name") or model["id"])
                for model in answer["data"]
            }
        except (AgentError, AttributeError, KeyError, TypeError):
            return {}


def create(env: Mapping[str, str], transport: Transport) -> Anthropic:
    """The provider as the settings have it."""
    key = (env.get("ANTHROPIC_API_KEY") or "").strip()
    return Anthropic(key, env.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE, transport)
