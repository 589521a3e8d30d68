"""The ddg engine over a fake client: queries it sends, failures it tells apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

from searchloop.search_backend.engines import Access
from searchloop.search_backend.engines.ddg import ENGINE, Rows, make_engine, with_sites
from searchloop.search_backend.library import Library
from searchloop.search_backend.types import EngineError, Query


class FakeClient:
    """What `ddgs.DDGS` looks like to the engine."""

    def __init__(self, answer: Callable[[], Rows]) -> None:
        self.answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def text(self, query: str, **options: Any) -> Rows:
        """Answer, and keep what was asked."""
        self.calls.append((query, options))
        return self.answer()


def failing(error: Exception) -> Callable[[], Rows]:
    """An answer that raises."""

    def answer() -> Rows:
        raise error

    return answer


@pytest.fixture
def access(tmp_path: Path) -> Access:
    """Nothing to use."""
    return Access({}, Library(tmp_path, dict))


def test_rows_become_results(access: Access) -> None:
    """Title, address and text are taken over; rows without a web address are not."""
    rows = [
        {"title": "Tea", "href": "https://example.org/tea", "body": "About tea."},
        {"title": "Odd", "href": "javascript:alert(1)", "body": ""},
        {"title": "", "href": "https://example.org/b", "body": None},
        {"body": "no address"},
    ]
    client = FakeClient(lambda: rows)
    results = make_engine(lambda: client).search(
        Query("tea", max_results=5, time_range="w"), access
    )
    assert [(r.title, r.url, r.snippet, r.source) for r in results] == [
        ("Tea", "https://example.org/tea", "About tea.", "ddg"),
        ("https://example.org/b", "https://example.org/b", "", "ddg"),
    ]
    query, options = client.calls[0]
    assert (query, options["max_results"], options["timelimit"]) == ("tea", 5, "w")
    assert "auto" not in options["backend"]


@pytest.mark.parametrize(
    ("wishes", "asked", "left"),
    [
        ({}, ["duckduckgo", "brave", "mojeek"], set()),
        ({"time_range": "w"}, ["duckduckgo", "brave"], set()),
        ({"country": "de"}, ["duckduckgo", "mojeek"], set()),
        ({"country": "de", "time_range": "w"}, ["duckduckgo"], set()),
        ({"safe_search": "strict"}, ["brave", "mojeek"], set()),
        ({"safe_search": "moderate"}, ["brave"], set()),
        ({"safe_search": "strict", "time_range": "d"}, ["brave"], set()),
        ({"safe_search": "strict", "language": "de"}, ["mojeek"], set()),
        ({"safe_search": "strict", "time_range": "d", "country": "de"}, ["brave"], {"country"}),
        ({"safe_search": "moderate", "language": "de"}, ["brave"], {"language"}),
    ],
)
def test_only_sites_that_respect_the_wishes_are_asked(
    access: Access, wishes: dict[str, Any], asked: list[str], left: set[str]
) -> None:
    """What none of them respects together is told as not applied; safe search comes first."""
    client = FakeClient(list)
    engine = make_engine(lambda: client)
    assert engine.search is not None
    query = Query("tea", **wishes)
    engine.search(query, access)
    assert client.calls[0][1]["backend"].split(",") == asked
    assert engine.applies - engine.respects(query) == left


@pytest.mark.parametrize(
    ("country", "language", "code"),
    [
        ("de", None, "de-de"),
        ("gb", "en", "uk-en"),
        ("gb", None, "uk-en"),
        ("at", None, "at-de"),
        (None, "de", "de-de"),
        (None, "en", "us-en"),
        (None, "ja", "jp-jp"),
        ("ch", "fr", "ch-fr"),
        ("br", None, "br-pt"),
    ],
)
def test_places_and_languages_become_regions(
    access: Access, country: str | None, language: str | None, code: str
) -> None:
    """The package wants both in one code, and breaks without the hyphen."""
    client = FakeClient(list)
    engine = make_engine(lambda: client)
    assert engine.search is not None
    engine.search(Query("tea", country=country, language=language), access)
    assert client.calls[0][1]["region"] == code


def test_domains_become_site_terms() -> None:
    """The engine's only way to name domains is inside the query."""
    query = Query("tea", allowed_domains=("a.org", "b.org"), blocked_domains=("c.org",))
    assert with_sites(query) == "tea (site:a.org OR site:b.org) -site:c.org"
    assert with_sites(Query("tea", allowed_domains=("a.org",))) == "tea site:a.org"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (DDGSException("No results found."), "blocked", "does not say which"),
        (RatelimitException("202"), "rate", "rate"),
        (TimeoutException("operation timed out"), "network", "could not be reached"),
        (DDGSException("DNSError: DNSError('error sending request')"), "network", "resolved"),
        (DDGSException("ConnectError: refused"), "network", "could not be reached"),
        (ValueError("bad markup"), "parse", "ValueError"),
        (ImportError("ddgs"), "config", "missing"),
    ],
)
def test_failures_are_told_apart(access: Access, error: Exception, kind: str, words: str) -> None:
    """Each cause has its kind, one sentence and a remedy."""
    with pytest.raises(EngineError, match=words) as failure:
        make_engine(lambda: FakeClient(failing(error))).search(Query("tea"), access)
    assert failure.value.kind == kind
    assert failure.value.remedy


def test_the_engine_itself_is_remote_and_keyless() -> None:
    """It is asked by default, and never when offline."""
    assert (ENGINE.name, ENGINE.remote, ENGINE.needs) == ("ddg", True, ())
