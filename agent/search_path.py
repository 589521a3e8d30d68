"""The switch: which way a turn searches the web, decided once, before anything is sent.

`off` offers no search at all. `native` is the model's own search, `local` is ours, and `auto` is
native where the model has it and local where not. There is exactly one path in a turn: a request
never holds the provider's search and our `web_search` together.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import ConfigError
from agent.models import Capabilities
from agent.types import NativeSearch, Search

SEARCHES: tuple[Search, ...] = ("auto", "native", "local", "off")


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The way taken. `name` is what is stored and shown: off, native:PROVIDER, local:ENGINE."""

    name: str
    native: NativeSearch | None = None
    local: bool = False


OFF = SearchPath("off")
ANYWHERE = NativeSearch()


def choose_path(
    search: Search,
    provider: str,
    capabilities: Capabilities,
    *,
    options: NativeSearch = ANYWHERE,
    tools: bool = False,
    offline: bool = False,
) -> SearchPath:
    """The path for one turn. `tools` says that other tools are offered in this turn.

    Raises ConfigError for `native` where it cannot be, before anything is sent.
    """
    if search == "off":
        return OFF
    hindrance = _hindrance(provider, capabilities, tools, offline)
    if search == "native" and hindrance:
        raise ConfigError(
            "no_native_search",
            f"The model's own web search was asked for, but {hindrance}.",
            "Choose local search, which is our own, or auto to let searchloop choose.",
        )
    if search == "local" or hindrance:
        return local_path()
    return SearchPath(f"native:{provider}", native=options)


def _hindrance(provider: str, capabilities: Capabilities, tools: bool, offline: bool) -> str | None:
    """Why the model's own search cannot be used, or None."""
    if offline:
        return "SEARCHLOOP_OFFLINE is set"
    if not capabilities.native_search:
        return f"this {provider} model has none"
    if tools and not capabilities.tools_with_native_search:
        return f"this {provider} model cannot search and use other tools in one turn"
    return None


def local_path(engine: str | None = None) -> SearchPath:
    """Our own search; `engine` is the one that is asked first, when that is known."""
    return SearchPath(f"local:{engine}" if engine else "local", local=True)
