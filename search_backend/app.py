"""The HTTP face of the search backend: a plain WSGI application, alone or inside another process.

POST /api/web-search, POST /api/open-page, GET /api/engines, GET /api/library/PATH, GET /api/health,
and the addresses of other people's APIs (see `shapes`). Every answer is JSON; an error is {"error":
{code, message, remedy}}, at their addresses what their clients expect, and never a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from search_backend import openapi, payload
from search_backend.callers import Quota, has_token
from search_backend.disk_cache import Disk
from search_backend.errors import SearchBackendError
from search_backend.library import SCHEME, Library
from search_backend.page_parts import describe_readers, make_pages
from search_backend.pages import Pages
from search_backend.reading import Fetch
from search_backend.search import Chain
from search_backend.settings import Settings
from search_backend.shapes import Route, error_at, find_shapes
from search_backend.types import PageView, Problem, SearchAnswer

MOST_BYTES = 2**20
_STATUSES = {
    "library_unavailable": 503,
    "not_found": 404,
    "unknown_format": 403,
    "unsupported_media_type": 415,
    # The request was right and this program works; who was asked did not deliver.
    "search_failed": 424,
    "page_failed": 424,
}
_REMEDIES = {
    400: "Check the request.",
    404: "See GET /api/health for the routes there are.",
    405: "Use the method that the Allow header names.",
    413: f"Send at most {MOST_BYTES} bytes.",
    415: "Send JSON with Content-Type: application/json.",
}

_log = logging.getLogger(__name__)


def create_app(
    settings: Settings,
    *,
    token: str | None = None,
    quota: Quota | None = None,
    fetch: Fetch | None = None,
    library: Library | None = None,
    chain: Chain | None = None,
    disk: Disk | None = None,
) -> Flask:
    """The application. With `token`, every route but health wants it (see `callers`), and with
    `quota` each client may ask only so often. Parts that are there already are used."""
    app = Flask("search_backend", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    shelf = library or Library(settings.home)
    disk = disk or Disk(settings.home, settings.cache_bytes)
    service = _Service(
        chain or Chain(settings, shelf, disk=disk),
        make_pages(settings, shelf, fetch, disk),
        describe_readers(settings),
    )
    _add_routes(app, service, shelf, token is not None)
    _add_shapes(app, service)
    _add_errors(app)
    _add_limits(app, token, quota)

    @app.after_request
    def private(response: Response) -> Response:
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return app


class _Service:
    """Both halves of the contract, asked with the body of a request. See `shapes.Service`."""

    def __init__(
        self, chain: Chain, pages: Pages, readers: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.chain = chain
        self.pages = pages
        self.readers = readers

    def search(self, asked: Mapping[str, Any]) -> SearchAnswer:
        query, engine = payload.web_search(asked)
        return self.chain.search(query, engine)

    def check(self, asked: Mapping[str, Any]) -> None:
        payload.web_search(asked)

    def open_page(self, asked: Mapping[str, Any]) -> PageView:
        page = payload.open_page(asked)
        return self.pages.open_page(
            page.url,
            page.find,
            page.offset,
            page.max_length,
            rules=page.rules,
            reader=page.reader,
        )


def _add_routes(app: Flask, service: _Service, library: Library, secured: bool) -> None:
    @app.post("/api/web-search")
    def web_search() -> Response:
        return jsonify(service.search(_body()).as_json())

    @app.post("/api/open-page")
    def open_page() -> Response:
        return jsonify(service.open_page(_body()).as_json())

    @app.get("/api/engines")
    def engines() -> Response:
        return jsonify({**service.chain.describe(), "readers": service.readers})

    @app.get("/api/library/<path:path>")
    def document(path: str) -> Response:
        page = library.open(SCHEME + path)
        if page is None:
            raise SearchBackendError(
                "not_found", "There is no such document in the library.", "Search the library."
            )
        return jsonify({"url": page.final_url, "title": page.title, "content": page.text})

    @app.get("/api/health")
    def health() -> Response:
        return jsonify(openapi.health())

    @app.get("/api/openapi.json")
    def described() -> Response:
        return jsonify(openapi.document(secured=secured))


def _add_shapes(app: Flask, service: _Service) -> None:
    def view(route: Route) -> Callable[[], Response]:
        return lambda: jsonify(route.answer(_form() if route.form else _body(), service))

    for shape in find_shapes():
        for route in shape.routes:
            app.add_url_rule(route.path, route.path, view(route), methods=route.methods)


def _form() -> dict[str, Any]:
    """Texts of the URL, and of a form if one was sent; of two with one name the last counts."""
    sent = {name: values[-1] for name, values in request.args.lists()}
    if request.method == "POST":
        if request.mimetype != "application/x-www-form-urlencoded":
            remedy = "Send a form: Content-Type: application/x-www-form-urlencoded."
            raise payload.BadRequest("The body is not a form.", remedy, "unsupported_media_type")
        sent |= {name: values[-1] for name, values in request.form.lists()}
    return sent


def _body() -> dict[str, Any]:
    if request.mimetype != "application/json":
        raise payload.BadRequest("The body is not JSON.", _REMEDIES[415], "unsupported_media_type")
    return payload.parse_object(request.get_data())


def _add_errors(app: Flask) -> None:
    @app.errorhandler(SearchBackendError)
    def known(error: SearchBackendError) -> tuple[Response, int]:
        return _refusal(_STATUSES.get(error.code, 400), Problem(**error.as_dict()))

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> tuple[Response, int]:
        status = error.code or 500
        code = error.name.lower().replace(" ", "_")
        response, _ = _refusal(status, Problem(code, f"{error.name}.", _REMEDIES.get(status, "")))
        for name, value in error.get_headers():
            if name.lower() != "content-type":
                response.headers[name] = value
        return response, status

    @app.errorhandler(Exception)
    def fault(error: Exception) -> tuple[Response, int]:
        _log.error("a request failed", exc_info=error)
        remedy = "Try again; if it stays, the log of the server says why."
        return _refusal(500, Problem("internal", "The search backend failed inside.", remedy))


def _refusal(status: int, problem: Problem) -> tuple[Response, int]:
    """In our words, or in those of the API whose address was asked."""
    body = error_at(request.path, status, problem) or {"error": problem.as_json()}
    return jsonify(body), status


def _add_limits(app: Flask, token: str | None, quota: Quota | None) -> None:
    @app.before_request
    def guard() -> tuple[Response, int] | None:
        if request.path == "/api/health":
            return None
        if quota is not None and (seconds := quota.take(request.remote_addr or "")) is not None:
            remedy = f"Ask again in {seconds} s, or raise SEARCH_CLIENT_RATE."
            refused = Problem("too_many_requests", "This client asks too often.", remedy)
            response, status = _refusal(429, refused)
            response.headers["Retry-After"] = str(seconds)
            return response, status
        sent = request.headers.get("Authorization", ""), request.headers.get("X-API-Key", "")
        if token is None or has_token(*sent, token):
            return None
        remedy = "Send the header Authorization: Bearer TOKEN."
        refused = Problem("unauthorized", "The token is missing or wrong.", remedy)
        response, status = _refusal(401, refused)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response, status
