"""Settings of the backend come from a mapping, and a bad one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.engine_table import main, table
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Query, SearchBackendError, SettingError


def test_values_are_read(tmp_path: Path) -> None:
    """Without any setting the default chain, online, in the home given; blanks, case and repetition
    in the chain do not matter, and a key of somebody else's is not kept."""
    usual = SearchSettings.from_mapping({}, home=tmp_path)
    assert usual.engines[-1] == "library"
    assert "ddg" in usual.engines
    assert (usual.home, usual.offline) == (tmp_path, False)
    settings = SearchSettings.from_mapping(
        {
            "SEARCH_ENGINES": " Library, ddg,library ,",
            "SEARCHLOOP_HOME": str(tmp_path / "x"),
            "SEARCHLOOP_OFFLINE": "Yes",
            "UNRELATED_API_KEY": "secret-value",
        },
        home=tmp_path,
    )
    assert (settings.engines, settings.home) == (("library", "ddg"), tmp_path / "x")
    assert settings.offline
    assert "secret-value" not in f"{settings!r} {settings.keys}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEARCH_ENGINES", "ddg,nope"),
        ("SEARCHLOOP_OFFLINE", "perhaps"),
        ("SEARCH_READERS", "local,nope"),
        ("SEARCH_ALLOWED_DOMAINS", "a.example,*.b.example"),
        ("SEARCH_COUNTRY", "Germany"),
        ("SEARCH_ALLOW_RANGES", "198.18.0.0/15,127.0.0.0/8"),
    ],
)
def test_a_bad_setting_is_named(tmp_path: Path, name: str, value: str) -> None:
    """The error says which setting, and what would be right."""
    with pytest.raises(SettingError, match=name) as failure:
        SearchSettings.from_mapping({name: value}, home=tmp_path)
    assert failure.value.code == "config"
    assert failure.value.remedy


def test_engines_settings_go_by_all_their_names(tmp_path: Path) -> None:
    """Other tools' names for the same key work, the first one wins, and defaults are filled in."""
    keys = SearchSettings.from_mapping(
        {
            "BRAVE_SEARCH_API_KEY": " b-key ",
            "PERPLEXITYAI_API_KEY": "second",
            "PERPLEXITY_API_KEY": "first",
            "SEARXNG_QUERY_URL": "http://localhost:8080/search?q=<query>",
        },
        home=tmp_path,
    ).keys
    assert keys["BRAVE_API_KEY"] == "b-key"
    assert keys["PERPLEXITY_API_KEY"] == "first"
    assert keys["SEARXNG_URL"] == "http://localhost:8080/search?q=<query>"
    assert keys["BRAVE_BASE_URL"].startswith("https://api.search.brave.com/")
    assert "TAVILY_API_KEY" not in keys


def test_what_holds_for_every_request(tmp_path: Path) -> None:
    """Domains of the settings narrow those of a request, and a country fills a gap."""
    settings = SearchSettings.from_mapping(
        {
            "SEARCH_ALLOWED_DOMAINS": "Example.org, gov.uk",
            "SEARCH_BLOCKED_DOMAINS": "ads.example.org",
            "SEARCH_COUNTRY": "DE",
            "SEARCH_READERS": "Local, jina",
            "SEARCH_ALLOW_RANGES": "198.18.0.0/15",
        },
        home=tmp_path,
    )
    held = settings.held(Query("tea", allowed_domains=("docs.example.org", "uk", "b.example")))
    assert held.allowed_domains == ("docs.example.org", "gov.uk")
    assert held.blocked_domains == ("ads.example.org",)
    assert (held.country, settings.readers) == ("de", ("local", "jina"))
    assert settings.allow_ranges == ("198.18.0.0/15",)
    assert settings.held(Query("tea", country="fr")).country == "fr"
    with pytest.raises(SearchBackendError) as nothing:
        settings.held(Query("tea", allowed_domains=("b.example",)))
    assert nothing.value.code == "bad_domain"
    assert "example.org" in nothing.value.remedy


def test_the_table_of_engines_is_the_code_of_today() -> None:
    """The documents name the engines there are, with all names that a key goes by; whoever adds one
    runs scripts/engine_table.py."""
    assert main(["--check"]) == 0
    assert "`BRAVE_API_KEY` or `BRAVE_SEARCH_API_KEY`" in table()
