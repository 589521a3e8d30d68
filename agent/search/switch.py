"""The switch: decides how a turn searches the web, before anything is sent.

`off` offers no search, `native` is the provider's own, `local` is ours, `auto` is native where the
model has it and local elsewhere, `offline` is ours within this machine: the library and pages
already read. A turn takes exactly one path: no request holds the provider's
search and our `web_search` together. All decisions are made here, by pure functions of values:
`choose_path` and `fallback` for a turn's path, `tools_beside` for its other tools, `held_back`,
`withdrawn` and `refused` for the reasons against a search. `search_options` reads the sites and the
country that the settings demand for every search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Setting
from searchloop.agent.types import ANYWHERE, Capabilities, NativeSearch, Search

Held = Literal["review", "private"]
REJECTED = "native_search_rejected"  # the code of the notice about a fallback


class SearchPath(NamedTuple):
    """The path of a turn.

    `name` is stored and shown: off, native:PROVIDER, offline, local or local:ENGINE.

    `notice` is the data of a `notice` event, where the user should know why it is this path.
    """

    name: str
    native: NativeSearch | None = None
    local: bool = False
    notice: Mapping[str, str] | None = None


OFF, OFFLINE = SearchPath("off"), SearchPath("offline", local=True)


class Review(NamedTuple):
    """The guard's facts about queries that the user cannot see before they leave.

    `queries`: the user wants to see each query first. `private`: the user's own data is in the
    conversation. `mixing`: the user's policy allows searches in such a conversation.
    """

    queries: bool = False
    private: bool = False
    mixing: bool = False


class Facts(NamedTuple):
    """The facts that decide the path of a turn: the user's switch, the model, the guard's review.

    `tools`: the turn offers other tools. `rejected`: the provider has refused its own search for
    this model before.
    """

    search: Search
    provider: str
    capabilities: Capabilities
    tools: bool = False
    offline: bool = False
    rejected: bool = False
    review: Review = Review()


def choose_path(facts: Facts, options: NativeSearch = ANYWHERE) -> SearchPath:
    """Returns the path of one turn; raises ConfigError for `native` where it cannot be."""
    if facts.search in ("off", "offline"):
        return OFF if facts.search == "off" else OFFLINE
    hindrance = _hindrance(facts, beside=facts.tools)
    if facts.search == "native" and hindrance:
        what = f"The model's own web search was asked for, but {hindrance}."
        remedy = "Choose local search, which is our own, or auto to let searchloop choose."
        raise ConfigError("no_native_search", what, remedy)
    alone = facts.tools and not facts.capabilities.tools_with_native_search
    if facts.search == "local" or hindrance:
        combined = facts.search == "auto" and alone and _hindrance(facts, beside=False) is None
        return local_path(notice=_OURS if combined else None)
    if facts.rejected and facts.search == "auto":  # who asks for `native` is told by the provider
        return local_path()
    if held := held_back(facts.review):
        return local_path(notice=_held_notice(held))
    return SearchPath(f"native:{facts.provider}", options, notice=_ALONE if alone else None)


def _hindrance(facts: Facts, *, beside: bool) -> str | None:
    """Returns why the model's own search cannot be used (`beside` other tools), or None."""
    can = facts.capabilities
    if facts.offline:
        return "SEARCHLOOP_OFFLINE is set"
    if not can.native_search:
        return f"this {facts.provider} model has none"
    if beside and can.tools and not can.tools_with_native_search:
        return f"this {facts.provider} model cannot search and use other tools in one turn"
    return None


def local_path(engine: str | None = None, notice: Mapping[str, str] | None = None) -> SearchPath:
    """Returns the path of our own search; `engine` is the first of its chain, where known."""
    return SearchPath(f"local:{engine}" if engine else "local", local=True, notice=notice)


def fallback(search: Search, path: SearchPath, rejection: str) -> SearchPath | None:
    """Returns the path after a 400 that rejects the native tool; None when that error stands.

    Only `auto` falls back, and only from a native path, so a turn falls back once.
    """
    if search != "auto" or path.native is None:
        return None
    message = f"{rejection} Using local search for this turn."
    remedy = "Choose local search to avoid the extra request."
    return local_path(notice={"code": REJECTED, "message": message, "remedy": remedy})


def tools_beside(path: SearchPath, capabilities: Capabilities) -> Literal["all", "needed", "none"]:
    """Returns which other tools a turn on this path may offer.

    `needed` leaves out the spare ones, which are not worth the model's own search.
    """
    if path.native is None or capabilities.tools_with_native_search:
        return "all"
    return "needed" if capabilities.tools else "none"


def held_back(review: Review) -> Held | None:
    """Returns why a provider may not search by itself, or None where it may."""
    if review.queries:
        return "review"
    return "private" if review.private and not review.mixing else None


def withdrawn(search: Search, review: Review) -> str | None:
    """Says why a provider that was searching must stop, for the user; None where it may go on.

    The user can turn the switch off in the middle of a turn, and a tool can read a private file.
    """
    if search == "off":
        return "Web search was switched off; the rest of this answer is without it."
    if held := held_back(review):
        return f"{_UNSEEN[held]}: the rest of this answer is without web search."
    return None


def refused(search: Search) -> str | None:
    """Says why a search tool may not run, for the model; None where it may."""
    return "The user has switched web search off. Nothing was sent." if search == "off" else None


_UNSEEN: Mapping[Held, str] = {
    "review": "You want to see what is looked up before it leaves, and what the model searches for "
    "by itself cannot be shown first",
    "private": "Your own data is in this conversation, and what the model searches for by itself "
    "cannot be shown first",
}
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


def _held_notice(held: Held) -> Mapping[str, str]:
    return {
        "code": "native_search_held_back",
        "message": f"{_UNSEEN[held]}. Using local search for this turn.",
        "remedy": "Change the rules for approvals to let the model search by itself.",
    }


SETTINGS: tuple[Setting, ...] = (
    Setting("SEARCH_ALLOWED_DOMAINS", "Search only these sites, a comma list: example.org,gov.uk"),
    Setting("SEARCH_BLOCKED_DOMAINS", "Never use these sites, a comma list"),
    Setting("SEARCH_COUNTRY", "Country that results are meant for, two letters: DE"),
)
_DOMAIN = re.compile(r"(?!-)[^\s/:@*?#,]+\.[^\s/:@*?#,]+")


def search_options(env: Mapping[str, str], *, max_searches: int | None = None) -> NativeSearch:
    """Reads the options from the settings. Raises ConfigError naming the one that is wrong."""
    country = (env.get("SEARCH_COUNTRY") or "").strip().upper()
    if country and not re.fullmatch(r"[A-Z]{2}", country):
        raise _wrong("SEARCH_COUNTRY", country, "Write two letters, for example DE.")
    return NativeSearch(
        allowed_domains=domains(env.get("SEARCH_ALLOWED_DOMAINS"), "SEARCH_ALLOWED_DOMAINS"),
        blocked_domains=domains(env.get("SEARCH_BLOCKED_DOMAINS"), "SEARCH_BLOCKED_DOMAINS"),
        country=country or None,
        max_searches=max_searches,
    )


def domains(text: str | None, name: str) -> tuple[str, ...]:
    """Splits a comma list of host names. Raises ConfigError with the place of a wrong entry."""
    found = tuple(part.strip().lower() for part in (text or "").split(",") if part.strip())
    for place, domain in enumerate(found, 1):
        if not _DOMAIN.fullmatch(domain):
            raise _wrong(name, domain, f"Entry {place} is not a host name such as example.org.")
    return found


def _wrong(name: str, value: str, remedy: str) -> ConfigError:
    return ConfigError("bad_search_option", f"{name} cannot be {value!r}.", remedy)
