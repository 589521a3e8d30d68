"""The Flask application: the page, its files, and the JSON API's handlers on their routes."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import brotli
from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException
from werkzeug.security import safe_join

from searchloop.agent import __version__
from searchloop.agent.errors import AgentError
from searchloop.agent.tools.backend import Wsgi
from searchloop.render.markdown import render
from searchloop.render.words import LANGUAGES, STATIC, spoken, words_of
from searchloop.web.api.calls import Call, Handler, Reply, check_right, checked_body, status_of
from searchloop.web.api.openapi import Route
from searchloop.web.asgi import as_json
from searchloop.web.gate import PERSON, policy, sign_in
from searchloop.web.gate.access import Person

_log = logging.getLogger(__name__)

SEARCH_PATHS = {"/api/web-search": "POST", "/api/open-page": "POST", "/api/engines": "GET"}
_KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_PACKED = {"text/html", "text/css", "text/javascript", "application/json"}
_WORTH_PACKING = 1_400  # bytes; what is shorter fits one packet anyway
_FRAME = "app/frame.html"
_FOREVER = "private, max-age=31536000, immutable"
_REFUSED = {  # code and words of an HTTP status
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address does not take that method."),
}


def create_flask(handlers: Iterable[tuple[Route, Handler]], search_app: Wsgi) -> Flask:
    """Builds the application behind the gate. `search_app` answers for search and pages."""
    app = Flask("web", static_folder=None, template_folder=None)
    app.debug = False  # whatever FLASK_DEBUG says
    app.config["PROPAGATE_EXCEPTIONS"] = True  # the gate answers for a fault of ours
    app.url_map.merge_slashes = False
    app.add_url_rule("/", "page", _page)
    app.add_url_rule("/static/<path:name>", "file", _file)
    for route, handler in handlers:
        rule, method = route.path.replace("{", "<").replace("}", ">"), route.method.upper()
        app.add_url_rule(rule, f"{method} {rule}", _view(route, handler), methods=[method])
    for path, method in SEARCH_PATHS.items():
        app.add_url_rule(path, path, _mounted(search_app), methods=[method])
    app.register_error_handler(AgentError, _failed)
    app.register_error_handler(HTTPException, _refused)
    app.after_request(_pack)
    return app


def _view(route: Route, handler: Handler) -> Callable[..., Response]:
    def view(**params: str) -> Response:
        person = request.environ.get(PERSON, Person())
        check_right(route.whose, person)
        body = checked_body(route.body, request.get_data())
        liked = (name for name, worth in request.accept_languages if worth)
        language = spoken([request.args.get("lang", ""), *liked])
        return _response(handler(Call(params, request.args, body, person, request.host, language)))

    return view


def _mounted(search_app: Wsgi) -> Callable[[], Any]:
    def view() -> Any:
        response = Response.from_app(search_app, request.environ, buffered=True)
        if request.args.get("view") == "page":
            _add_blocks(response)
        return response

    return view


def _add_blocks(response: Any) -> None:
    """Adds a page's text as the tree that the browser shows. Its links are not clickable."""
    page = response.get_json(silent=True)
    if isinstance(page, dict) and isinstance(page.get("content"), str):
        page["blocks"] = render(page["content"])
        response.set_data(json.dumps(page, ensure_ascii=False).encode("utf-8", "replace"))


def _response(reply: Reply) -> Response:
    cookie = [("Set-Cookie", reply.cookie.decode())] if reply.cookie else []
    if reply.status == 204:
        return Response(status=204, headers=cookie)
    if reply.file is None and reply.kind == "application/json":
        data = as_json(reply.data).encode("utf-8", "replace")
        return Response(data, reply.status, cookie, mimetype=reply.kind)
    data = reply.data if isinstance(reply.data, bytes) else reply.data.encode("utf-8", "replace")
    return Response(data, reply.status, _saved_as(reply.file), mimetype=reply.kind)


def _saved_as(name: str | None) -> dict[str, str]:
    """Returns the header for a file to save (RFC 6266); any name is safe in it."""
    plain = re.sub(r"[^\w.-]", "_", name or "", flags=re.ASCII)
    other = "" if plain == name else f"; filename*=UTF-8''{quote(name or '')}"
    return {"Content-Disposition": f'attachment; filename="{plain}"{other}'} if name else {}


def _page() -> Response:
    nonce = secrets.token_urlsafe(16)
    text = (STATIC / "index.html").read_text("utf-8").replace("/static/", f"/static/{_stamp()}/")
    text = text.replace("{nonce}", nonce)
    languages = json.dumps({name: words_of(name)["language.name"] for name in LANGUAGES})
    text = text.replace("{languages}", html.escape(languages)).replace("{version}", __version__)
    headers = {"Content-Security-Policy": policy(nonce)}
    return Response(text, 200, headers, mimetype="text/html")


# Browsers take brotli over TLS and from this machine.
_WAYS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda data: brotli.compress(data, quality=7),
    "gzip": lambda data: gzip.compress(data, 6, mtime=0),
}


def _pack(response: Response) -> Response:
    """Compresses the page and the API's longer answers. No other site can have such an answer sent
    to this browser (the cookie is SameSite=Strict), so its length tells nobody anything."""
    whole = not response.direct_passthrough and response.status_code == 200
    way = next((name for name in _WAYS if request.accept_encodings[name]), None)
    packed = response.headers.get("Content-Encoding") or not way
    if whole and way and not packed and response.mimetype in _PACKED:
        data = response.get_data()
        if len(data) > _WORTH_PACKING:
            response.set_data(_WAYS[way](data))
            response.headers["Content-Encoding"] = way
        response.headers.add("Vary", "Accept-Encoding")
    return response


def _file(name: str) -> Response:
    """Sends a file of the page. Browsers keep it for good under an address with the stamp of now,
    which changes with the files. Any other stamp, or none, leads to the same file."""
    stamp, _, rest = name.partition("/")
    name = rest if stamp.startswith("@") else name
    kind, path = _KINDS.get(Path(name).suffix), safe_join(str(STATIC), name)
    if kind is None or path is None or "\0" in name or not Path(path).is_file():
        abort(404)
    response = Response(Path(path).read_bytes(), mimetype=kind)
    response.add_etag(weak=True)
    response.headers["Cache-Control"] = _FOREVER if stamp == _stamp() else "no-cache"
    if name == _FRAME:
        response.headers["Content-Security-Policy"] = _frame_policy(response.get_data(as_text=True))
    response.make_conditional(request)
    return response


def _frame_policy(page: str) -> str:
    """Returns the policy of the file that draws foreign content: no origin, no network, and no
    script but the one that is in the file and what that makes of a text."""
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"sandbox allow-scripts; default-src 'none'; script-src 'sha256-{digest}' blob:; "
        "style-src 'unsafe-inline'; img-src data:; frame-src blob:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    )


def _stamp() -> str:
    """Returns the part of addresses that changes with any file of the page."""
    return _digest(tuple((p, p.stat().st_mtime_ns) for p in sorted(STATIC.rglob("*.*"))))


@functools.lru_cache(maxsize=1)
def _digest(files: tuple[tuple[Path, int], ...]) -> str:
    whole = b"".join(path.read_bytes() for path, _ in files)
    return f"@{hashlib.sha256(whole).hexdigest()[:12]}"


def _failed(error: AgentError) -> Response:
    """Answers an error as {"error": {...}}."""
    status = status_of(error)
    if status >= 500:
        _log.warning("%s: %s", error.code, error.message)
    return _error(status, error.as_dict())


def _refused(error: HTTPException) -> Response:
    """Answers an error of HTTP: with a page where a person reads it."""
    status = error.code or 500
    other = f"http_{status}", f"The request was refused with status {status}."
    code, words = _REFUSED.get(status, other)
    if sign_in.is_shown(request.headers.get("Accept", ""), request.path):
        told = sign_in.page({"code": code, "message": words}, str(request.accept_languages))
        headers = {"Content-Security-Policy": sign_in.POLICY}
        return Response(told, status, headers, mimetype="text/html")
    remedy = "GET /api/openapi.json lists what there is."
    response = _error(status, {"code": code, "message": words, "remedy": remedy})
    if allow := dict(error.get_headers()).get("Allow"):
        response.headers["Allow"] = allow
    return response


def _error(status: int, error: dict[str, Any]) -> Response:
    return _response(Reply({"error": error}, status))
