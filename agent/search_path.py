"""The switch: which way a turn searches the web, decided once, before anything is sent.

`off` offers no search at all. `native` is the model's own search, `local` is ours, and `auto` is
native where the model has it and local where not. There is exactly one path in a turn: a request
never holds the provider's search and our `web_search` together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.errors import ConfigError
from agent.models import Capabilities
from agent.types import NativeSearch, Search

SEARCHES: tuple[Search, ...] = ("auto", "native", "local", "off")


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The way taken. `name` is what is stored and shown: off, native:PROVIDER, local:ENGINE.

    `notice` is the data of an event, where the user should know why it is this way.
    """

    name: str
    native: NativeSearch | None = None
    local: bool = False
    notice: Mapping[str, str] | None = None


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
    beside = tools and not capabilities.tools_with_native_search
    if search == "local" or hindrance:
        free = _hindrance(provider, capabilities, False, offline) is None
        return local_path(notice=_OURS if search == "auto" and beside and free else None)
    return SearchPath(f"native:{provider}", options, notice=_ALONE if beside else None)


def _hindrance(provider: str, capabilities: Capabilities, tools: bool, offline: bool) -> str | None:
    """Why the model's own search cannot be used, or None."""
    if offline:
        return "SEARCHLOOP_OFFLINE is set"
    if not capabilities.native_search:
        return f"this {provider} model has none"
    if tools and capabilities.tools and not capabilities.tools_with_native_search:
        return f"this {provider} model cannot search and use other tools in one turn"
    return None


def local_path(engine: str | None = None, notice: Mapping[str, str] | None = None) -> SearchPath:
    """Our own search; `engine` is the one that is asked first, when that is known."""
    return SearchPath(f"local:{engine}" if engine else "local", local=True, notice=notice)


_OURS = {
    "code": "search_beside_tools",
    "message": "This model cannot search by itself and use other tools in one turn. "
    "Using local search for this turn.",
    "remedy": "Turn the other tools off, or choose another model, to let it search by itself.",
}
_ALONE = {
    "code": "tools_left_out",
    "message": "This model takes no tools: it answers with its own search alone.",
    "remedy": "Choose another model to use the other tools.",
}
