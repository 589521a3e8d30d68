"""The switch: which way a turn searches the web, decided once, before anything is sent.

`off` offers no search at all. `native` is the model's own search, `local` is ours, and `auto` is
native where the model has it and local where not. There is exactly one path in a turn: a request
never holds the provider's search and our `web_search` together.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import ConfigError
from agent.types import Capabilities, NativeSearch, Search

SEARCHES: tuple[Search, ...] = ("auto", "native", "local", "off")


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The way taken. `name` is what is stored and shown: off, native:PROVIDER, local:ENGINE."""

    name: str
    native: NativeSearch | None = None
    local: bool = False


OFF = SearchPath("off")


def choose_path(
    search: Search, provider: str, capabilities: Capabilities, *, offline: bool
) -> SearchPath:
    """The path for one turn.

    Raises ConfigError for `native` on a model without it, before anything is sent.
    """
    if search == "off":
        return OFF
    native = capabilities.native_search and not offline
    if search == "native" and not native:
        why = "SEARCHLOOP_OFFLINE is set" if offline else f"this {provider} model has none"
        raise ConfigError(
            "no_native_search",
            f"The model's own web search was asked for, but {why}.",
            "Use --search local for our own search, or --search auto to let searchloop choose.",
        )
    if search in ("auto", "native") and native:
        return SearchPath(f"native:{provider}", native=NativeSearch())
    return local_path()


def local_path(engine: str | None = None) -> SearchPath:
    """Our own search; `engine` is the one that is asked first, when that is known."""
    return SearchPath(f"local:{engine}" if engine else "local", local=True)
