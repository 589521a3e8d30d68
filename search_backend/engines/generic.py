"""Any search API that answers in JSON: the address and the places of the fields are settings.

With {query} in SEARCH_ENDPOINT it is asked by GET, and {count}, {time_range}, {country} and
{language} are filled in as well; without, by POST of {"query", "max_results"}. SEARCH_FIELDS says
where things are, as paths with dots; its entry `key_header` names the header for the key.
"""

from __future__ import annotations

from urllib.parse import quote_plus

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, post
from searchloop.search_backend.plugin.markup import MOST_ROWS
from searchloop.search_backend.types import EngineError, Query, SearchResult

TITLE = "Your search API"
FIELDS = "results=results,url=url,title=title,snippet=snippet,published=published"
SETTINGS = (
    Setting("SEARCH_ENDPOINT", "Any search API that answers in JSON; may hold {query} and {count}"),
    Setting("SEARCH_API_KEY", "Key for SEARCH_ENDPOINT, sent as a Bearer token", secret=True),
    Setting(
        "SEARCH_FIELDS",
        "Where its JSON has them, and another header for the key: key_header=X-API-Key",
        FIELDS,
    ),
)
# Tried in turn behind the places that the setting names.
USUAL = {
    "url": "url link href",
    "title": "title name",
    "snippet": "snippet content description body text",
    "published": "published published_date publishedDate date",
}


def request(query: Query, keys: Keys) -> HttpRequest:
    """By GET or POST, as the endpoint is written."""
    endpoint = keys.get("SEARCH_ENDPOINT", "")
    text = answers.with_sites(query)
    values = {
        "query": text,
        "count": str(query.max_results),
        "time_range": query.time_range or "",
        "country": query.country or "",
        "language": query.language or "",
    }
    url = endpoint
    for name, value in values.items():
        url = url.replace("{" + name + "}", quote_plus(value))
    url = answers.base({"SEARCH_ENDPOINT": url}, "SEARCH_ENDPOINT", "")
    if "{query}" in endpoint:
        return HttpRequest("GET", url, _key(keys))
    return post(url, {"query": text, "max_results": query.max_results}, _key(keys))


def parse(response: HttpResponse, keys: Keys) -> list[SearchResult]:
    """The results at the places that SEARCH_FIELDS names."""
    fields = _fields(keys)
    answer = answers.checked(response, TITLE)
    found = answers.at(answer, fields["results"])
    if not found and (told := answers.failure(answer, TITLE, empty=found == [])):
        raise told
    if not isinstance(found, list):
        raise answers.misshapen(TITLE)
    places = (f"{fields.get(name, '')} {usual}" for name, usual in USUAL.items())
    return answers.results(found[:MOST_ROWS], "generic", TITLE, *places)


def _key(keys: Keys) -> dict[str, str]:
    key, header = keys.get("SEARCH_API_KEY", ""), _fields(keys)["key_header"]
    if not key:
        return {}
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def _fields(keys: Keys) -> dict[str, str]:
    """The entries of SEARCH_FIELDS. Raises EngineError for an unknown one."""
    found = {"results": "results", "key_header": "Authorization"}
    known = (*found, *USUAL)
    for pair in filter(str.strip, keys.get("SEARCH_FIELDS", "").split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or name not in known:
            what = f"SEARCH_FIELDS has a part that cannot be used: {pair.strip()[:60]!r}."
            remedy = f"Write name=value for {', '.join(known)}, e.g. results=data.items,url=link."
            raise EngineError("config", what, remedy)
        found[name] = value
    return found


ENGINE = Engine(
    "generic",
    TITLE,
    needs=("SEARCH_ENDPOINT",),
    applies=frozenset({"domains"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
