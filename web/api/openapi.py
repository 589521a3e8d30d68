"""The routes of the API, and the OpenAPI document that describes them.

A handler declares its route with `route`; the first line of its docstring is the route's summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

from searchloop.agent import __version__
from searchloop.analysis.schemas import TEXT, ref
from searchloop.web.api.schemas import QUERY, SCHEMAS

T = TypeVar("T", bound=Callable[..., Any])


Whose = Literal["anyone", "admin", "operator"]


class Route(NamedTuple):
    """A route. `body` names a schema, `answer` a schema or a media type.

    Where a proxy signs people in, `whose` says which of them may use it: the operator is the holder
    of the token.
    """

    method: str
    path: str
    answer: str | None
    body: str | None = None
    status: int = 200  # of an answer; without one it is 204
    query: tuple[str, ...] = ()
    whose: Whose = "anyone"


ANY_FILE = "*/*"

# Answered elsewhere: by the event streams, the page's files and the search backend.
_OTHERS = (
    (Route("get", "/", "text/html"), "The page"),
    (Route("get", "/static/{name}", ANY_FILE), "A file of the page"),
    (Route("get", "/api/engines", "Engines"), "Search engines, and what each one lacks"),
    (
        Route("get", "/api/sessions/{id}/events", "text/event-stream", query=("after", "view")),
        "The session's events, stored ones and then live; the last of a run is a RunFinished",
    ),
    (Route("get", "/api/sessions/export", "application/json"), "All chats as one file"),
    (
        Route("post", "/api/sessions/import", "Import", status=202),
        "Bring in the chats of an export, which is the body as it is: JSON or ZIP",
    ),
    (Route("post", "/api/web-search", "SearchAnswer", "WebSearch"), "Search the web"),
    (
        Route("post", "/api/audit", "Audit", "NewAudit"),
        "Open what a report cites and judge each sentence: as server-sent events page_opened and"
        " audit_finished, or with Accept: application/json as one object",
    ),
    (Route("post", "/api/open-page", "Page", "OpenPage", query=("view",)), "Read a page"),
)
_declared: dict[Callable[..., Any], Route] = {}


def route(*declared: Any, **more: Any) -> Callable[[T], T]:
    """Declares the route that a handler answers, in the words of `Route`."""

    def declare(handler: T) -> T:
        _declared[handler] = Route(*declared, **more)
        return handler

    return declare


def routes_of(owner: object) -> Iterator[tuple[Route, Any]]:
    """Yields (route, handler) for each method of `owner` that declares a route."""
    for name, function in vars(type(owner)).items():
        if callable(function) and function in _declared:
            yield _declared[function], getattr(owner, name)


def document() -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document."""
    own = ((found, handler.__doc__ or "") for handler, found in _declared.items())
    paths: dict[str, Any] = {}
    for found, words in (*_OTHERS, *own):
        paths.setdefault(found.path, {})[found.method] = _operation(found, words.partition("\n")[0])
    return {
        "openapi": "3.1.0",
        "info": {"title": "searchloop", "version": __version__},
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "searchloop_PORT"},
            },
        },
    }


def _operation(found: Route, words: str) -> dict[str, Any]:
    names = [part[1:-1] for part in found.path.split("/") if part.startswith("{")]
    parameters: list[Any] = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in names
    ]
    parameters += [{"name": n, "in": "query", "schema": QUERY[n]} for n in found.query]
    operation: dict[str, Any] = {
        "summary": words,
        "parameters": parameters,
        "responses": {
            str(found.status if found.answer else 204): _answer(words, found.answer),
            "4XX": _answer("Refused; the body says why and what to do", "Error"),
            "5XX": _answer("Failed; the body says what to do", "Error"),
        },
    }
    if found.body:
        content = {"application/json": {"schema": ref(found.body)}}
        required = bool(SCHEMAS[found.body].get("required"))
        operation["requestBody"] = {"required": required, "content": content}
    if found.whose != "anyone":
        operation["x-whose"] = found.whose
    if found.path in ("/api/health", "/opensearch.xml"):
        operation["security"] = []
    return operation


def _answer(words: str, answer: str | None) -> dict[str, Any]:
    if answer is None:
        return {"description": words}
    json = {"application/json": {"schema": ref(answer)}}
    return {
        "description": words,
        "content": json if answer in SCHEMAS else {answer: {"schema": {}}},
    }
