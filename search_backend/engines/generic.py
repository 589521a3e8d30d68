"""Any search API that answers in JSON: the address and the places of the fields are settings.

With {query} in SEARCH_ENDPOINT it is asked by GET, and {count}, {time_range}, {country} and
{language} are filled in as well; without, by POST of {"query", "max_results"}. SEARCH_FIELDS says
where things are, as paths with dots; its entry `key_header` names the header for the key.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote_plus

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, answers, post
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
# Tried in turn where the setting names no place of its own.
USUAL = {
    "url": ("url", "link", "href"),
    "title": ("title", "name"),
    "snippet": ("snippet", "content", "description", "body", "text"),
    "published": ("published", "published_date", "publishedDate", "date"),
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
    places: dict[str, tuple[str, ...]] = {"results": ("results",), **USUAL}
    places |= {n: (place,) for n, place in _fields(keys).items() if n in places}
    answer = answers.checked(response, TITLE)
    found = answer if places["results"] == ("",) else _at(answer, places["results"][0])
    if not found and (told := answers.failure(answer, TITLE, empty=found == [])):
        raise told
    if not isinstance(found, list):
        raise answers.misshapen(TITLE)
    made = (
        answers.result(
            "generic",
            *(
                next((v for place in places[name] if (v := _at(row, place))), None)
                for name in ("url", "title", "snippet", "published")
            ),
        )
        for row in found[: answers.MOST_ROWS]
    )
    return answers.usable(made, TITLE)


def _key(keys: Keys) -> dict[str, str]:
    key = keys.get("SEARCH_API_KEY", "")
    header = _fields(keys).get("key_header") or "Authorization"
    if not key:
        return {}
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def _fields(keys: Keys) -> dict[str, str]:
    """The entries of SEARCH_FIELDS that the user wrote. Raises EngineError for an unknown one."""
    fields = keys.get("SEARCH_FIELDS", "")
    found: dict[str, str] = {}
    known = ("results", *USUAL, "key_header")
    for pair in fields.split(",") if fields != FIELDS else ():
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not pair.strip():
            continue
        wrong = name == "key_header" and not re.fullmatch(r"[A-Za-z0-9-]{1,60}", value)
        if not equals or name not in known or wrong:
            what = f"SEARCH_FIELDS has a part that cannot be used: {pair.strip()[:60]!r}."
            remedy = f"Write name=value for {', '.join(known)}, e.g. results=data.items,url=link."
            raise EngineError("config", what, remedy)
        found[name] = value
    return found


def _at(value: Any, path: str) -> Any:
    """What is at a path of keys and list positions; None where it ends early."""
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


ENGINE = Engine(
    "generic",
    TITLE,
    needs=("SEARCH_ENDPOINT",),
    applies=frozenset({"domains"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
)
