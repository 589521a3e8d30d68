"""The gate: who may talk to this server, decided before any other code sees a request.

A page of another site can reach 127.0.0.1 from the user's browser, so an address proves nothing.
Every request needs an exact Host, an Origin (if it has one) from the same list, no sign of another
site, and the secret of this start; a body must be JSON, small, and come in time. Every answer
leaves with the security headers. One pure ASGI layer, so a new route is covered by being there.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Collection, Sequence
from urllib.parse import parse_qs

from web.access import Access
from web.asgi import App, Header, Message, Receive, Refusal, Scope, Seal, Send, Worded, refuse

_log = logging.getLogger(__name__)

MAX_BODY = 1024 * 1024  # bytes
BODY_SECONDS = 10.0
OPEN_PATHS = frozenset({"/api/health"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_PLAINLY = "GET /api/openapi.json lists the addresses there are."
_BODIES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FORM = b"application/x-www-form-urlencoded"
_SAME = frozenset({b"same-origin", b"none"})
# Looked at by the gate; a request that says one of these twice is ambiguous and refused.
_ONCE = (b"host", b"origin", b"sec-fetch-site", b"authorization", b"content-type")

_TOO_LARGE = Refusal(
    413,
    "too_large",
    "The request is larger than 1 MiB.",
    "Send less text; put a long text in a file and add it with `searchloop library add`.",
)
_TOO_SLOW = Refusal(
    408,
    "too_slow",
    f"The request's body did not arrive within {BODY_SECONDS:g} s.",
    "Send it again.",
    ((b"connection", b"close"),),
)
_INTERNAL = Refusal(
    500, "internal", "searchloop failed to answer this request.", "The server's log says why."
)


class Gate:
    """An ASGI application around another. Cheap: one pass over the headers of a request."""

    def __init__(
        self,
        app: App,
        access: Access,
        *,
        body_seconds: float = BODY_SECONDS,
        form_paths: Collection[str] = (),
        worded: Worded | None = None,
    ) -> None:
        """At `form_paths` a body may be a form: only where a request changes nothing. `worded` puts
        refusals into the shape of other people's APIs."""
        self._forms = form_paths
        self._worded = worded
        self._app = app
        self._access = access
        self._hosts = access.hosts()
        self._public = access.public.encode() or None
        self._cookie = access.cookie
        self._token = access.token.encode()
        self._pass = access.pass_value.encode()
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the request through, or answers it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seal = Seal(send)
        head = _head(scope["headers"])
        refusal = self._refusal(scope, head)
        if refusal is None and _is_start(scope) and not self._access.open_to_all:
            refusal = self._enter(scope, head.get(b"host", b""))
        if refusal is None and scope["method"] in _BODIES:
            refusal = await self._read(scope, head, receive, seal)
        elif refusal is None:
            await self._pass_on(scope, receive, seal)
        if refusal is not None:
            await refuse(refusal, scope, seal, self._worded)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Seal) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"])
            if not send.started:
                await refuse(_INTERNAL, scope, send, self._worded)

    def _refusal(self, scope: Scope, head: dict[bytes, bytes]) -> Refusal | None:
        """Why this request may not come in, or None."""
        if b"" in head:
            words = f"The header {head[b''].decode()} is there twice."
            return Refusal(400, "ambiguous", words, "Send it once.")
        if not self._is_ours(head.get(b"host", b""), scope):
            return Refusal(
                403,
                "bad_host",
                "This server does not answer to that host name.",
                f"Open http://127.0.0.1:{self._access.port} on this machine.",
            )
        origin = head.get(b"origin")
        if origin not in (None, self._public) and not (
            origin.startswith(b"http://") and self._is_ours(origin[7:], scope)
        ):
            return Refusal(
                403,
                "foreign_origin",
                "Requests of other sites are not answered.",
                "Open this server's own page and ask from there.",
            )
        if head.get(b"sec-fetch-site", b"none") not in _SAME:
            return Refusal(
                403,
                "cross_site",
                "Requests that come from other sites are not answered.",
                "Type or paste the address into the browser's address bar.",
            )
        method, path = scope["method"], scope["path"]
        if method not in _METHODS:
            words = f"The method {method[:20]!r} is not used here."
            return Refusal(405, "bad_method", words, f"Use one of {', '.join(sorted(_METHODS))}.")
        if path[:1] != "/" or path[:2] == "//" or not scope["query_string"].isascii():
            return Refusal(400, "bad_address", "This is not an address of this server.", _PLAINLY)
        free = self._access.open_to_all or path in OPEN_PATHS or _is_start(scope)
        if not free and not self._has_token(scope, head):
            return Refusal(
                401,
                "no_token",
                "This request does not carry the token of this start.",
                "Open the address that searchloop printed when it started, or send the header "
                "`Authorization: Bearer TOKEN`.",
                ((b"www-authenticate", b"Bearer"),),
            )
        return _body_refusal(head, path in self._forms) if method in _BODIES else None

    def _is_ours(self, host: bytes, scope: Scope) -> bool:
        host = host.lower()
        return host in self._hosts or host == self._access.arrived_at(scope.get("server"))

    def _has_token(self, scope: Scope, head: dict[bytes, bytes]) -> bool:
        scheme, _, given = head.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            return hmac.compare_digest(given.strip(), self._token)
        name = self._cookie.encode()
        passes = (
            value
            for key, line in scope["headers"]
            if key == b"cookie"
            for value in _cookies(line, name)
        )
        return any(hmac.compare_digest(value, self._pass) for value in passes)

    def _enter(self, scope: Scope, host: bytes) -> Refusal:
        """The answer to the start link: the cookie for the right token."""
        query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
        given = query.get("token", [""])[-1].encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._token):
            return Refusal(
                401,
                "bad_token",
                "This start link is not, or no longer, valid.",
                "Open the address that searchloop printed when it last started.",
            )
        return Refusal(
            303,
            "welcome",
            "",
            "",
            ((b"location", b"/"), (b"set-cookie", self._access.set_cookie(host))),
        )

    async def _read(
        self, scope: Scope, head: dict[bytes, bytes], receive: Receive, send: Seal
    ) -> Refusal | None:
        """Takes the whole body in before anybody waits for it on a thread, then passes it on."""
        body = b""
        if head.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in head:
            try:
                async with asyncio.timeout(self._body_seconds):
                    received = await _whole_body(receive)
            except TimeoutError:
                return _TOO_SLOW
            if isinstance(received, Refusal):
                return received
            if received is None:
                return None
            body = received
        kept = [
            (name, value)
            for name, value in scope["headers"]
            if name not in (b"content-length", b"transfer-encoding", b"expect")
        ]
        kept.append((b"content-length", str(len(body)).encode()))
        await self._pass_on({**scope, "headers": kept}, _replay(body, receive), send)
        return None


def _head(headers: Sequence[Header]) -> dict[bytes, bytes]:
    """Headers by name. The key b"" names one that must not be repeated but was."""
    head: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in head and name in _ONCE:
            head[b""] = name
        head[name] = value
    return head


def _body_refusal(head: dict[bytes, bytes], form: bool) -> Refusal | None:
    length = head.get(b"content-length", b"0")
    empty = length == b"0" and b"transfer-encoding" not in head
    kind = head.get(b"content-type")
    if kind is None and empty:
        return None
    named = (kind or b"").partition(b";")[0].strip().lower()
    if named != b"application/json" and not (form and named == _FORM):
        return Refusal(
            415,
            "not_json",
            "The body must be JSON.",
            "Send it with the header `Content-Type: application/json`.",
        )
    return _TOO_LARGE if length.isdigit() and int(length) > MAX_BODY else None


async def _whole_body(receive: Receive) -> bytes | Refusal | None:
    """The body; None when the client left."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return _TOO_LARGE
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


def _is_start(scope: Scope) -> bool:
    return (
        scope["path"] == "/"
        and scope["method"] in ("GET", "HEAD")
        and b"token=" in scope["query_string"]
    )


def _cookies(line: bytes, name: bytes) -> list[bytes]:
    pairs = (part.strip().partition(b"=") for part in line.split(b";"))
    return [value for key, _, value in pairs if key == name]
