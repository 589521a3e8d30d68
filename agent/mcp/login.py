"""Logs in to servers in the user's browser (OAuth 2.0 for native apps, RFC 8252), keeps the tokens.

The user opens the login page, which sends the browser back to `http://127.0.0.1:PORT/callback`.
Only an answer with the state of this login counts. `mcp_tokens.json` (mode 0600) keeps tokens by
the server's address. A run never starts a login: its error names the command.

The HTTP client sends headers and tokens to the server's own origin only; a login may ask other
origins as well. It limits the size and the rate of answers.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from searchloop.agent.errors import AgentError, ConfigError, ToolError
from searchloop.agent.mcp.server import Pace, Server, change_object, line, read_object
from searchloop.agent.transport.exchange import origin_of
from searchloop.agent.transport.trust import certificates, check_proxies

if TYPE_CHECKING:
    import httpx2

BODY = 8 * 1024 * 1024  # bytes of one answer, and of one event of a stream
_HERE = ("all://127.0.0.1", "all://[::1]", "all://localhost")  # without a proxy
_INNER = frozenset({"local", "localhost", "internal", "lan", "home", "corp", "intranet", "arpa"})
_WAIT = 30.0  # seconds for a connection, and for one write


def _is_inner(url: str) -> bool:
    """Returns True for a number or a name that only this machine or its network knows.

    A name of the internet that leads there fails at its certificate, before anything is sent.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    last = host.rpartition(".")[2]
    return ":" in host or host == last or last[:1].isdigit() or last in _INNER


def first_of(error: BaseException) -> BaseException:
    """Returns the first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_here(url: str) -> bool:
    """Returns True for an address of this machine."""
    origin = origin_of(url)
    return origin is not None and origin.here


class OriginGuard:
    """Event hooks of one server's client: refuse other origins, bound answers.

    `allow` decides about another origin. `status` is the status of the last answer.
    """

    def __init__(self, server: Server, allow: Callable[[str], bool]) -> None:
        self._server, self._allow = server, allow
        self._origin = origin_of(server.url)
        self.status: int | None = None

    async def request(self, request: httpx2.Request) -> None:
        """Raises ToolError for another origin."""
        url = str(request.url)
        if origin_of(url) != self._origin and not self._allow(url):
            name = self._server.name
            what = f"The MCP server {name!r} points to another address, which was not opened."
            remedy = f"If it needs a login: {self._server.log_in()}"
            raise ToolError("mcp_elsewhere", what, remedy)

    async def response(self, response: httpx2.Response) -> None:
        """Bounds the body."""
        self.status = response.status_code
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _bounded(response.stream, None if streamed else BODY)


def client_for(watch: OriginGuard, server: Server, auth: Any = None) -> httpx2.AsyncClient:
    """Makes the client of one server; what runs on this machine is asked without a proxy.

    Raises ConfigError for headers, certificates or a proxy of the environment that cannot be used.
    """
    import httpx2

    proxies = True
    try:
        check_proxies()
    except ConfigError:
        if not is_here(server.url):
            raise
        proxies = False
    try:
        return httpx2.AsyncClient(
            headers=dict(server.headers),
            auth=auth,
            verify=certificates(),
            trust_env=proxies,
            mounts=dict.fromkeys(_HERE),
            timeout=httpx2.Timeout(_WAIT, read=None),  # calls have limits of their own
            event_hooks={"request": [watch.request], "response": [watch.response]},
        )
    except (ValueError, TypeError) as error:
        what = "The headers of an MCP server cannot be used."
        remedy = "Check them for line breaks and typographic characters."
        raise ConfigError("bad_headers", what, remedy) from error


def _bounded(stream: Any, most: int | None) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        """The same bytes, limited in rate and size."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pace, size = Pace(), 0
            async for data in stream:
                size += len(data)
                if most is not None and size > most:
                    words = f"The MCP server sent an answer of more than {most >> 20} MB."
                    raise ToolError("mcp_flood", words, "Ask it for less.")
                yield data
                await pace.spend(len(data), data.count(b"\n\n") + data.count(b"\r\n\r\n"))

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

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
    from mcp import Client

    callback = _Callback(show)
    listening = await asyncio.start_server(
        callback.serve, "127.0.0.1", int(server.oauth.get("callbackPort") or 0), limit=16_384
    )
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        callback.redirect = f"http://127.0.0.1:{port}/callback"
        try:
            async with asyncio.timeout(PATIENCE):
                async with (
                    open_http(server, home, offline=offline, login=callback) as (transport, _),
                    Client(transport, cache=None),
                ):
                    pass
        except TimeoutError as error:
            what = f"Nobody logged in within {PATIENCE:g} seconds."
            raise ToolError("login_timeout", what, "Try again.") from error
        except Exception as error:
            raise _meaning(server, error) from error
    if not callback.used:
        words = f"The MCP server {server.name!r} asks for no login."
        raise ConfigError("no_login", words, "It can be used.")


@asynccontextmanager
async def open_http(
    server: Server, home: Path, *, offline: bool, login: _Callback | None = None
) -> AsyncGenerator[tuple[Any, OriginGuard]]:
    """Yields a transport of the SDK for the server's address, and what watches it.

    Raises ConfigError if nothing may leave this machine and the server is elsewhere.
    """
    from mcp.client.streamable_http import streamable_http_client

    if offline and not is_here(server.url):
        what = f"The MCP server {server.name!r} is not on this machine, and nothing may leave it."
        raise ConfigError("offline", what, "Unset SEARCHLOOP_OFFLINE to use it.")
    tokens = Tokens(home, server, login)
    watch = OriginGuard(server, tokens.allows)
    async with client_for(watch, server, tokens.auth()) as http:
        yield streamable_http_client(server.url, http_client=http, max_sse_event_size=BODY), watch


def _meaning(server: Server, error: BaseException) -> AgentError:
    error = first_of(error)
    if isinstance(error, AgentError):
        return error
    words = f"The login to the MCP server {server.name!r} failed: {type(error).__name__}."
    return ToolError("login_failed", words, "Check its address, then try again.")


class _Callback:
    """A login in the browser, which comes back to the address `redirect`."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self.redirect = ""
        self._state = secrets.token_urlsafe()  # matches nothing until the real one is known
        self._came: asyncio.Future[dict[str, str]] | None = None
        self.used = False

    def begin(self, url: str) -> None:
        """Shows the login page."""
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


FILE = "mcp_tokens.json"
_NOWHERE = "http://127.0.0.1/callback"  # a redirect address is required, but no browser opens


class Tokens:
    """The SDK's `TokenStorage` for one server. `login` is set during a login."""

    def __init__(self, home: Path, server: Server, login: _Callback | None = None) -> None:
        self._path = home / FILE
        self._server = server
        self._login = login
        self._kept: dict[str, Any] = read_object(self._path).get(server.url) or {}
        self._provider: OAuthClientProvider | None = None

    def auth(self) -> OAuthClientProvider | None:
        """Returns the authentication for the client, None without tokens and login."""
        if not self._kept.get("tokens") and self._login is None:
            return None
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata

        login = self._login
        metadata = OAuthClientMetadata.model_validate(
            {
                "redirect_uris": [login.redirect if login else _NOWHERE],
                "client_name": "searchloop",
                "scope": self._server.oauth.get("scope"),
            }
        )
        self._provider = OAuthClientProvider(
            self._server.url,
            metadata,
            self,
            redirect_handler=self._begin,
            callback_handler=login.answer if login else self._never,
        )
        if login is None and self._kept.get("metadata"):  # a refresh needs its address
            self._provider.context.oauth_metadata = OAuthMetadata.model_validate(
                self._kept["metadata"]
            )
            self._provider.context.token_expiry_time = self._kept.get("expires")
        return self._provider

    def allows(self, url: str) -> bool:
        """Returns True for another origin that a login, or a refresh of the tokens, may ask."""
        if self._login and url.startswith("https://"):
            return not _is_inner(url) or _is_inner(self._server.url)
        if self._login:
            return is_here(url) and is_here(self._server.url)
        endpoint = (self._kept.get("metadata") or {}).get("token_endpoint")
        return isinstance(endpoint, str) and origin_of(url) == origin_of(endpoint)

    async def _begin(self, url: str) -> None:
        """Shows the login page; the server chose its address, and a browser would open any."""
        if self._login is None:
            what = f"The login to the MCP server {self._server.name!r} has run out."
            raise ConfigError("mcp_login", what, self._server.log_in())
        if not self.allows(url):
            words = f"The login page is not on a public https:// address: {line(url, 200)}"
            raise ConfigError("bad_login", words, "Do not use this server.")
        self._login.begin(url)

    async def _never(self) -> AuthorizationCodeResult:
        raise AssertionError("nothing was shown that could be answered")

    async def get_tokens(self) -> OAuthToken | None:
        """See `TokenStorage`. A new login does not start from old tokens."""
        from mcp.shared.auth import OAuthToken

        tokens = None if self._login else self._kept.get("tokens")
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See `TokenStorage`."""
        self._kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._kept["expires"] = time.time() + tokens.expires_in if tokens.expires_in else None
        metadata = self._provider.context.oauth_metadata if self._provider else None
        if metadata:
            self._kept["metadata"] = metadata.model_dump(mode="json", exclude_none=True)
        self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See `TokenStorage`. The `oauth` setting may name a client; any other is registered at
        each login, because its redirect address has another port.
        """
        from mcp.shared.auth import OAuthClientInformationFull

        known = self._server.oauth
        if known.get("clientId"):
            return OAuthClientInformationFull.model_validate(
                {"client_id": known["clientId"], "client_secret": known.get("clientSecret")}
            )
        client = None if self._login else self._kept.get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See `TokenStorage`."""
        self._kept["client"] = client_info.model_dump(mode="json", exclude_none=True)
        self._save()

    def _save(self) -> None:
        change_object(self._path, lambda value: value.update({self._server.url: self._kept}))


def kept_tokens(home: Path) -> dict[str, str]:
    """Returns all tokens by name; none of them may leave in a call."""
    return {
        f"{name} of {url}": tokens[name]
        for url, kept in read_object(home / FILE).items()
        for tokens in [kept.get("tokens") or {}]
        for name in ("access_token", "refresh_token")
        if tokens.get(name)
    }


def forget(home: Path, url: str) -> None:
    """Deletes the tokens for this address."""
    if url in read_object(home / FILE):
        change_object(home / FILE, lambda value: value.pop(url, None))
