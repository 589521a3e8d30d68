"""The gate: decides who may talk to this server, before any other code sees a request.

A page of another site can reach 127.0.0.1 from the user's browser, so an address proves nothing.
Every request needs an exact Host, an Origin (if any) from the same list, and the token; a body must
be JSON, small but for files, and arrive in time. Every answer leaves with the security headers.

Others may import: access, sign_in.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from searchloop.agent.errors import AgentError
from searchloop.web.asgi import JSON, App, Header, Message, Receive, Scope, Send, answer, read_body
from searchloop.web.gate import sign_in
from searchloop.web.gate.access import Access, Person, given_token

_UNUSED = ("camera", "display-capture", "geolocation", "payment", "usb")
_SECURITY: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-dns-prefetch-control", b"off"),  # a link's host would be asked for before it is followed
    (b"permissions-policy", ", ".join(f"{name}=()" for name in _UNUSED).encode()),
)
_SECURITY_NAMES = frozenset(name for name, _ in _SECURITY)


def policy(nonce: str | None = None) -> str:
    """Returns the Content-Security-Policy: only our own files, and only scripts with this nonce."""
    script = f"'nonce-{nonce}'" if nonce else "'none'"
    return (
        f"default-src 'none'; script-src {script}; style-src 'self'; img-src 'self' data:; "
        "frame-src 'self'; manifest-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


_DEFAULTS: tuple[Header, ...] = (
    (b"content-security-policy", policy().encode()),
    (b"cache-control", b"no-store"),
)


class Refusal(NamedTuple):
    """An answer that replaces the application's."""

    status: int
    code: str
    message: str
    remedy: str
    headers: tuple[Header, ...] = ()
    seconds: int = 0  # to wait


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
    """Sends a refusal as JSON, and as a page to a browser."""
    head = dict(scope["headers"])
    own: tuple[Header, ...] = (*refusal.headers, JSON)
    error = {"code": refusal.code, "message": refusal.message, "remedy": refusal.remedy}
    if sign_in.is_shown(head.get(b"accept", b"").decode("latin-1"), scope["path"]):
        accepted = head.get(b"accept-language", b"").decode("latin-1")
        text = sign_in.page(error, accepted, refusal.seconds)
        own = (*refusal.headers, (b"content-type", b"text/html; charset=utf-8"))
        own += ((b"content-security-policy", sign_in.POLICY.encode()),)
    else:
        shown = (refusal_body(scope["path"], refusal) if refusal_body else None) or {"error": error}
        text = json.dumps(shown, ensure_ascii=False)
    await answer(send, refusal.status, text.encode("utf-8", "replace"), own)


_log = logging.getLogger(__name__)

MAX_BODY = 1024 * 1024  # bytes
SKIPPED = 256 * 2**20  # bytes of a body that is too large, read only to be able to answer
SIGN_IN_BODY = 4096  # bytes: it comes from nobody that we know yet
BODY_SECONDS = 10.0
# Requests with files, and how large and slow these may be.
MAX_FILES = 30 * MAX_BODY
_FILES = re.compile(
    r"/api/(?:sessions/[^/]+/messages|attachments|audit)"
    r"|/v1/(?:chat/completions|responses|messages(?:/count_tokens)?)"
)
_SLOWER = 12
# A file that goes to disk as it arrives, and what it may be; the handler bounds its time.
IMPORT_PATH, MAX_IMPORT = "/api/sessions/import", 2 << 30
_JSON = b"application/json"
_FILE_KINDS = (b"application/octet-stream", b"application/zip", _JSON)
# A browser that adds a search engine reads its description without a cookie.
OPEN_PATHS = frozenset({"/api/health", "/opensearch.xml"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BODIES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_FORM = b"application/x-www-form-urlencoded"
_SAME = frozenset({b"same-origin", b"none"})
# A request that repeats one of these headers is ambiguous, so it is refused.
_ONCE = (b"host", b"origin", b"sec-fetch-site", b"authorization", b"x-api-key", b"content-type")

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
_BAD_TOKEN = Refusal(
    401, "bad_token", "This token or start link is not valid.", _OR_HEADER, _BEARER
)
_HOME: tuple[Header, ...] = ((b"location", b"/"),)
PERSON = "searchloop.person"  # the key of a request's scope under which its Person travels
_NOT_JSON = Refusal(
    415, "not_json", "The body must be JSON.", "Send the header `Content-Type: application/json`."
)
_NOT_FILE = Refusal(
    415, "not_an_export", "A file of chats is JSON or ZIP.", "Send `Content-Type: application/zip`."
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
        self._forms = form_paths if access.open_to_all else {sign_in.PATH}
        self._refusal_body = refusal_body
        self._app = app
        self._access = access
        self._hosts = access.hosts()
        self._public = access.public.encode() or None
        self._once = {*_ONCE, access.people.header} if access.people else {*_ONCE}
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or refuses it."""
        secured, head = SecureSend(send), _head(scope["headers"], self._once)
        refusal = await self._judged(scope, head)
        if isinstance(refusal, Person):
            scope, refusal = {**scope, PERSON: refusal}, None
        elif refusal is not None and refusal.status == 413:
            await self._skip(head, receive)
        if refusal is None and scope["method"] in _BODIES and not _is_file(scope):
            body = await self._read(head, receive, self._body(scope)[0])
            if body is None:
                return
            if isinstance(body, Refusal):
                refusal = body
            elif self._is_form(scope):
                refusal = self._enter(given_token(body.decode("utf-8", "replace")), scope, head)
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

    async def _skip(self, head: dict[bytes, bytes], receive: Receive) -> None:
        """Reads past a body that is too large: most clients read no answer before all is sent, and
        would see a broken connection. One that waits for a word of ours gets the refusal."""
        left = 0 if b"expect" in head else SKIPPED
        with suppress(TimeoutError):
            async with asyncio.timeout(self._body_seconds):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def _judged(self, scope: Scope, head: dict[bytes, bytes]) -> Refusal | Person | None:
        """Returns who asks, or the answer instead of the application's; None where all may ask."""
        try:
            judged: Refusal | Person | None = self._refusal(scope, head)
            if judged is None and not self._access.open_to_all:
                judged = await self._admit(scope, head)
        except AgentError as error:  # the file of the token
            _log.error("%s %s", error.message, error.remedy)
            return _INTERNAL
        if isinstance(judged, Refusal) or scope["method"] not in _BODIES:
            return judged
        return _body_refusal(head, *self._body(scope)) or judged

    def _body(self, scope: Scope) -> tuple[int, Sequence[bytes]]:
        """Returns how large the body may be, and of which kinds."""
        if _is_file(scope):
            return MAX_IMPORT, _FILE_KINDS
        if self._is_form(scope):
            return SIGN_IN_BODY, (_JSON, _FORM)
        most = MAX_FILES if _FILES.fullmatch(scope["path"]) else MAX_BODY
        return most, (_JSON, _FORM) if scope["path"] in self._forms else (_JSON,)

    def _refusal(self, scope: Scope, head: dict[bytes, bytes]) -> Refusal | None:
        """Returns the reason to refuse this request, whoever asks, or None."""
        method, path, origin = scope["method"], scope["path"], head.get(b"origin")
        if b"" in head:
            words = f"The header {head[b''].decode()} is there twice."
            return Refusal(400, "ambiguous", words, "Send it once.")
        if not self._is_ours(head.get(b"host", b""), scope):
            words = "This server does not answer to that host name."
            remedy = f"Open http://127.0.0.1:{self._access.port} on this machine."
            return Refusal(403, "bad_host", words, remedy)
        if (
            origin is not None
            and origin != self._public
            and not (origin.startswith(b"http://") and self._is_ours(origin[7:], scope))
        ):
            return _FOREIGN_ORIGIN
        if head.get(b"sec-fetch-site", b"none") not in _SAME:
            return _CROSS_SITE
        if method not in _METHODS:
            words = f"The method {method[:20]!r} is not used here."
            return Refusal(405, "bad_method", words, f"Use one of {', '.join(sorted(_METHODS))}.")
        strange = path[:1] != "/" or path[:2] == "//" or "\0" in path
        if strange or not scope["query_string"].isascii():
            return _BAD_ADDRESS
        return None

    def _is_ours(self, host: bytes, scope: Scope) -> bool:
        host = host.lower()
        return host in self._hosts or host == self._access.arrived_at(scope.get("server"))

    def _is_form(self, scope: Scope) -> bool:
        signs_in = scope["path"] == sign_in.PATH and scope["method"] == "POST"
        return signs_in and not self._access.open_to_all

    async def _admit(self, scope: Scope, head: dict[bytes, bytes]) -> Person | Refusal:
        """Returns who asks, or the answer to nobody we know. A start link gets a redirect."""
        path, query = scope["path"], scope["query_string"].decode()
        if path == "/" and scope["method"] == "GET" and "token=" in query:
            return self._enter(given_token(query), scope, head, link=True)
        if path in OPEN_PATHS or self._is_form(scope):
            return Person()
        who = await self._access.admit(scope, head)
        if isinstance(who, Person):
            return who if path != sign_in.PATH else Refusal(303, "welcome", "", "", _HOME)
        return _NO_TOKEN if who is None else _wrong(who)

    def _enter(
        self, given: bytes, scope: Scope, head: dict[bytes, bytes], *, link: bool = False
    ) -> Refusal:
        """Answers a start link or the sign-in form: sets the cookie if the token is right."""
        who = self._access.guess(given, scope, head, link=link)
        if not isinstance(who, Person):
            return _wrong(who)
        cookie = self._access.set_cookie(head.get(b"host", b""))
        return Refusal(303, "welcome", "", "", (*_HOME, (b"set-cookie", cookie)))

    async def _read(
        self, head: dict[bytes, bytes], receive: Receive, most: int
    ) -> bytes | Refusal | None:
        """Returns the whole body, so that no thread waits for it; None when the client left."""
        seconds = self._body_seconds * (_SLOWER if most == MAX_FILES else 1)
        if head.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in head:
            return b""
        try:
            async with asyncio.timeout(seconds):
                body = await read_body(receive, most)
        except TimeoutError:
            return _TOO_SLOW
        return _too_large(most) if body is not None and len(body) > most else body


def _wrong(seconds: int) -> Refusal:
    """Returns the answer to a wrong token, after which there are so many seconds to wait."""
    if not seconds:
        return _BAD_TOKEN
    what, remedy = "Too many wrong tokens came from this address.", f"Try again in {seconds} s."
    later = ((b"retry-after", str(seconds).encode()),)
    return Refusal(429, "too_many_guesses", what, remedy, later, seconds)


def _head(headers: Sequence[Header], once: Collection[bytes]) -> dict[bytes, bytes]:
    """Returns headers by name. The key b"" names one that is repeated and must not be."""
    head: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in head and name in once:
            head[b""] = name
        head[name] = value
    return head


def _is_file(scope: Scope) -> bool:
    """Tells the request that brings chats in: its body is streamed to the application."""
    return bool(scope["path"] == IMPORT_PATH and scope["method"] == "POST")


def _body_refusal(head: dict[bytes, bytes], most: int, kinds: Sequence[bytes]) -> Refusal | None:
    length = head.get(b"content-length", b"0")
    empty = length == b"0" and b"transfer-encoding" not in head
    kind = head.get(b"content-type")
    if kind is None and empty:
        return None
    if (kind or b"").partition(b";")[0].strip().lower() not in kinds:
        return _NOT_FILE if kinds is _FILE_KINDS else _NOT_JSON
    return _too_large(most) if length.isdigit() and int(length) > most else None


def _too_large(most: int) -> Refusal:
    size = f"{most >> 20} MiB" if most < MAX_IMPORT else f"{most >> 30} GB"
    remedy = (
        "Send less; `searchloop library add` and `searchloop sessions import` take large files."
    )
    what = (
        f"The request is larger than {size}." if most > SIGN_IN_BODY else "The form is too large."
    )
    return Refusal(413, "too_large", what, remedy)


def _with_body(scope: Scope, body: bytes, receive: Receive) -> tuple[Scope, Receive]:
    """Returns the scope and the `receive` of a request whose body has been read."""
    dropped = (b"content-length", b"transfer-encoding", b"expect")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    headers.append((b"content-length", str(len(body)).encode()))
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return {**scope, "headers": headers}, replay
