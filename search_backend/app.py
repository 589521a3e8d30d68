"""The HTTP face of the search backend: a plain WSGI application, alone or inside another process.

POST /api/web-search, POST /api/open-page, GET /api/engines, GET /api/library/PATH, GET /api/health.
Every answer is JSON; an error is {"error": {code, message, remedy}} and never a traceback.
"""

from __future__ import annotations

import hmac
import logging
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from search_backend import payload
from search_backend.errors import SearchBackendError
from search_backend.fetch import fetch as guarded_fetch
from search_backend.library import SCHEME, Library
from search_backend.pages import Fetch, Pages
from search_backend.search import Chain
from search_backend.settings import Settings

MOST_BYTES = 2**20
_STATUSES = {"library_unavailable": 503, "not_found": 404}
_REMEDIES = {
    400: "Check the request.",
    404: "See GET /api/health for the routes there are.",
    405: "Use the method that the Allow header names.",
    413: f"Send at most {MOST_BYTES} bytes.",
    415: "Send JSON with Content-Type: application/json.",
}
ROUTES = (
    "POST /api/web-search",
    "POST /api/open-page",
    "GET /api/engines",
    "GET /api/library/PATH",
    "GET /api/health",
)

_log = logging.getLogger(__name__)


def create_app(
    settings: Settings,
    *,
    token: str | None = None,
    fetch: Fetch = guarded_fetch,
    library: Library | None = None,
    chain: Chain | None = None,
) -> Flask:
    """The application. With `token`, every route but health wants `Authorization: Bearer TOKEN`."""
    app = Flask("search_backend", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    shelf = library or Library(settings.home)
    _add_routes(
        app,
        chain or Chain(settings, shelf),
        Pages(fetch, shelf, offline=settings.offline),
        shelf,
    )
    _add_errors(app)
    if token is not None:
        _add_token(app, token)

    @app.after_request
    def private(response: Response) -> Response:
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return app


def _add_routes(app: Flask, chain: Chain, pages: Pages, library: Library) -> None:
    @app.post("/api/web-search")
    def web_search() -> Response:
        query, engine = payload.web_search(_body())
        return jsonify(chain.search(query, engine).as_json())

    @app.post("/api/open-page")
    def open_page() -> Response:
        asked = payload.open_page(_body())
        view = pages.open_page(asked.url, asked.find, asked.offset, asked.max_length)
        return jsonify(view.as_json())

    @app.get("/api/engines")
    def engines() -> Response:
        return jsonify(chain.describe())

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
        return jsonify({"status": "ok", "service": "search_backend", "routes": ROUTES})


def _body() -> dict[str, Any]:
    if request.mimetype != "application/json":
        raise payload.BadRequest("The body is not JSON.", _REMEDIES[415], "unsupported_media_type")
    return payload.parse_object(request.get_data())


def _add_errors(app: Flask) -> None:
    @app.errorhandler(SearchBackendError)
    def known(error: SearchBackendError) -> tuple[Response, int]:
        status = 415 if error.code == "unsupported_media_type" else _STATUSES.get(error.code, 400)
        return jsonify({"error": error.as_dict()}), status

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        status = error.code or 500
        code = error.name.lower().replace(" ", "_")
        words = {"code": code, "message": f"{error.name}.", "remedy": _REMEDIES.get(status, "")}
        response = jsonify({"error": words})
        response.status_code = status
        for name, value in error.get_headers():
            if name.lower() != "content-type":
                response.headers[name] = value
        return response

    @app.errorhandler(Exception)
    def fault(error: Exception) -> tuple[Response, int]:
        _log.error("a request failed", exc_info=error)
        words = {
            "code": "internal",
            "message": "The search backend failed inside.",
            "remedy": "Try again; if it stays, the log of the server says why.",
        }
        return jsonify({"error": words}), 500


def _add_token(app: Flask, token: str) -> None:
    expected = f"Bearer {token}".encode()

    @app.before_request
    def guard() -> tuple[Response, int, dict[str, str]] | None:
        given = request.headers.get("Authorization", "").encode("utf-8", "replace")
        if request.path == "/api/health" or hmac.compare_digest(given, expected):
            return None
        words = {
            "code": "unauthorized",
            "message": "The token is missing or wrong.",
            "remedy": "Send the header Authorization: Bearer TOKEN.",
        }
        return jsonify({"error": words}), 401, {"WWW-Authenticate": "Bearer"}
