"""The search backend's WSGI application, alone or inside another process.

POST /api/web-search, POST /api/open-page, POST /api/read-file, GET /api/engines,
GET /api/library/PATH, GET /api/health and the routes of `shapes`. Every answer is JSON; an error is
{"error": {code, message, remedy}} and never a traceback. A token and a quota protect a backend that
other machines reach; a wrong token counts against the quota, so guessing is slow.

Spec: RFC 6750 2.1; RFC 7617, for clients that can only put a secret into an address
"""

from __future__ import annotations

import hmac
import logging
import math
import threading
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from searchloop.analysis.addresses import network_of
from searchloop.search_backend.api import payload
from searchloop.search_backend.api.schemas import MOST_FILE, document, health
from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.engines import Access, Engine, find_engines, find_shelves
from searchloop.search_backend.fetch.fetch import fetch as checked_fetch
from searchloop.search_backend.fetch.fetch import system_resolver
from searchloop.search_backend.fetch.host_check import vet
from searchloop.search_backend.library import Library
from searchloop.search_backend.library.roots import SCHEME
from searchloop.search_backend.other_apis import Contract, Route, error_at, find_shapes
from searchloop.search_backend.pages.open_page import Pages
from searchloop.search_backend.pages.reading import Fetch, Reading, file_pages
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.pages.workers import ASKER, CLIENT, WORKERS
from searchloop.search_backend.readers import find_services
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import PageView, Problem, SearchAnswer, SearchBackendError

MOST_CLIENTS = 10_000
_GUESSES = 10.0  # wrong tokens of a client at once, and a minute
PAGE_SECONDS = 900.0  # a page that does not say how long it stays fresh
READ_FILE = "/api/read-file"
_ROUNDING = 1e-6
MOST_BYTES = 2**20
_STATUSES = {
    "library_unavailable": 503,
    "read_only": 503,
    "not_found": 404,
    "unknown_format": 403,
    "unsupported_media_type": 415,
    # The request was right and this program works; an engine or a site failed.
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


class Quota:
    """Limits the requests of each client by a token bucket. Safe for several threads."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives monotonic seconds; 0 a minute means no limit."""
        self._most = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> int | None:
        """Counts a request and returns None, or returns the seconds until one may come."""
        if self._most <= 0:
            return None
        client, now = network_of(address), self._clock()
        with self._lock:
            left, since = self._clients.pop(client, (self._most, now))
            left = min(left + (now - since) * self._most / 60, self._most)
            granted = left >= 1 - _ROUNDING
            self._clients[client] = (left - granted, now)
            # The client unseen for longest has the fullest bucket, so forgetting it costs least.
            if len(self._clients) > MOST_CLIENTS:
                self._clients.popitem(last=False)
        return None if granted else max(math.ceil((1 - left) * 60 / self._most - _ROUNDING), 1)


def has_token(authorization: str, key: str, token: str) -> bool:
    """True if `authorization` is `Bearer TOKEN` or `Basic` with the token as password, or if it is
    empty and `key` (the header X-API-Key) is the token."""
    scheme, _, given = authorization.strip().partition(" ")
    if not scheme:
        scheme, given = "bearer", key
    secret = given.strip().encode("utf-8", "replace")
    if scheme.lower() == "basic":
        try:
            secret = b64decode(secret, validate=True).partition(b":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(secret, token.encode())


def make_pages(
    settings: SearchSettings,
    library: Library,
    fetch: Fetch | None = None,
    cache: Cache | None = None,
    engines: Mapping[str, Engine] | None = None,
) -> Pages:
    """Builds `open_page` from the checking fetch (or `fetch`), the readers, the library and the
    engines that open addresses of their own."""
    ranges = settings.allow_ranges
    reading = Reading(
        fetch or partial(checked_fetch, allow_ranges=ranges, refresh_in=WORKERS.refresh_in),
        partial(vet, resolve=system_resolver, allow_ranges=ranges),
        find_services(),
        ServiceCalls(settings.keys).read,
        settings.readers,
        PAGE_SECONDS,
    )
    known = find_engines() if engines is None else engines
    shelves = find_shelves(Access(settings.keys, library), known.values())
    return Pages(
        reading,
        library,
        shelves=shelves,
        rules=settings.rules,
        offline=settings.offline,
        cache=cache,
    )


def create_app(
    settings: SearchSettings,
    *,
    token: str | None = None,
    quota: Quota | None = None,
    fetch: Fetch | None = None,
    library: Library | None = None,
    chain: Chain | None = None,
    engines: Mapping[str, Engine] | None = None,
) -> Flask:
    """Builds the application. With `token`, every route but health requires it; `quota` limits
    each client. The other arguments replace the parts that are built otherwise."""
    app = Flask("search_backend", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    shelf = library or Library(settings.home, read=WORKERS.read)
    cache = Cache()
    _clear(settings.home)
    chain = chain or Chain(settings, shelf, engines, cache=cache, apart=WORKERS)
    pages = make_pages(settings, shelf, fetch, cache, engines)

    contract = _contract(chain, pages)
    _add_routes(app, contract, shelf, token is not None)

    @app.get("/api/engines")
    def engines_there_are() -> Response:
        return jsonify(chain.describe())

    @app.post("/api/forget")
    def forgotten() -> Response:
        chat = payload.forget(_body())
        try:
            kept = cache.forget(chat)
        finally:  # whatever hinders one of them
            pages = shelf.forget(chat)
        return jsonify({"pages": pages, "kept": kept})

    _add_shapes(app, contract)
    _add_errors(app)
    _add_limits(app, token, quota, str(settings.home))

    @app.after_request
    def private(response: Response) -> Response:
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return app


def _clear(home: Path) -> None:
    """Removes the answers and pages that versions before kept on disk."""
    with suppress(OSError):
        for left in home.glob("cache.sqlite3*"):
            left.unlink()


def _contract(chain: Chain, pages: Pages) -> Contract:
    def search(asked: Mapping[str, Any]) -> SearchAnswer:
        return chain.search(*payload.web_search(asked))

    def open_page(asked: Mapping[str, Any]) -> PageView:
        return pages.open_page(**payload.open_page(asked))

    return Contract(search, open_page)


def _add_routes(app: Flask, contract: Contract, library: Library, secured: bool) -> None:
    @app.post("/api/web-search")
    def web_search() -> Response:
        return jsonify(contract.search(_body()).as_json())

    @app.post("/api/open-page")
    def open_page() -> Response:
        return jsonify(contract.open_page(_body()).as_json())

    @app.post(READ_FILE)
    def read_file() -> Response:
        request.max_content_length = 2 * MOST_FILE
        return jsonify(file_pages(*payload.read_file(_body())))

    @app.get("/api/library/<path:path>")
    def found(path: str) -> Response:
        page = library.open(SCHEME + path)
        if page is None:
            what = "There is no such document in the library."
            raise SearchBackendError("not_found", what, "Search the library.")
        return jsonify({"url": page.final_url, "title": page.title, "content": page.text})

    @app.get("/api/health")
    def healthy() -> Response:
        return jsonify(health())

    @app.get("/api/openapi.json")
    def described() -> Response:
        return jsonify(document(secured=secured))


def _add_shapes(app: Flask, contract: Contract) -> None:
    def view(route: Route) -> Callable[[], Response]:
        def answer() -> Response:
            return jsonify(route.answer(_form() if route.form else _body(), contract))

        return answer

    for shape in find_shapes():
        for route in shape.routes:
            app.add_url_rule(route.path, route.path, view(route), methods=route.methods)


def _form() -> dict[str, Any]:
    """Returns the values of the URL and of a form; of several with one name the last counts."""
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
        return _refusal(_STATUSES.get(error.code, 400), error.problem)

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
    """Answers in the form of our API, or of the API whose address was asked."""
    body = error_at(request.path, status, problem) or {"error": problem.as_json()}
    return jsonify(body), status


def _add_limits(app: Flask, token: str | None, quota: Quota | None, home: str) -> None:
    guesses = Quota(_GUESSES)

    @app.before_request
    def admit() -> tuple[Response, int] | None:
        if request.path == "/api/health":
            return None
        client = request.remote_addr or ""
        ASKER.set(request.environ.get("searchloop.gone"))
        # In one process each person has an application; over the network all share this one.
        CLIENT.set(f"{home} {network_of(client)}")
        sent = request.headers.get("Authorization", ""), request.headers.get("X-API-Key", "")
        known = token is None or has_token(*sent, token)
        seconds = quota.take(client) if quota else None
        if seconds is None and not known and any(sent):
            seconds = guesses.take(client)
        if seconds is not None:
            return _too_often(seconds)
        if known:
            return None
        remedy = "Send the header Authorization: Bearer TOKEN."
        refused = Problem("unauthorized", "The token is missing or wrong.", remedy)
        response, status = _refusal(401, refused)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response, status


def _too_often(seconds: int) -> tuple[Response, int]:
    what, remedy = "This client asks too often.", f"Ask again in {seconds} s."
    refused = Problem("too_many_requests", what, remedy)
    response, status = _refusal(429, refused)
    response.headers["Retry-After"] = str(seconds)
    return response, status
