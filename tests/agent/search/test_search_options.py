"""What every search is held to: from the settings into the request, on either path."""

from __future__ import annotations

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.search.switch import search_options
from searchloop.agent.types import NativeSearch


def test_the_settings_become_options() -> None:
    """Lists and country."""
    env = {"SEARCH_ALLOWED_DOMAINS": " Example.org, gov.uk ,", "SEARCH_COUNTRY": "de"}
    assert search_options(env, max_searches=3) == NativeSearch(
        allowed_domains=("example.org", "gov.uk"), country="DE", max_searches=3
    )
    assert search_options({}) == NativeSearch()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SEARCH_BLOCKED_DOMAINS", "a.example,https://b.example/x", "Entry 2"),
        ("SEARCH_ALLOWED_DOMAINS", "localhost", "Entry 1"),
        ("SEARCH_COUNTRY", "Germany", "two letters"),
    ],
)
def test_a_bad_option_is_named(name: str, value: str, words: str) -> None:
    """The setting, what it was, and what it should be."""
    with pytest.raises(ConfigError) as caught:
        search_options({name: value})
    assert name in caught.value.message
    assert words in caught.value.remedy
