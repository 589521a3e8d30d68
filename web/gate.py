"""The gate: decides who may talk to this server, before any other code sees a request.

A page of another site can reach 127.0.0.1 from the user's browser, so an address proves nothing.
Every request needs an exact Host, an Origin (if any) from the same list, and the token; a body must
be JSON, small but for files, and arrive in time. Every answer leaves with the security headers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

_UNUSED = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
_SECURITY: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", ", ".join(f"{name}=()" for name in _UNUSED).encode()),
)
_SECURITY_NAMES = frozenset(name for name, _ in _SECURITY)


def policy(nonce: str | None = None) -> str:
    """Returns the Content-Security-Policy: only our own files, and only scripts with this nonce."""
    script = f"'nonce-{nonce}'" if nonce else "'none'"
    return (
        f"default-src 'none'; script-src {script}; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


_DEFAULTS: tuple[Header, ...] = (
    (b"content-security-policy", policy().encode()),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that replaces the application's."""

    status: int
    code: str
    message: str
    remedy: str
    headers: tuple[Header, ...] = ()


# (path, refusal) -> the JSON that clients of a foreign API expect at this path; None elsewhere.
RefusalBody = Callable[[str, Refusal], dict[str, Any] | None]


class SecureSend:
    """A `send` that adds the security headers to an answer and removes every CORS header."""

    __slots__ = ("_send", "started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        """Sends one ASGI message."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = [
                (name, value)
                for name, value in message.get("headers", ())
                if name not in _SECURITY_NAMES and not name.startswith(b"access-control-")
            ]
            given = {name for name, _ in headers}
            headers += _SECURITY
            headers += [header for header in _DEFAULTS if header[0] not in given]
            message = {**message, "headers": headers}
        await self._send(message)


async def refuse(
    refusal: Refusal, scope: Scope, send: Send, refusal_body: RefusalBody | None = None
) -> None:
    """Sends a refusal: JSON to programs, one sentence to a person who opens the page."""
    kind = b"application/json"
    if b"text/html" in dict(scope["headers"]).get(b"accept", b"") and scope["path"][:5] != "/api/":
        kind, words = b"text/html; charset=utf-8", f"{refusal.message} {refusal.remedy}".strip()
        text = f"<!doctype html><title>searchloop</title><p>{html.escape(words)}</p>"
    else:
        error = {"code": refusal.code, "message": refusal.message, "remedy": refusal.remedy}
        shown = (refusal_body(scope["path"], refusal) if refusal_body else None) or {"error": error}
        text = json.dumps(shown, ensure_ascii=False)
    body = text.encode("utf-8", "replace")
    length = str(len(body)).encode()
    headers = [*refusal.headers, (b"content-type", kind), (b"content-length", length)]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_WILDCARD = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses of the server, and the secret that lets requests in.

    `names` are further host names, `public` is the address of a proxy before the server. With
    `open_to_all` no request needs the secret: for a server that holds nothing of the user's.
    """

    port: int
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    open_to_all: bool = False
    public: str = ""

    @property
    def cookie(self) -> str:
        """Returns the cookie's name, with the port: browsers share cookies among a host's ports."""
        return f"searchloop_{self.port}"

    @property
    def cookie_value(self) -> str:
        """Returns the cookie's value. It is derived from the token, which it does not reveal."""
        return hmac.new(self.token.encode(), b"searchloop cookie", hashlib.sha256).hexdigest()

    @property
    def anywhere(self) -> bool:
        """Is true if the socket is bound to every address of the machine."""
        return self.host in _WILDCARD

    def hosts(self) -> frozenset[bytes]:
        """Returns the values of Host that name this server."""
        own = () if self.anywhere else (f"[{self.host}]" if ":" in self.host else self.host,)
        names = {*_LOOPBACK, *own, *self.names}
        full = {f"{name}:{self.port}" for name in names}
        full |= {self.public.partition("://")[2]} - {""}
        return frozenset(n.lower().encode() for n in (full | names if self.port == 80 else full))

    def arrived_at(self, server: tuple[str, int | None] | None) -> bytes | None:
        """Returns the Host of the address that a connection came in on, if bound to all of them."""
        if not self.anywhere or server is None or server[1] is None:
            return None
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{address}:{server[1]}".encode()

    def set_cookie(self, host: bytes) -> bytes:
        """Returns the Set-Cookie line, which needs TLS if `host` is the public https address."""
        secure = "; Secure" if self.public == f"https://{host.decode('latin-1').lower()}" else ""
        rest = f"Path=/; HttpOnly; SameSite=Strict{secure}"
        return f"{self.cookie}={self.cookie_value}; {rest}".encode()

    def start_path(self) -> str:
        """Returns path and query of the link that lets a browser in."""
        return "/?token=" + quote(self.token, safe="")


_log = logging.getLogger(__name__)

MAX_BODY = 1024 * 1024  # bytes
BODY_SECONDS = 10.0
# Requests with files, and how large and slow these may be.
MAX_FILES = 30 * MAX_BODY
_FILES = re.compile(r"/api/(?:sessions/[^/]+/messages|attachments)")
_WITH_FILES = re.compile(rb'"(?:attachments|data)"\s*:')
_SLOWER = 12
OPEN_PATHS = frozenset({"/api/health"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BODIES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FORM = b"application/x-www-form-urlencoded"
_SAME = frozenset({b"same-origin", b"none"})
# A request that repeats one of these headers is ambiguous, so it is refused.
_ONCE = (b"host", b"origin", b"sec-fetch-site", b"authorization", b"content-type")

_FOREIGN_ORIGIN = Refusal(
    403, "foreign_origin", "Requests of other sites are refused.", "Open this server's own page."
)
_CROSS_SITE = Refusal(
    403, "cross_site", "Requests from other sites are refused.", "Type the address in the browser."
)
_BAD_ADDRESS = Refusal(
    400, "bad_address", "This is not an address of this server.", "See GET /api/openapi.json."
)
_LINK = "Open the address that searchloop printed when it started"
_OR_HEADER = f"{_LINK}, or send the header `Authorization: Bearer TOKEN`."
_BEARER = ((b"www-authenticate", b"Bearer"),)
_NO_TOKEN = Refusal(401, "no_token", "The request does not carry the token.", _OR_HEADER, _BEARER)
_BAD_TOKEN = Refusal(401, "bad_token", "This start link is not valid, or no longer.", f"{_LINK}.")
_NOT_JSON = Refusal(
    415, "not_json", "The body must be JSON.", "Send the header `Content-Type: application/json`."
)
_LESS = "Send less text; put a long text in a file and add it with `searchloop library add`."
_TOO_LARGE = Refusal(413, "too_large", "The request is larger than 1 MiB.", _LESS)
_FILES_TOO_LARGE = Refusal(
    413, "attachment_too_large", "The files are too large together.", "Send fewer, or smaller ones."
)
_SLOW_WORDS = f"The request's body did not arrive within {BODY_SECONDS:g} s."
_TOO_SLOW = Refusal(408, "too_slow", _SLOW_WORDS, "Send it again.", ((b"connection", b"close"),))
_INTERNAL = Refusal(
    500, "internal", "searchloop failed to answer this request.", "The server's log says why."
)


class Gate:
    """An ASGI middleware. It costs one pass over the headers of a request."""

    def __init__(
        self,
        app: App,
        access: Access,
        *,
        body_seconds: float = BODY_SECONDS,
        form_paths: Collection[str] = (),
        refusal_body: RefusalBody | None = None,
    ) -> None:
        """Allows forms at `form_paths`. `refusal_body` gives refusals the shape of other APIs."""
        self._forms = form_paths
        self._refusal_body = refusal_body
        self._app = app
        self._access = access
        self._hosts = access.hosts()
        self._public = access.public.encode() or None
        self._cookie = access.cookie.encode()
        self._token = access.token.encode()
        self._cookie_value = access.cookie_value.encode()
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or refuses it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secured, head = SecureSend(send), _head(scope["headers"])
        refusal = self._refusal(scope, head)
        if refusal is None and scope["method"] in _BODIES:
            body = await self._read(head, receive, _FILES.fullmatch(scope["path"]) is not None)
            if body is None:
                return
            if isinstance(body, Refusal):
                refusal = body
            else:
                scope, receive = _with_body(scope, body, receive)
        if refusal is None:
            try:
                await self._app(scope, receive, secured)
            except Exception:
                _log.exception("%s %s failed", scope["method"], scope["path"])
                refusal = None if secured.started else _INTERNAL
        if refusal is not None:
            await refuse(refusal, scope, secured, self._refusal_body)

    def _refusal(self, scope: Scope, head: dict[bytes, bytes]) -> Refusal | None:
        """Returns the reason to refuse this request, or None. A start link gets a redirect."""
        method, path, origin = scope["method"], scope["path"], head.get(b"origin")
        if b"" in head:
            words = f"The header {head[b''].decode()} is there twice."
            return Refusal(400, "ambiguous", words, "Send it once.")
        if not self._is_ours(head.get(b"host", b""), scope):
            words = "This server does not answer to that host name."
            remedy = f"Open http://127.0.0.1:{self._access.port} on this machine."
            return Refusal(403, "bad_host", words, remedy)
        if origin not in (None, self._public) and not (
            origin.startswith(b"http://") and self._is_ours(origin[7:], scope)
        ):
            return _FOREIGN_ORIGIN
        if head.get(b"sec-fetch-site", b"none") not in _SAME:
            return _CROSS_SITE
        if method not in _METHODS:
            words = f"The method {method[:20]!r} is not used here."
            return Refusal(405, "bad_method", words, f"Use one of {', '.join(sorted(_METHODS))}.")
        if path[:1] != "/" or path[:2] == "//" or not scope["query_string"].isascii():
            return _BAD_ADDRESS
        if not self._access.open_to_all:
            if path == "/" and method in ("GET", "HEAD") and b"token=" in scope["query_string"]:
                return self._enter(scope, head)
            if path not in OPEN_PATHS and not self._has_token(scope, head):
                return _NO_TOKEN
        most = MAX_FILES if _FILES.fullmatch(path) else MAX_BODY
        return _body_refusal(head, path in self._forms, most) if method in _BODIES else None

    def _is_ours(self, host: bytes, scope: Scope) -> bool:
        host = host.lower()
        return host in self._hosts or host == self._access.arrived_at(scope.get("server"))

    def _has_token(self, scope: Scope, head: dict[bytes, bytes]) -> bool:
        scheme, _, given = head.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            return hmac.compare_digest(given.strip(), self._token)
        lines = b";".join(value for name, value in scope["headers"] if name == b"cookie")
        pairs = (part.strip().partition(b"=") for part in lines.split(b";"))
        passes = [value for name, _, value in pairs if name == self._cookie]
        return any(hmac.compare_digest(value, self._cookie_value) for value in passes)

    def _enter(self, scope: Scope, head: dict[bytes, bytes]) -> Refusal:
        """Answers the start link: sets the cookie if the token is right."""
        query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
        given = query.get("token", [""])[-1].encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._token):
            return _BAD_TOKEN
        cookie = self._access.set_cookie(head.get(b"host", b""))
        return Refusal(303, "welcome", "", "", ((b"location", b"/"), (b"set-cookie", cookie)))

    async def _read(
        self, head: dict[bytes, bytes], receive: Receive, files: bool
    ) -> bytes | Refusal | None:
        """Returns the whole body, so that no thread waits for it; None when the client left."""
        body, most = bytearray(), MAX_FILES if files else MAX_BODY
        seconds = self._body_seconds * (_SLOWER if files else 1)
        if head.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in head:
            return b""
        try:
            async with asyncio.timeout(seconds):
                while len(body) <= most:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return _TOO_SLOW
        if len(body) > most and files:
            return _FILES_TOO_LARGE
        large = len(body) > MAX_BODY and not (files and _WITH_FILES.search(body))
        return _TOO_LARGE if large else bytes(body)


def _head(headers: Sequence[Header]) -> dict[bytes, bytes]:
    """Returns headers by name. The key b"" names one that is repeated and must not be."""
    head: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in head and name in _ONCE:
            head[b""] = name
        head[name] = value
    return head


def _body_refusal(head: dict[bytes, bytes], form: bool, most: int) -> Refusal | None:
    length = head.get(b"content-length", b"0")
    empty = length == b"0" and b"transfer-encoding" not in head
    kind = head.get(b"content-type")
    if kind is None and empty:
        return None
    named = (kind or b"").partition(b";")[0].strip().lower()
    if named != b"application/json" and not (form and named == _FORM):
        return _NOT_JSON
    too_large = _TOO_LARGE if most == MAX_BODY else _FILES_TOO_LARGE
    return too_large if length.isdigit() and int(length) > most else None


def _with_body(scope: Scope, body: bytes, receive: Receive) -> tuple[Scope, Receive]:
    """Returns the scope and the `receive` of a request whose body has been read."""
    dropped = (b"content-length", b"transfer-encoding", b"expect")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    headers.append((b"content-length", str(len(body)).encode()))
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return {**scope, "headers": headers}, replay
