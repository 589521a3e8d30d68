"""The base of providers whose vendor wants a key, and the tables of their models.

`models.toml` in the folder of a provider says what its models can do.

`offered` holds the names of the picker, or names and titles, while the server gives no list; any
other name works too. `[listed]` tells which names of a server's list are models for conversations.
`[models]` holds what a model can do under a prefix of its name: the longest one counts, "" stands
for any name; `before` is what may stand in front. What several models can do stands once under
`[kinds]`, which `is` names.
"""

from __future__ import annotations

import tomllib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.providers import LIST_SECONDS, Abilities, Codec, HttpProvider, fetched
from searchloop.agent.providers._codec import CodecBase
from searchloop.agent.providers._wire import SAMPLING
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, ModelInfo, Request, StreamEvent
from searchloop.agent.types.attachments import IMAGES, PDF

T = TypeVar("T")
_ABILITIES = {field.name for field in fields(Capabilities)}


class ModelTable(Generic[T]):
    """The table beside `module`, read when it is first asked: `of(name)` is what `make` returns.

    `make` gets the capabilities of a model, and by name what else its entry holds.
    """

    def __init__(self, module: str, make: Callable[..., T]) -> None:
        self._file = Path(module).with_name("models.toml")
        self._make = make
        self.of: Callable[[str], T] = lru_cache(maxsize=256)(self._of)

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        return tomllib.loads(self._file.read_text("utf-8"))

    @property
    def offered(self) -> Mapping[str, str]:
        """Names of models and their titles."""
        offered = self._table["offered"]
        return offered if isinstance(offered, dict) else {name: name for name in offered}

    def answers_questions(self, name: str) -> bool:
        """Tells whether a model of the server's list belongs into a picker for conversations."""
        listed = self._table["listed"]
        words, prefixes = listed["without"], tuple(listed["prefixes"])
        return name.startswith(prefixes) and not any(word in name for word in words)

    def picked(self, found: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the models of a server's list for a picker; the names of most say their age."""
        if "listed" not in self._table:
            return found
        names = filter(self.answers_questions, sorted(found, reverse=True))
        return {name: found[name] for name in names}

    def _of(self, name: str) -> T:
        name = name.removeprefix(self._table.get("before", ""))
        models = self._table["models"]
        values = self._values(models[max(filter(name.startswith, models), key=len)])
        values["efforts"] = tuple(values.get("efforts", ()))
        able = Capabilities(**{k: v for k, v in values.items() if k in _ABILITIES})
        return self._make(able, **{k: v for k, v in values.items() if k not in _ABILITIES})

    def _values(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        kind = entry.get("is")
        known = self._values(self._table["kinds"][kind]) if kind else {}
        return {**known, **{k: v for k, v in entry.items() if k != "is"}}


def absent(name: str, title: str, local: bool, missing: str, remedy: str) -> ModelInfo:
    """Returns the only entry of a server that has no models to offer."""
    found = ModelInfo(f"{name}:", title, available=False, local=local)
    return replace(found, missing=missing, remedy=remedy)


class KeyedProvider:
    """Base of a `Provider` whose vendor requires a key.

    `codec` speaks its API, `known` is the table of its models, `list_path` the address of the
    server's list of them, `media` the types of files that its API takes. `options` maps our names
    of options to its own.
    """

    name: ClassVar[str]
    codec: ClassVar[type[CodecBase]]
    known: ClassVar[ModelTable[Any]]
    list_path: ClassVar[str] = "models"
    media: ClassVar[frozenset[str]] = IMAGES | {PDF}
    options: ClassVar[Mapping[str, str]] = SAMPLING

    @classmethod
    def create(cls, env: Mapping[str, str], transport: Transport) -> Self:
        """Returns the provider as the settings describe it."""
        key, url = env.get(cls.codec.key_setting) or "", env.get(cls.codec.setting) or ""
        return cls(cls.codec(key.strip(), url), transport)

    def __init__(self, codec: CodecBase, transport: Transport) -> None:
        self._codec = codec
        self._transport = transport
        self._http = HttpProvider(cast(Codec, codec), transport)
        self._ready = not codec.endpoint.needs_key
        options = (*self.options, "max_tokens", "effort")
        self.abilities = Abilities(options=options, files=self.takes, listing=self.listing)

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`. Raises nothing: any name is in the table."""
        able: Capabilities = self.known.of(model)
        return able

    async def takes(self, model: str) -> frozenset[str]:
        """See `Abilities.files`."""
        return self.media if self.capabilities(model).vision else frozenset()

    def check(self, model: str) -> None:
        if not self._ready:
            what = f"{self._codec.vendor} needs a key, and none is set."
            remedy = f"Set {self.codec.key_setting} in the environment or in .env."
            raise ConfigError("missing_key", what, remedy)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self._http.stream(request)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. What nobody could ask is marked: no key, a refused one, no server.

        A vendor that has a key and cannot be reached right now keeps its models.
        """
        lacks: dict[str, Any] = {}
        try:
            listed = await self.listing(LIST_SECONDS)
        except AgentError as error:
            listed = self.known.offered
            if error.code == "unauthorized" or not self._codec.endpoint.key:
                what = error.message if self._ready else self.codec.key_setting
                lacks = {"available": False, "missing": what, "remedy": error.remedy}
        return [
            ModelInfo(f"{self.name}:{name}", title, self.capabilities(name), **lacks)
            for name, title in listed.items()
        ]

    async def listing(self, seconds: float = 3 * LIST_SECONDS) -> Mapping[str, str]:
        """Returns names and titles as the server lists them. Raises AgentError."""
        self.check("")
        return await fetched(self._codec, self._transport, self.list_path, self._read_list, seconds)

    def _read_list(self, answer: Any) -> Mapping[str, str]:
        found = {str(m["id"]): str(m.get("display_name") or m["id"]) for m in answer["data"]}
        return self.known.picked(found)
