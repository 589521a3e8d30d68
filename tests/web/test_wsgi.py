"""WSGI on threads behind ASGI: what goes in and what comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from searchloop.web.gate import Message
from searchloop.web.wsgi import OnThreads

SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/a b/ü",
    "raw_path": b"/a%20b/%C3%BC",
    "query_string": b"x=1&y=%20",
    "http_version": "1.1",
    "scheme": "http",
    "server": ("127.0.0.1", 3002),
    "client": ("127.0.0.1", 5),
    "headers": [
        (b"content-type", b"application/json"),
        (b"content-length", b"999"),
        (b"x-two", b"1"),
        (b"x-two", b"2"),
    ],
}
Environ = dict[str, Any]


def run(
    app: Callable[[Environ, Callable[..., Any]], Iterable[bytes]], *pieces: bytes
) -> list[Message]:
    """What is sent for a request with a body in these pieces; no piece = the client has gone."""
    sent: list[Message] = []
    waiting: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": at + 1 < len(pieces)}
        for at, piece in enumerate(pieces)
    ] or [{"type": "http.disconnect"}]

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(OnThreads(app, 1)(SCOPE, receive, send))
    return sent


def test_request_and_answer_arrive_whole() -> None:
    """Method, path, query, headers and body as PEP 3333 wants them; status, headers, body back."""
    seen: Environ = {}

    def app(environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        seen.update(environ, body=environ["wsgi.input"].read())
        start("201 CREATED", [("X-One", "1"), ("Set-Cookie", "a"), ("Set-Cookie", "b")])
        return [b"he", b"llo"]

    start, body = run(app, b"abc", b"def")
    assert (start["status"], body["body"]) == (201, b"hello")
    assert start["headers"] == [(b"x-one", b"1"), (b"set-cookie", b"a"), (b"set-cookie", b"b")]
    assert seen["body"] == b"abcdef"
    assert seen["CONTENT_LENGTH"] == "6"
    assert seen["PATH_INFO"].encode("latin-1").decode() == "/a b/ü"
    assert (seen["QUERY_STRING"], seen["HTTP_X_TWO"]) == ("x=1&y=%20", "1, 2")
    assert (seen["CONTENT_TYPE"], seen["REQUEST_METHOD"]) == ("application/json", "POST")


def test_a_client_that_has_gone_is_not_answered() -> None:
    """Nothing is called for nobody."""

    def app(_: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        raise AssertionError("called")

    assert run(app) == []
