"""The ddg engine: the form that it sends, and what it makes of each answer."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from searchloop.search_backend.engines.ddg import ENGINE, region, request
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.types import EngineError, Query
from tests.search_backend.search.engine_cases import DDG_PAGE, parsed
from tests.tables import cut, each_row


def test_results_are_read_from_the_page() -> None:
    """Title, address and text without markup; advertisements are left out."""
    results = parsed(ENGINE, HttpResponse(200, {}, DDG_PAGE.encode()), {})
    assert [(r.title, r.snippet, r.source) for r in results] == [
        ("Green tea", "Tea & water.", "ddg"),
        ("Black tea", "", "ddg"),
    ]
    assert results[0].url.startswith("https://duckduckgo.com/l/?uddg=https%3A%2F%2Ftea1.example")
    assert results[1].url == "https://tea2.example/"


def test_the_form_names_sites_time_and_region() -> None:
    """It goes to DuckDuckGo, or to the address of the setting, and nowhere else."""
    query = Query("tea", allowed_domains=("a.org",), time_range="w", country="at")
    sent = request(query, {"DDG_BASE_URL": "http://127.0.0.1:9/x/"})
    assert (sent.method, sent.url) == ("POST", "http://127.0.0.1:9/x/")
    fields = {name: values[0] for name, values in parse_qs(sent.body.decode()).items()}
    assert fields == {"q": "tea site:a.org", "df": "w", "kl": "at-de"}
    assert request(Query("tea"), {}).url == "https://html.duckduckgo.com/html/"
    assert (ENGINE.name, ENGINE.remote, ENGINE.needs) == ("ddg", True, ())


REGIONS = "de- de-de gb-en uk-en gb- uk-en at- at-de -de de-de -en us-en -ja jp-jp ch-fr ch-fr"
PAIRS = cut(f"{REGIONS} br- br-pt")


@each_row(("wish", "code"), [("-", ""), *zip(PAIRS[::2], PAIRS[1::2], strict=True)])
def test_places_and_languages_become_regions(wish: str, code: str) -> None:
    """DuckDuckGo wants both in one code."""
    country, _, language = wish.partition("-")
    assert region(Query("tea", country=country or None, language=language or None)) == code


CHALLENGE = "<html><body><div class='anomaly-modal'>Select all squares with a duck.</div></body>"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (202, "", "blocked"),
        (200, CHALLENGE, "blocked"),
        (403, CHALLENGE, "blocked"),
        (429, "", "rate"),
        (500, "", "network"),
        (200, "<html><body>Another page.</body></html>", "parse"),
        (200, '<div class="result"><a class="result__a" href="x:y">Tea</a></div>', "parse"),
    ],
)
def test_a_refusal_is_never_nothing_found(status: int, body: str, kind: str) -> None:
    """Each cause has its kind, one sentence and a remedy."""
    with pytest.raises(EngineError) as failure:
        parsed(ENGINE, HttpResponse(status, {}, body.encode()), {})
    assert (failure.value.kind, bool(failure.value.remedy)) == (kind, True)


def test_nothing_found_is_what_the_page_says() -> None:
    """Only its own words for it count."""
    none = '<div class="result result--no-result"><div class="no-results">No results.</div></div>'
    assert parsed(ENGINE, HttpResponse(200, {}, none.encode()), {}) == []
