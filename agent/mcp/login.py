"""Logs in to a server in the user's browser (OAuth 2.0 for native apps, RFC 8252).

The user opens the login page, which sends the browser back to `http://127.0.0.1:PORT/callback`.
Only an answer with the state of this login counts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from searchloop.agent.errors import AgentError, ConfigError, ToolError
from searchloop.agent.mcp.connection import first_of
from searchloop.agent.mcp.http import OriginGuard, Tokens, check_address, client_for, is_here
from searchloop.agent.mcp.server import Server, line

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

PATIENCE = 300.0  # seconds for a person to log in
_DONE = "Logged in. You can close this window and go back to searchloop."
_FAILED = "The login was refused. Go back to searchloop."


async def log_in(
    server: Server, home: Path, show: Callable[[str], None], *, offline: bool = False
) -> None:
    """Logs in to a server; `show` gets the address to open. Raises AgentError."""
    if server.kind != "http":
        what = f"The MCP server {server.name!r} runs on this machine and has no login."
        raise ConfigError("no_login", what, 'Give it its key in "env".')
    check_address(server.name, server.url, offline=offline)
    callback = _Callback(show)
    listening = await asyncio.start_server(
        callback.serve, "127.0.0.1", int(server.oauth.get("callbackPort") or 0), limit=16_384
    )
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        callback.redirect = f"http://127.0.0.1:{port}/callback"
        try:
            async with asyncio.timeout(PATIENCE):
                await _connect(server, Tokens(home, server, callback))
        except TimeoutError as error:
            what = f"Nobody logged in within {PATIENCE:g} seconds."
            raise ToolError("login_timeout", what, "Try again.") from error
        except Exception as error:
            raise _meaning(server, error) from error
    if not callback.used:
        raise ConfigError(
            "no_login", f"The MCP server {server.name!r} asks for no login.", "It can be used."
        )


async def _connect(server: Server, tokens: Tokens) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    watch = OriginGuard(server.name, server.url, tokens.allows)
    async with (
        client_for(watch, server.headers, tokens.auth()) as http,
        Client(streamable_http_client(server.url, http_client=http), cache=None),
    ):
        pass


def _meaning(server: Server, error: BaseException) -> AgentError:
    error = first_of(error)
    if isinstance(error, AgentError):
        return error
    words = f"The login to the MCP server {server.name!r} failed: {type(error).__name__}."
    return ToolError("login_failed", words, "Check its address, then try again.")


class _Callback:
    """Waits for the browser. See `BrowserLogin`."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self.redirect = ""
        self._state = secrets.token_urlsafe()  # matches nothing until the real one is known
        self._came: asyncio.Future[dict[str, str]] | None = None
        self.used = False

    async def begin(self, url: str) -> None:
        # The server chose this address, and a browser would open any.
        if not (url.startswith("https://") or (url.startswith("http://") and is_here(url))):
            words = f"The login page has no https:// address: {line(url, 200)}"
            raise ConfigError("bad_login", words, "Do not use this server.")
        self._state = parse_qs(urlsplit(url).query).get("state", [self._state])[0]
        self._came = asyncio.get_running_loop().create_future()
        self.used = True
        self._show(url)

    async def answer(self) -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        assert self._came
        said = await self._came
        if "code" not in said:
            why = said.get("error", "no code")[:80]
            raise ConfigError("login_refused", f"The login was refused ({why}).", "Try again.")
        return AuthorizationCodeResult(
            code=said["code"], state=said.get("state"), iss=said.get("iss")
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request of the browser, or of another program on this machine."""
        try:
            async with asyncio.timeout(10):
                asked_for = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = asked_for.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            asked = urlsplit(target)
            said = {key: values[0] for key, values in parse_qs(asked.query).items()}
            ours = method == "GET" and asked.path == "/callback"
            ours = ours and secrets.compare_digest(
                said.get("state", "").encode(), self._state.encode()
            )
            text = (_DONE if "code" in said else _FAILED) if ours else "Not found."
            status = "200 OK" if ours else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            head += f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
            writer.write((head + text).encode())
            await writer.drain()
            if ours and self._came and not self._came.done():
                self._came.set_result(said)
        except (OSError, ValueError, TimeoutError, EOFError, asyncio.LimitOverrunError):
            pass  # it was not the browser, which comes by itself
        finally:
            writer.close()
