"""Where models come from: one file a provider, found by its name.

`openai:gpt-6-luna` is served by the module `agent.providers.openai`. Such a module offers
`SETTINGS` (what it reads from the environment) and `create(env, transport) -> Provider`; nothing
else has to know that it exists. A provider that speaks HTTP is a pure `Codec` handed to
`HttpProvider`, the only way by which a codec meets bytes.
"""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol

from agent.call_ids import with_own_ids
from agent.errors import ConfigError, ProviderError
from agent.models import Capabilities, ModelInfo
from agent.retry import delays
from agent.transport import Transport
from agent.types import Finished, Request, StreamEvent

SECRET = 8  # characters; what is shorter would be found in ordinary words


class Decoder(Protocol):
    """Bytes of one response in, events out; the same events however the bytes are cut."""

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """Events completed by `data`. Raises ProviderError for an error inside the stream."""

    def close(self) -> Iterable[StreamEvent]:
        """The end of the bytes. Raises IncompleteError unless `Finished` was yielded."""


class Codec(Protocol):
    """One wire format, without I/O."""

    def url(self, request: Request) -> str:
        """Where the request is posted."""

    def headers(self) -> Mapping[str, str]:
        """Headers with the key in them; never logged."""

    def encode(self, request: Request) -> bytes:
        """The body. Messages are encoded once and remembered in `Message.encoded`."""

    def decoder(self, request: Request, content_type: str) -> Decoder:
        """A fresh decoder; `content_type` tells a stream from a plain JSON answer."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """An answer of status >= 400 in our words, with who must act."""

    def explain(self, error: ProviderError) -> ProviderError:
        """A transport error (unreachable, timeout) with this provider's remedy, or unchanged."""


class Provider(Protocol):
    """A source of model answers."""

    name: str

    def capabilities(self, model: str) -> Capabilities:
        """What `model` can do; safe defaults for a model nobody has heard of."""

    def check(self, model: str) -> None:
        """Raises ConfigError when nothing can be sent yet (no key), naming the remedy."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """One model step. Ends with `Finished`, or raises ProviderError."""

    async def models(self) -> list[ModelInfo]:
        """What the picker offers; never raises, a missing thing is said in the entry."""


class HttpProvider:
    """A codec on the transport, with the one retry layer: only before the first visible event."""

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        *,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self._codec = codec
        self._transport = transport
        self._sleep = sleep

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        body = self._codec.encode(request)
        waits = delays()
        while True:
            shown = False
            try:
                async with aclosing(self._attempt(request, body)) as events:
                    async for event in events:
                        shown = True
                        yield event
                return
            except ProviderError as error:
                wait = None if shown or not error.retryable else waits.next(error.retry_after)
                if wait is None:
                    told = self._codec.explain(error)
                    raise without_secrets(told, self._codec.headers()) from error
                await self._sleep(wait)

    async def _attempt(self, request: Request, body: bytes) -> AsyncGenerator[StreamEvent, None]:
        """Yields `Finished` when the connection is free again: who has that reads no further."""
        codec = self._codec
        last: Finished | None = None
        async with self._transport.post(codec.url(request), codec.headers(), body) as response:
            if response.status >= 400:
                raise codec.error(response.status, response.headers, await response.read())
            decoder = codec.decoder(request, response.headers.get("content-type", ""))
            async for data in response.chunks():
                for event in decoder.feed(data):
                    if type(event) is Finished:
                        last = event
                        break
                    yield event
                if last is not None:
                    break
            else:
                for event in decoder.close():
                    if type(event) is Finished:
                        last = event
                        break
                    yield event
        if last is not None:
            message = with_own_ids(last.message, request.messages)
            yield last if message is last.message else replace(last, message=message)


def without_secrets(error: ProviderError, headers: Mapping[str, str]) -> ProviderError:
    """The error, without what the headers keep secret: servers quote keys back."""
    for name, value in headers.items():
        if "key" in name.lower() or "auth" in name.lower():
            secret = value.rpartition(" ")[2]
            if len(secret) >= SECRET:
                error.message = error.message.replace(secret, "[key]")
                error.remedy = error.remedy.replace(secret, "[key]")
                error.args = (error.message,)
    return error


def names() -> list[str]:
    """The provider names there are, by file name."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(__path__))


def settings_of(name: str) -> list[Any]:
    """What the provider of this name declares: `agent.settings.Setting`s."""
    return list(import_module(f"agent.providers.{name.replace('-', '_')}").SETTINGS)


def system_name(name: str) -> str:
    """A provider as OpenTelemetry's GenAI conventions name it: its `SYSTEM`, or its own name."""
    if name not in names():
        return name  # the caller's own
    module = import_module(f"agent.providers.{name.replace('-', '_')}")
    return str(getattr(module, "SYSTEM", name))


def load(name: str, env: Mapping[str, str], transport: Transport) -> Provider:
    """The provider called `name`; raises ConfigError naming those that exist."""
    if name not in names():
        raise ConfigError(
            "unknown_provider",
            f"There is no provider called {name!r}.",
            f"Write models as provider:model; providers are {', '.join(names())}.",
        )
    module = import_module(f"agent.providers.{name.replace('-', '_')}")
    provider: Provider = module.create(env, transport.named(name))
    return provider


def split_model(model: str) -> tuple[str, str]:
    """`provider:model` (or `provider/model`) in two; raises ConfigError when it is neither."""
    provider, mark, rest = model.partition(":")
    if not mark or "/" in provider:
        provider, mark, rest = model.partition("/")
    if not (provider and mark and rest):
        raise ConfigError(
            "bad_model",
            f"{model!r} is not a model name.",
            "Write provider:model, for example ollama:qwen3:8b or builtin:extractive.",
        )
    return provider, rest
