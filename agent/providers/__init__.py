"""Providers of models, one folder each, found by name.

`agent.providers.openai` serves the model `openai:gpt-6-luna`. Such a package exports `SETTINGS`,
which it reads from the environment, and `create(env, transport) -> Provider`; no other code names
it. Other packages bring providers by the entry point `searchloop.providers`, which names
such a module. A provider that speaks HTTP is a pure `Codec` on `HttpProvider`, which does the I/O.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pkgutil
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeVar

from searchloop.agent.calls.arguments import with_own_ids
from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import AgentError, ConfigError, IncompleteError, ProviderError
from searchloop.agent.providers._abilities import Abilities as Abilities
from searchloop.agent.providers._abilities import Hosts as Hosts
from searchloop.agent.providers._abilities import ModelServer as ModelServer
from searchloop.agent.providers._abilities import PullProgress as PullProgress
from searchloop.agent.providers._abilities import abilities_of as abilities_of
from searchloop.agent.providers._abilities import hosting as hosting
from searchloop.agent.providers._wire import with_own_names
from searchloop.agent.settings import Setting
from searchloop.agent.transport.refusals import Delays, blamed, with_delay
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Notice,
    Request,
    StreamEvent,
)
from searchloop.analysis.plugins import Plugin, find_plugins
from searchloop.analysis.told import one_of

_log = logging.getLogger(__name__)
SECRET = 8  # characters; a shorter key may be part of ordinary words
_AS_TEXT = Notice(
    "history_as_text",
    "The provider refused hidden parts of earlier answers; this session goes on without them.",
)


class Decoder(Protocol):
    """Turns the bytes of one response into events, the same however the bytes are cut."""

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """Returns the events that `data` completes. Raises ProviderError for an error event."""

    def close(self) -> Iterable[StreamEvent]:
        """Ends the bytes. Raises IncompleteError unless `Finished` was yielded."""


class Codec(Protocol):
    """One wire format, without I/O."""

    def url(self, request: Request) -> str:
        """Returns the URL to post the request to."""

    def headers(self) -> Mapping[str, str]:
        """Returns headers with the key in them; never logged."""

    def encode(self, request: Request) -> bytes:
        """Returns the body. Encodes each message once and remembers it in `Message.encoded`."""

    def decoder(self, request: Request, content_type: str) -> Decoder:
        """Returns a new decoder; `content_type` may tell a stream from a plain JSON answer."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Returns our error for an answer of status >= 400, with a remedy."""

    def explain(self, error: ProviderError) -> ProviderError:
        """Returns a transport error with this provider's remedy, or unchanged."""


class Provider(Protocol):
    """Answers requests to models. One that can do more has an attribute `abilities`, too."""

    name: str

    def capabilities(self, model: str) -> Capabilities:
        """Returns what `model` can do; safe defaults for an unknown model."""

    def check(self, model: str) -> None:
        """Raises ConfigError with a remedy if nothing can be sent yet, as without a key."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields the events of one model step. Ends with `Finished`, or raises ProviderError."""

    async def models(self) -> list[ModelInfo]:
        """Lists models for the picker. Never raises: an entry names what is missing."""


def check_options(provider: Provider, own: Instructions, model: str) -> None:
    """Raises ConfigError for what the provider's API or the model does not take."""
    able = abilities_of(provider)
    taken = able.options
    efforts, effort = provider.capabilities(model).efforts, own.options.get("effort", "")
    what, known = "", taken
    if wrong := [name for name in own.options if name not in taken]:
        what = f"{provider.name} takes no option {wrong[0]}"
    elif effort not in (*efforts, ""):
        what, known = f"{provider.name}:{model} takes no effort {effort}", efforts
    if what:
        what += f", only {', '.join(known)}." if known else "."
        raise ConfigError("option_not_taken", what, "Leave it out, or choose another model.")
    if own.schema is not None and not able.writes:
        what = f"{provider.name} is no language model and cannot write JSON."
        raise ConfigError("schema_not_taken", what, "Choose a language model.")


Finish = Callable[[Message], Awaitable[Message]]


class HttpProvider:
    """Runs a codec on the transport; retries, but only before the first visible event.

    If the server refuses a history for its opaque parts, sends it once more without them; later
    requests of the session begin that way.
    """

    def __init__(self, codec: Codec, transport: Transport, finish: Finish | None = None) -> None:
        """`finish` completes an answer whose request may search."""
        self._codec = codec
        self._transport = transport
        self._finish = finish
        self._refused: set[str | None] = set()  # sessions whose history goes as text and calls

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        if request.session_id and request.session_id in self._refused:
            request = replace(request, replay="neutral")
        body = self._codec.encode(request)
        waits = Delays()
        while True:
            shown = False
            try:
                async with aclosing(self._attempt(request, body)) as events:
                    async for event in events:
                        shown = True
                        yield event
                return
            except ProviderError as error:
                if error.code == "history_refused" and request.replay == "whole" and not shown:
                    yield _AS_TEXT
                    self._refused.add(request.session_id)
                    request = replace(request, replay="neutral")
                    body = self._codec.encode(request)
                    continue
                wait = None if shown or not error.retryable else waits.next(error.retry_after)
                if wait is None:
                    explained = with_delay(self._codec.explain(error))
                    raise without_secrets(explained, self._codec.headers()) from error
                await asyncio.sleep(wait)

    async def _attempt(self, request: Request, body: bytes) -> AsyncGenerator[StreamEvent, None]:
        """Yields `Finished` last, when the connection is free: callers read no further."""
        codec = self._codec
        last: Finished | None = None
        data: bytes | None = b""
        async with self._transport.post(codec.url(request), codec.headers(), body) as response:
            if response.status >= 400:
                said = await response.read()
                error = codec.error(response.status, response.headers, said)
                raise blamed(error, said, request)
            decoder = codec.decoder(request, response.headers.get("content-type", ""))
            chunks = aiter(response)
            while last is None and data is not None:
                try:
                    data = await anext(chunks, None)
                except IncompleteError:
                    with suppress(ProviderError):
                        for event in decoder.close():
                            if type(event) is not Finished:
                                yield event
                    raise
                for event in decoder.close() if data is None else decoder.feed(data):
                    if type(event) is Finished:
                        last = event
                        break
                    yield event
        if last is not None:
            if last.message.tool_calls:
                message = with_own_ids(last.message, request.messages)
                last = replace(last, message=with_own_names(message, request.tools))
            if self._finish and request.native_search is not None:
                last = replace(last, message=await self._finish(last.message))
            yield last


def without_secrets(error: ProviderError, headers: Mapping[str, str]) -> ProviderError:
    """Removes from the error what the headers keep secret: servers quote keys and passwords."""
    for name, value in headers.items():
        if "key" not in name.lower() and "auth" not in name.lower():
            continue
        scheme, _, secret = value.rpartition(" ")
        password = b64decode(secret).decode().partition(":")[2] if scheme == "Basic" else ""
        for each in (secret, password):
            if len(each) >= SECRET:
                error.message = error.message.replace(each, "[key]")
                error.remedy = error.remedy.replace(each, "[key]")
                error.args = (error.message,)
    return error


def names() -> list[str]:
    """Lists the names of all providers, those of plugins included."""
    return sorted({*_own(), *(plugin.name for plugin in provider_plugins() if plugin.value)})


def has(name: str) -> bool:
    """Tells whether there is a provider of this name; looks for plugins, which is slow, last."""
    return name in _own() or name in names()


@cache
def provider_plugins() -> tuple[Plugin, ...]:
    """Returns the modules that other packages bring as providers, broken ones included."""
    return find_plugins("providers", _refused)


def _own() -> tuple[str, ...]:
    return _modules(tuple(__path__))


@cache  # asked several times for each model of a list
def _modules(folders: tuple[str, ...]) -> tuple[str, ...]:
    names = (module.name for module in pkgutil.iter_modules(folders))
    return tuple(name.replace("_", "-") for name in names if not name.startswith("_"))


def _refused(name: str, module: Any) -> str:
    if name in _own():
        return f"There is another provider named {name}."
    declared, create = getattr(module, "SETTINGS", None), getattr(module, "create", None)
    listed = isinstance(declared, tuple) and all(isinstance(s, Setting) for s in declared)
    if listed and callable(create) and re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name):
        return ""
    return (
        "A provider is a module with create(env, transport) and SETTINGS, a tuple of Setting; its "
        "name has small letters, digits and hyphens."
    )


def _module(name: str) -> Any:
    if name in _own():
        return import_module(f"{__name__}.{name.replace('-', '_')}")
    return next(p.value for p in provider_plugins() if p.name == name)


def settings_of(name: str) -> list[Any]:
    """Returns the `agent.settings.Setting`s that a provider declares."""
    return list(_module(name).SETTINGS)


def unset(model: ModelInfo) -> str:
    """Returns the setting that a model waits for, "" if it is there or lacks something else."""
    declared = (str(setting.name) for setting in settings_of(model.id.partition(":")[0]))
    return next((name for name in declared if name == model.missing), "")


def system_name(name: str) -> str:
    """Returns a provider's name in OpenTelemetry's GenAI conventions: its `SYSTEM`, else `name`."""
    return str(getattr(_module(name), "SYSTEM", name)) if has(name) else name


def load(name: str, env: Mapping[str, str], transport: Transport) -> Provider:
    """Creates the provider called `name`. Raises ConfigError with the names that exist."""
    if not has(name):
        if broken := next((p for p in provider_plugins() if p.name == name and p.problem), None):
            raise ConfigError(**broken.notice())
        remedy = f"{one_of(name, names())} Write models as provider:model."
        raise ConfigError("unknown_provider", f"There is no provider called {name!r}.", remedy)
    try:
        provider: Provider = _module(name).create(env, transport)
    except Exception as error:
        plugin = next((p for p in provider_plugins() if p.name == name), None)
        if plugin is None or isinstance(error, AgentError):
            raise
        failed = plugin._replace(problem=f"It failed: {type(error).__name__}: {error}"[:300])
        raise ConfigError(**failed.notice()) from error
    return provider


def split_model(model: str) -> tuple[str, str]:
    """Splits `provider:model` or `provider/model`. Raises ConfigError for anything else."""
    provider, mark, rest = model.partition(":")
    if not mark or "/" in provider:
        provider, mark, rest = model.partition("/")
    if not (provider and mark and rest):
        remedy = "Write provider:model, for example ollama:qwen3:8b or builtin:extractive."
        raise ConfigError("bad_model", f"{model!r} is not a model name.", remedy)
    return provider, rest


class ProviderRegistry:
    """Providers by name: the caller's own, and the packaged ones, loaded on first use."""

    def __init__(
        self, env: Mapping[str, str], transport: Transport, own: Iterable[Provider] = ()
    ) -> None:
        self._env = env
        self._transport = transport
        self._own = {provider.name: provider for provider in own}
        self._providers = dict(self._own)

    def renew(self) -> None:
        """Makes providers read their settings anew; runs under way use the old ones."""
        self._providers = dict(self._own)

    def provider(self, model: str) -> tuple[Provider, str]:
        """Returns the provider of `provider:model`, and the model's own name."""
        provider, name = split_model(model)
        return self._named(provider), name

    def check(self, model: str) -> None:
        """Raises ConfigError if `provider:model` cannot be asked now."""
        provider, name = self.provider(model)
        provider.check(name)

    async def models(self) -> list[ModelInfo]:
        """Returns the models of every provider, in the providers' order."""
        every = dict.fromkeys((*names(), *self._providers))
        lists = await asyncio.gather(*(self._models_of(name) for name in every))
        known = {model.id for models in lists for model in models if model.available}
        return [
            model
            for name, models in zip(every, lists, strict=True)
            for model in models
            if f"{self._twin(name)}:{model.id.partition(':')[2]}" not in known
        ]

    def _twin(self, name: str) -> str:
        with suppress(AgentError):
            return abilities_of(self._named(name)).twin
        return ""

    async def trial(self, name: str, changes: Mapping[str, str]) -> list[str]:
        """Asks a provider for its models, with `changes` to the settings in force.

        Returns their names. Raises AgentError, with no secret in its text.
        """
        provider = load(name, {**self._env, **changes}, self._transport)
        if listing := abilities_of(provider).listing:
            if found := list(await listing()):
                return found
            words = f"{name} lists no model."
            raise ProviderError("config", words, "Load one there, or check the address.")
        models = await provider.models()
        usable = [model.id for model in models if model.available]
        if models and not usable:
            raise ProviderError("config", models[0].missing or "", models[0].remedy or "")
        return usable

    def check_settings(self, changes: Mapping[str, str | None]) -> None:
        """Raises ConfigError for a value that the provider which declares it cannot read."""
        env = {**self._env, **{name: value or "" for name, value in changes.items()}}
        for name in names():
            if not changes.keys() & {setting.name for setting in settings_of(name)}:
                continue
            try:
                load(name, env, self._transport).check("any")
            except ConfigError as error:
                if error.code not in ("missing_key", "missing_url", "offline", "cloud_refused"):
                    raise

    def hosts(self) -> list[Hosts]:
        """Returns the providers on whose servers the user installs models."""
        found: list[Hosts] = []
        for name in names():
            with suppress(AgentError):
                hosts = abilities_of(self._named(name)).hosts
                found += [hosts] if hosts else []
        return found

    async def own_models(self) -> list[ModelInfo]:
        """Returns the models on the user's own servers."""
        lists = await asyncio.gather(*(host.own_models() for host in self.hosts()))
        return [model for models in lists for model in models]

    async def _models_of(self, name: str) -> list[ModelInfo]:
        """Returns one provider's models; for a broken provider one entry that says so."""
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


LIST_SECONDS = 2.0
T = TypeVar("T")


async def fetched(
    codec: Any,
    transport: Transport,
    path: str,
    read: Callable[[Any], T],
    seconds: float = LIST_SECONDS,
    *,
    method: str = "GET",
    body: Any = None,
) -> T:
    """Returns what `read` makes of the JSON at a path of the codec's server.

    `read` may raise for a wrong shape. Raises AgentError, with no key in its text.
    """
    sent = None if body is None else json.dumps(body).encode()
    url = codec.endpoint.address(path)
    try:
        status, data = await transport.fetch(url, codec.headers(), sent, method, seconds)
        if status >= 400:
            raise codec.error(status, {}, data)
        return read(json.loads(data or b"null"))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        what = f"{codec.endpoint.name} did not answer as its API says."
        raise ProviderError("bad_response", what, "Check its address.") from error
    except ProviderError as error:
        raise without_secrets(codec.explain(error), codec.headers()) from error
