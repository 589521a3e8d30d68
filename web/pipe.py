"""The short way for what follows in a stream: written to the connection, not sent through ASGI.

An event costs a thousand followers a thousand writes, and the framing library costs more than the
write does. A chunk is framed once for all of them. Head and end of the answer still go through the
server, which keeps the rules of HTTP; this writes whole chunks between the two.

Spec: RFC 9112 7.1 (chunked); https://asgi.readthedocs.io (extensions of a scope)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from web.asgi import App, Receive, Scope, Send

if TYPE_CHECKING:
    from asyncio import Transport

    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.h11_impl import H11Protocol

EXTENSION = "searchloop.pipe"


class Connected(Protocol):
    """What of a server's connection is needed here."""

    @property
    def transport(self) -> Transport:
        """Where bytes go."""

    @property
    def flow(self) -> FlowControl:
        """Whether it takes some now."""


class Pipe:
    """The connection of one stream, once its head was sent."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connected) -> None:
        self._connection = connection

    def ready(self) -> bool:
        """Whether the client takes what is sent; ask before each write."""
        connection = self._connection
        return not (connection.flow.write_paused or connection.transport.is_closing())

    def write(self, framed: bytes) -> None:
        """Writes what `chunk` has framed; never waits."""
        self._connection.transport.write(framed)


def chunk(data: bytes) -> bytes:
    """Some of a body, not empty, framed."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def pipe_of(scope: Scope) -> Pipe | None:
    """The pipe of this request, where its server has one and its client knows chunks."""
    pipe: Pipe | None = scope.get("extensions", {}).get(EXTENSION)
    return pipe if scope.get("http_version") == "1.1" else None


def with_pipes() -> type[H11Protocol]:
    """uvicorn's protocol, whose requests know their connection."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Piped(H11Protocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.app = _known(self, self.app)

    return Piped


def _known(connection: H11Protocol, app: Any) -> Any:
    inner: App = app

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("extensions", {})[EXTENSION] = Pipe(connection)
        await inner(scope, receive, send)

    return known
