"""The providers of this process and the models that they offer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from agent.models import ModelInfo
from agent.providers import Provider, load, names, split_model
from agent.transport import Transport

_log = logging.getLogger(__name__)


class Catalogue:
    """Providers by name: the caller's own, and those that come along, loaded when first named."""

    def __init__(
        self, env: Mapping[str, str], transport: Transport, own: Iterable[Provider] = ()
    ) -> None:
        self._env = env
        self._transport = transport
        self._own = {provider.name: provider for provider in own}
        self._providers = dict(self._own)

    def renew(self) -> None:
        """Has providers read their settings anew; what is under way ends as it began."""
        self._providers = dict(self._own)

    def provider(self, model: str) -> tuple[Provider, str]:
        """The provider behind `provider:model`, and the model's own name."""
        provider, name = split_model(model)
        return self._named(provider), name

    async def models(self) -> list[ModelInfo]:
        """What every provider offers, in the providers' order."""
        every = dict.fromkeys((*names(), *self._providers))
        lists = await asyncio.gather(*(self._models_of(name) for name in every))
        return [model for models in lists for model in models]

    async def _models_of(self, name: str) -> list[ModelInfo]:
        """One provider's models; a provider that is broken says so and leaves the others alone."""
        try:
            return await self._named(name).models()
        except Exception as error:
            _log.exception("the provider %s failed", name)
            missing = f"the provider failed: {type(error).__name__}"
            return [ModelInfo(f"{name}:", available=False, missing=missing, remedy="See the log.")]

    def _named(self, name: str) -> Provider:
        if name not in self._providers:
            self._providers[name] = load(name, self._env, self._transport)
        return self._providers[name]
