"""The switch as a table: every combination of what decides it, and what follows."""

from __future__ import annotations

from itertools import product

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.search.switch import (
    OFF,
    REJECTED,
    Facts,
    Review,
    SearchPath,
    choose_path,
    fallback,
    held_back,
    local_path,
    refused,
    search_options,
    tools_beside,
    withdrawn,
)
from searchloop.agent.types import SEARCHES, Capabilities, NativeSearch, Search
from tests.tables import each_row

BOOLS = (False, True)
# (searches by itself, takes tools, both in one request)
MODELS = tuple(
    Capabilities(native_search=native, tools=tools, tools_with_native_search=both)
    for native, tools, both in product(BOOLS, BOOLS, BOOLS)
)
REVIEWS = tuple(Review(*values) for values in product(BOOLS, BOOLS, BOOLS))
OPTIONS = NativeSearch(country="DE")
NATIVE = SearchPath("native:x", OPTIONS)

EVERY = tuple(
    Facts(search, "x", can, tools, offline, rejected, review)
    for search, can, tools, offline, rejected, review in product(
        SEARCHES, MODELS, BOOLS, BOOLS, BOOLS, REVIEWS
    )
)


def expected(facts: Facts) -> tuple[str, str | None]:
    """(path, code of its notice), written down a second time: as the promises say it."""
    can, review = facts.capabilities, facts.review
    clash = facts.tools and can.tools and not can.tools_with_native_search
    usable = can.native_search and not facts.offline
    if facts.search in ("off", "offline"):
        return facts.search, None
    if facts.search == "native" and (not usable or clash):
        return "error", "no_native_search"
    if facts.search == "local" or not usable:
        return "local", None
    if clash:
        return "local", "search_beside_tools"
    if facts.rejected and facts.search == "auto":
        return "local", None
    if review.queries or (review.private and not review.mixing):
        return "local", "native_search_held_back"
    left_out = facts.tools and not can.tools_with_native_search
    return "native:x", "tools_left_out" if left_out else None


def test_every_combination() -> None:
    """Every combination: one path each, or one error before anything is sent."""
    assert len(EVERY) == 5 * 8 * 2 * 2 * 2 * 8
    for facts in EVERY:
        name, code = expected(facts)
        if name == "error":
            with pytest.raises(ConfigError, match="own web search was asked for") as caught:
                choose_path(facts, OPTIONS)
            assert caught.value.code == code
            assert "local" in caught.value.remedy
            continue
        path = choose_path(facts, OPTIONS)
        assert (path.name, (path.notice or {}).get("code")) == (name, code), facts
        assert (path.native is not None) + path.local + (path == OFF) == 1
        assert path.native in (None, OPTIONS)


@each_row("path", [OFF, local_path(), local_path("tin"), NATIVE])
@each_row("search", SEARCHES)
def test_only_auto_falls_back_and_only_once(search: Search, path: SearchPath) -> None:
    """A rejected native search becomes ours where the user left the choice, with a notice; the
    path it falls back to is local, from which nothing falls back."""
    after = fallback(search, path, "This model refuses its search tool.")
    if search != "auto" or path != NATIVE:
        assert after is None
        return
    assert after is not None
    assert (after.name, after.local, after.native) == ("local", True, None)
    assert after.notice is not None
    assert after.notice["code"] == REJECTED
    assert "refuses its search tool. Using local search" in after.notice["message"]
    assert fallback(search, after, "again") is None


@each_row("can", MODELS)
def test_other_tools_stand_beside_a_search_only_where_the_model_can(can: Capabilities) -> None:
    """Beside our own search and none all tools stand; beside the model's own those it can take."""
    assert {tools_beside(path, can) for path in (OFF, local_path())} == {"all"}
    both = "all" if can.tools_with_native_search else "needed" if can.tools else "none"
    assert tools_beside(NATIVE, can) == both


@each_row("review", REVIEWS)
@each_row("search", SEARCHES)
def test_a_search_under_way_is_withdrawn(search: Search, review: Review) -> None:
    """The same rule holds at the start and in the middle of a turn, and the switch goes first."""
    held = held_back(review)
    assert held == (
        "review" if review.queries else "private" if review.private and not review.mixing else None
    )
    why = withdrawn(search, review)
    if search == "off":
        assert why is not None
        assert "switched off" in why
    else:
        assert (why is not None) is (held is not None)


def test_a_search_tool_is_refused_only_while_the_switch_is_off() -> None:
    """A tool that searches may run with every other setting of the switch."""
    assert {search: bool(refused(search)) for search in SEARCHES} == {
        "off": True,
        "offline": False,
        **dict.fromkeys(("auto", "native", "local"), False),
    }


def test_the_settings_become_options() -> None:
    """Lists and country; a bad one is named with what it should be."""
    env = {"SEARCH_ALLOWED_DOMAINS": " Example.org, gov.uk ,", "SEARCH_COUNTRY": "de"}
    assert search_options(env, max_searches=3) == NativeSearch(
        allowed_domains=("example.org", "gov.uk"), country="DE", max_searches=3
    )
    assert search_options({}) == NativeSearch()
    for name, value, words in (
        ("SEARCH_BLOCKED_DOMAINS", "a.example,https://b.example/x", "Entry 2"),
        ("SEARCH_ALLOWED_DOMAINS", "localhost", "Entry 1"),
        ("SEARCH_COUNTRY", "Germany", "two letters"),
    ):
        with pytest.raises(ConfigError, match=name) as caught:
            search_options({name: value})
        assert words in caught.value.remedy
