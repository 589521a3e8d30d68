"""What every search is held to: from the settings into the request, on either path."""

from __future__ import annotations

import pytest

from agent.errors import ConfigError
from agent.search_options import search_options
from agent.types import NativeSearch


def test_the_settings_become_options() -> None:
    """Lists, country, depth and cached pages only."""
    env = {
        "SEARCH_ALLOWED_DOMAINS": " Example.org, gov.uk ,",
        "SEARCH_COUNTRY": "de",
        "SEARCH_CONTEXT_SIZE": "low",
        "SEARCH_CACHED_ONLY": "1",
    }
    assert search_options(env, max_searches=3) == NativeSearch(
        allowed_domains=("example.org", "gov.uk"),
        context_size="low",
        country="DE",
        external_access=False,
        max_searches=3,
    )
    assert search_options({}) == NativeSearch()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SEARCH_BLOCKED_DOMAINS", "a.example,https://b.example/x", "Entry 2"),
        ("SEARCH_ALLOWED_DOMAINS", "localhost", "Entry 1"),
        ("SEARCH_COUNTRY", "Germany", "two letters"),
        ("SEARCH_CONTEXT_SIZE", "huge", "low, medium, high"),
    ],
)
def test_a_bad_option_is_named(name: str, value: str, words: str) -> None:
    """The setting, what it was, and what it should be."""
    with pytest.raises(ConfigError) as caught:
        search_options({name: value})
    assert name in caught.value.message
    assert words in caught.value.remedy
