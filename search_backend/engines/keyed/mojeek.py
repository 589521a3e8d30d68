"""Mojeek: an index of its own, without tracking.

https://www.mojeek.com/support/api/search/request_parameters.html
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, get
from searchloop.search_backend.types import Query, SearchResult

TITLE = "Mojeek"
BASE = "https://api.mojeek.com"
SINCE = {"d": "day", "m": "month", "y": "year"}
SETTINGS = (
    Setting("MOJEEK_API_KEY", "Key of Mojeek", secret=True),
    Setting("MOJEEK_BASE_URL", "Another server of the Mojeek API", BASE),
)


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search; the API takes its key in the address only."""
    parameters: dict[str, object] = {
        "q": answers.with_sites(query),
        "t": query.max_results,
        "fmt": "json",
        "date": 1,
        "api_key": keys.get("MOJEEK_API_KEY", ""),
    }
    if since := SINCE.get(query.time_range or ""):
        parameters["since"] = since
    if query.language:
        parameters |= {"lb": query.language.upper(), "lbb": 100}
    if query.country:
        parameters |= {"rb": query.country.upper(), "rbb": 10}
    if query.safe_search:
        parameters["safe"] = int(query.safe_search != "off")
    return get(answers.base(keys, "MOJEEK_BASE_URL", BASE) + "/search", parameters)


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """response.{status, results[]}."""
    value = answers.checked(response, TITLE)
    inner = value.get("response") if isinstance(value, dict) else None
    if isinstance(inner, dict) and (said := inner.get("status")) not in (None, "OK"):
        raise answers.failure({"error": said}, TITLE, empty=True) or answers.misshapen(TITLE)
    found = answers.rows(value, "response", "results", title=TITLE)
    return answers.results(found, "mojeek", TITLE, "url", "title", "desc", "timestamp")


def cannot(query: Query) -> frozenset[str]:
    """It knows a day, a month and a year."""
    return frozenset({"time_range"} if query.time_range == "w" else ())


ENGINE = Engine(
    "mojeek",
    TITLE,
    needs=("MOJEEK_API_KEY",),
    applies=frozenset({"domains", "time_range", "country", "language", "safe_search"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
    cannot=cannot,
    untested=True,
)
