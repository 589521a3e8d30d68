"""What `searchloop setup` can set up: engines, readers and providers, each by its own settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from agent.backend import error_words
from agent.errors import AgentError, ConfigError
from agent.providers import load, names
from agent.settings import Environment, Setting, Settings
from agent.transport import Transport
from cli.backend import ask
from search_backend.engines import find_engines
from search_backend.readers import find_services

Kind = Literal["engine", "reader", "provider"]
# An address that is made for being asked, and where every reader finds text.
TEST_URL = "https://example.com/"


@dataclass(frozen=True, slots=True)
class Part:
    """One of them. `needs` are the settings it cannot work without."""

    kind: Kind
    name: str
    title: str
    settings: tuple[Setting, ...]
    needs: tuple[str, ...]

    @property
    def key(self) -> Setting | None:
        """The setting that holds its key, if it takes one."""
        return next((setting for setting in self.settings if setting.secret), None)

    def missing(self, env: Mapping[str, str]) -> list[Setting]:
        """Needed settings without a value under any of their names."""
        needed = [setting for setting in self.settings if setting.name in self.needs]
        return [s for s in needed if not any(env.get(n) for n in (s.name, *s.aliases))]


@dataclass(frozen=True, slots=True)
class Tested:
    """What one call of a part came to."""

    works: bool
    said: str


def find_parts(kind: Kind) -> dict[str, Part]:
    """Every part of this kind by name."""
    if kind == "provider":
        return {name: part for name in names() if (part := _provider(name)).settings}
    parts = {}
    for one in (find_engines() if kind == "engine" else find_services()).values():
        own = one.settings
        settings = tuple(Setting(s.name, s.help, s.default, s.aliases, s.secret) for s in own)
        parts[one.name] = Part(kind, one.name, one.title, settings, one.needs)
    return parts


def find_part(kind: Kind, name: str) -> Part:
    """The part of this name. Raises ConfigError naming those there are."""
    parts = find_parts(kind)
    if name not in parts:
        raise ConfigError(
            f"unknown_{kind}",
            f"There is no {kind} named {name[:60]!r}.",
            f"Use one of: {', '.join(parts)}.",
        )
    return parts[name]


def try_part(part: Part, url: str) -> Tested:
    """Asks the part once, as it will be asked later."""
    try:
        return _TESTS[part.kind](part, url)
    except AgentError as error:
        return Tested(False, f"{error.message} {error.remedy}".strip())


def _engine(part: Part, _url: str) -> Tested:
    answer = ask(
        "/api/web-search", {"query": "search engine", "max_results": 1, "engine": part.name}
    )
    if answer["status"] in ("ok", "empty"):
        found = "a result" if answer["results"] else "no result, and no fault either"
        return Tested(True, f"it answers, with {found}")
    failures = [error_words(attempt.get("error")) for attempt in answer["attempts"]]
    return Tested(False, next(filter(None, failures), answer["status"]))


def _reader(part: Part, url: str) -> Tested:
    page = ask("/api/open-page", {"url": url, "reader": part.name})
    if page["status"] == "ok":
        return Tested(True, f"it read {page['original_length']} characters of {url}")
    return Tested(False, error_words(page["error"]) or page["status"])


def _models(part: Part, _url: str) -> Tested:
    settings = Settings.load()

    async def listed() -> Tested:
        transport = Transport(offline=settings.offline)
        try:
            models = await load(part.name, settings.env, transport).models()
        finally:
            await transport.aclose()
        ready = [model for model in models if model.available]
        if ready:
            return Tested(True, f"it has {len(ready)} models, e.g. {ready[0].id}")
        why = next((f"{m.missing} {m.remedy or ''}".strip() for m in models if m.missing), "")
        return Tested(False, why or "it lists no model")

    return asyncio.run(listed())


_TESTS: Mapping[Kind, Callable[[Part, str], Tested]] = {
    "engine": _engine,
    "reader": _reader,
    "provider": _models,
}


def _provider(name: str) -> Part:
    module = import_module(f"agent.providers.{name.replace('-', '_')}")
    settings = tuple(module.SETTINGS)
    return Part("provider", name, name, settings, needs=())


def chosen(env: Environment, setting: str) -> list[str]:
    """The names in a list of parts."""
    return [part.strip().lower() for part in (env.get(setting) or "").split(",") if part.strip()]
