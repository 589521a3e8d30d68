"""DuckDuckGo's result page for browsers without scripts: no key, no price, no promise.

A refusal is told as what it is: DuckDuckGo answers 202 or 403 with a challenge, or 429.
"""

from __future__ import annotations

from urllib.parse import urlencode, urljoin

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting
from searchloop.search_backend.plugin.answers import (
    base,
    challenged,
    misshapen,
    proof_wanted,
    refusal,
    results,
    with_sites,
)
from searchloop.search_backend.plugin.markup import Markup
from searchloop.search_backend.types import Query, SearchResult

NAME, TITLE = "ddg", "DuckDuckGo"
ADDRESS = ("DDG_BASE_URL", "https://html.duckduckgo.com/html")
MARKUP = Markup(
    ".result:not(.result--ad):not(.result--no-result)",
    {"url": "a.result__a@href", "title": "a.result__a", "snippet": ".result__snippet"},
    empty=".no-results, .result--no-result",
)
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "Mozilla/5.0 (compatible; searchloop/0.1)",
    "Accept": "text/html",
}


def _table(pairs: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in pairs.split())


# DuckDuckGo wants a place and a language in one code. These are the usual partners of a code that
# is not its own partner, and the codes that it writes in its own way.
LANGUAGES = _table(
    "us:en uk:en au:en ca:en nz:en ie:en in:en za:en sg:en ph:en at:de ch:de mx:es ar:es cl:es "
    "co:es pe:es be:nl br:pt cn:zh tw:tzh hk:tzh se:sv dk:da cz:cs gr:el ua:uk il:he ee:et"
)
PLACES = _table(
    "en:us zh:cn sv:se da:dk cs:cz el:gr uk:ua he:il et:ee ja:jp ko:kr ar:xa nb:no ca:ct"
)
OWN_PLACES, OWN_LANGUAGES = _table("gb:uk"), _table("ja:jp ko:kr nb:no")


def request(query: Query, keys: Keys) -> HttpRequest:
    """The form of the page, as its own button sends it."""
    fields = {"q": with_sites(query), "b": "", "kl": region(query), "df": query.time_range or ""}
    url = base(keys, *ADDRESS) + "/"
    return HttpRequest("POST", url, _HEADERS, urlencode(fields).encode())


def region(query: Query) -> str:
    """Returns PLACE-LANGUAGE, "" without a wish; the usual partner stands for the missing one."""
    place, language = query.country or "", query.language or ""
    if not (place or language):
        return ""
    place = OWN_PLACES.get(place, place) or PLACES.get(language, language)
    language = OWN_LANGUAGES.get(language, language) or LANGUAGES.get(place, place)
    return f"{place}-{language}"


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """The results without advertisements. Only a page that says so has found nothing."""
    if not 200 <= response.status < 300:
        raise refusal(response, TITLE)
    if response.rows is None and (response.status == 202 or challenged(response)):
        raise proof_wanted(TITLE, response.status)
    if response.rows is None:
        raise misshapen(TITLE)
    found = ({**row, "url": urljoin(ADDRESS[1], row["url"])} for row in response.rows)
    return results(found, NAME, TITLE, "url", "title", "snippet")


ENGINE = Engine(
    *(NAME, TITLE),
    applies=frozenset({"domains", "time_range", "country", "language"}),
    wire=Wire(request, parse, markup=MARKUP),
    slow=True,
    settings=(Setting(ADDRESS[0], f"Another server of {TITLE}", ADDRESS[1]),),
)
