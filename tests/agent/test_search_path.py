"""The switch: one path a turn, decided before anything is sent."""

from __future__ import annotations

import pytest

from agent.errors import ConfigError
from agent.models import Capabilities
from agent.search_path import OFF, choose_path, local_path
from agent.types import Search

ABLE = Capabilities(native_search=True)
UNABLE = Capabilities(native_search=False)
BOTH = Capabilities(native_search=True, tools_with_native_search=True)


@pytest.mark.parametrize(
    ("search", "can", "offline", "name"),
    [
        ("off", ABLE, False, "off"),
        ("off", UNABLE, True, "off"),
        ("auto", ABLE, False, "native:vendor"),
        ("auto", BOTH, False, "native:vendor"),
        ("auto", UNABLE, False, "local"),
        ("auto", ABLE, True, "local"),
        ("native", ABLE, False, "native:vendor"),
        ("local", ABLE, False, "local"),
        ("local", UNABLE, True, "local"),
    ],
)
def test_the_table(search: Search, can: Capabilities, offline: bool, name: str) -> None:
    """auto is native where the model has it, else local; offline there is no native search."""
    path = choose_path(search, "vendor", can, offline=offline)
    assert path.name == name
    assert (path.native is not None) is name.startswith("native")
    assert path.local is (name == "local")


@pytest.mark.parametrize(("can", "offline"), [(UNABLE, False), (ABLE, True)])
def test_native_without_it_is_an_error(can: Capabilities, offline: bool) -> None:
    """Asking for what the model lacks is refused in words, never replaced silently."""
    with pytest.raises(ConfigError) as caught:
        choose_path("native", "vendor", can, offline=offline)
    assert caught.value.code == "no_native_search"
    assert "local" in caught.value.remedy


def test_exactly_one_path() -> None:
    """A path is the provider's search, or ours, or none; there is no way to have both."""
    for path in (OFF, local_path("tin"), choose_path("auto", "vendor", BOTH, offline=False)):
        assert (path.native is not None) + path.local + (path == OFF) == 1


def test_the_engine_is_named_when_it_is_known() -> None:
    """The stored path says which engine is asked first."""
    assert local_path("tin").name == "local:tin"
    assert local_path(None).name == "local"


def told(search: Search, can: Capabilities, **how: bool) -> tuple[str, str | None]:
    """(path, code of its notice) of a turn with other tools."""
    path = choose_path(search, "x", can, tools=True, **how)
    return path.name, (path.notice or {}).get("code")


def test_a_model_that_cannot_combine_searches_locally_beside_other_tools() -> None:
    """Other tools and a search of its own in one turn, where that is refused: ours is taken, and
    the user is told; not when they asked for ours, or when it would be ours anyhow."""
    alone = Capabilities(native_search=True, tools_with_native_search=False)
    assert choose_path("auto", "x", alone).name == "native:x"
    assert choose_path("auto", "x", alone).notice is None
    assert told("auto", alone) == ("local", "search_beside_tools")
    assert told("local", alone) == told("auto", alone, offline=True) == ("local", None)
    assert told("auto", UNABLE) == ("local", None)
    with pytest.raises(ConfigError, match="cannot search and use other tools"):
        choose_path("native", "x", alone, tools=True)
    assert told("auto", BOTH) == ("native:x", None)


@pytest.mark.parametrize("search", ["auto", "native"])
def test_a_model_without_tools_goes_on_searching_by_itself(search: Search) -> None:
    """Ours is a tool, too: such a model searches by itself, and the others are left out."""
    can = Capabilities(tools=False, native_search=True)
    assert told(search, can) == ("native:x", "tools_left_out")
