"""Builds engines over APIs that answer in JSON from what is different about each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get, post
from searchloop.search_backend.plugin.answers import base, checked, result, results, rows, usable
from searchloop.search_backend.plugin.markup import MOST_ROWS
from searchloop.search_backend.types import Query, SearchResult

Row = Mapping[str, Any]
# The keys of address, title, snippet and date in a row (with blanks between several, of which the
# first with a value counts), or a function that returns the values; the date may be missing.
Fields = tuple[str, ...] | Callable[[Row], Iterable[object]]


class Traits(TypedDict, total=False):
    """The fields of an Engine that have nothing to do with its API."""

    applies: frozenset[str]
    cannot: Callable[[Query], frozenset[str]]
    rate: float
    off_by: str
    kinds: tuple[str, ...]
    sites: tuple[str, ...]
    untested: bool


def json_engine(
    name: str,
    title: str,
    call: str,
    address: tuple[str, str],
    ask: Callable[[Query], Mapping[str, object]],
    found: str,
    fields: Fields,
    *,
    key: Setting | None = None,
    header: str = "Authorization",
    headers: Callable[[Keys], Mapping[str, str]] = lambda _keys: {},
    more: tuple[Setting, ...] = (),
    sign: str = "",
    quota: Iterable[int] = (402,),
    place: str = "",
    **traits: Unpack[Traits],
) -> Engine:
    """Makes an engine that is asked by one request.

    `call` is a method and a path below `address`: the name and the default of the setting of the
    base URL. `ask` returns the parameters of a GET or the JSON of a POST; those without a value are
    left out. The rows stand at the path `found` (keys); an answer with the key `sign` may leave an
    empty list out. The rows are put into the order of their numbers at `place`. In
    the address, {language} is replaced. The required `key` travels in `header`. `more` are further
    settings. The statuses `quota` mean "used up".
    """
    method, _, path = call.partition(" ")
    bearer = "Bearer " if header == "Authorization" else ""

    def request(query: Query, keys: Keys) -> HttpRequest:
        sent = {**headers(keys), **({header: bearer + keys.get(key.name, "")} if key else {})}
        url = base(keys, *address).replace("{language}", query.language or "en") + path
        return (get if method == "GET" else post)(url, said(ask(query)), sent)

    def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
        listed = rows(checked(response, title, quota), *found.split(), title=title, sign=sign)
        listed.sort(key=lambda row: n if isinstance(n := row.get(place), int) else MOST_ROWS)
        if isinstance(fields, tuple):
            return results(listed, name, title, *fields)
        return usable((result(name, *fields(row)) for row in listed), title)

    server = Setting(address[0], f"Another server of {title}", address[1])
    return Engine(
        *(name, title),
        needs=(key.name,) if key else (),
        wire=Wire(request, parse),
        settings=((key,) if key else ()) + (*more, server),
        **traits,
    )


def said(values: Mapping[str, object]) -> dict[str, object]:
    """Returns the values that say something; 0 and False do, None and what is empty do not."""
    return {name: value for name, value in values.items() if value or value == 0}


def joined(by: str, *parts: object) -> str:
    """Joins by `by` the texts and numbers among `parts`; there is nothing to say of the others."""
    spoken = (p for p in parts if isinstance(p, str | int | float) and not isinstance(p, bool))
    return by.join(filter(None, map(str, spoken)))


def upper(code: str | None) -> str | None:
    """Returns a code of a country or language in capitals."""
    return code and code.upper()
