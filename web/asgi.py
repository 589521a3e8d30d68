"""Small ASGI pieces: the types, refusals, and answers sealed with the security headers."""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

_SEAL: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"permissions-policy",
        b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
)
_SEALED = frozenset(name for name, _ in _SEAL)


def policy(nonce: str | None = None) -> str:
    """The Content-Security-Policy: nothing but our own files; scripts only with this nonce."""
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
    """An answer given in place of the application's."""

    status: int
    code: str
    message: str
    remedy: str
    headers: tuple[Header, ...] = ()


# The JSON of a refusal at a path where clients expect a shape of their own; None elsewhere.
Worded = Callable[[str, Refusal], dict[str, Any] | None]


class Seal:
    """A `send` that puts the security headers on the answer and lets no CORS header out."""

    __slots__ = ("_send", "started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        """See ASGI's send."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = [
                (name, value)
                for name, value in message.get("headers", ())
                if name not in _SEALED and not name.startswith(b"access-control-")
            ]
            given = {name for name, _ in headers}
            headers += _SEAL
            headers += [header for header in _DEFAULTS if header[0] not in given]
            message = {**message, "headers": headers}
        await self._send(message)


async def refuse(refusal: Refusal, scope: Scope, send: Send, worded: Worded | None = None) -> None:
    """Sends a refusal: JSON for programs, one sentence for a person who opens the page."""
    headers = list(refusal.headers)
    error = {"code": refusal.code, "message": refusal.message, "remedy": refusal.remedy}
    accept = next((v for k, v in scope["headers"] if k == b"accept"), b"")
    if refusal.status == 303:
        body = b""
    elif b"text/html" in accept and not scope["path"].startswith("/api/"):
        words = html.escape(f"{refusal.message} {refusal.remedy}".strip())
        body = f"<!doctype html><title>searchloop</title><p>{words}</p>".encode()
        headers.append((b"content-type", b"text/html; charset=utf-8"))
    else:
        told = (worded(scope["path"], refusal) if worded else None) or {"error": error}
        body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        headers.append((b"content-type", b"application/json"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
