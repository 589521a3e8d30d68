"""A pooler before PostgreSQL, as pgbouncer is one: it answers for the server when one connects.

https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

_HEAD = struct.Struct("!ci")
_KEY = b"K" + struct.pack("!iii", 12, 1, 1)  # that of no process of the server


def _taken(source: socket.socket, count: int) -> bytes:
    """So many bytes; EOFError when there are fewer."""
    data = b""
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _message(source: socket.socket) -> bytes:
    head = _taken(source, _HEAD.size)
    return head + _taken(source, _HEAD.unpack(head)[1] - 4)


def _until_ready(source: socket.socket) -> Iterator[bytes]:
    """Messages of the server up to the one that says it is ready, which is the last."""
    while True:
        message = _message(source)
        yield message
        if message[:1] == b"Z":
            return


class Pooler:
    """At a port of its own, before one of 127.0.0.1. Use with `with`.

    With `shared` all clients have one connection, each for a transaction; else each has its own.
    """

    def __init__(self, port: int, *, shared: bool) -> None:
        self._to, self._shared = port, shared
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._turn = threading.Lock()
        self._server: socket.socket | None = None
        self._greeting: list[bytes] = []

    def _connected(self, startup: bytes) -> tuple[socket.socket, list[bytes]]:
        if self._server is None or not self._shared:
            self._server = socket.create_connection(("127.0.0.1", self._to))
            self._server.sendall(startup)
            self._greeting = [m if m[:1] != b"K" else _KEY for m in _until_ready(self._server)]
        return self._server, self._greeting

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            size = _taken(client, 4)
            startup = size + _taken(client, struct.unpack("!i", size)[0] - 4)
            if len(startup) == 8:  # a wish for TLS or the like
                client.sendall(b"N")
                size = _taken(client, 4)
                startup = size + _taken(client, struct.unpack("!i", size)[0] - 4)
            with self._turn:
                server, greeting = self._connected(startup)
            client.sendall(b"".join(greeting))
            if self._shared:
                self._take_turns(client, server)
            else:
                back = threading.Thread(target=self._back, args=(server, client), daemon=True)
                back.start()
                while data := client.recv(65536):
                    server.sendall(data)
                server.close()

    def _take_turns(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            message = _message(client)
            with self._turn:
                state = b"T"
                while state != b"I":
                    if message[:1] == b"X":
                        return
                    server.sendall(message)
                    if message[:1] in b"QS":
                        for answer in _until_ready(server):
                            client.sendall(answer)
                            state = answer[-1:]
                    if state != b"I":
                        message = _message(client)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Pooler:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *rest: object) -> None:
        self._listener.close()
        if self._server is not None:
            self._server.close()
