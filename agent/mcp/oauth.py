"""Logging in to servers that ask for it: OAuth as the SDK does it, with the tokens in a file.

Tokens are kept by the server's address in `mcp_tokens.json` (mode 0600) and go to that address
only. A run never starts a login: it says which command does.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.errors import ConfigError
from agent.mcp.files import change_object, read_object
from agent.mcp.http import is_here, origin_of
from agent.mcp.server import Server

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

FILE = "mcp_tokens.json"
_NOWHERE = "http://127.0.0.1/callback"  # where a browser would come back to, had we opened one


class Login:
    """How a login is shown, and where the browser comes back to."""

    def __init__(
        self,
        redirect: str,
        show: Callable[[str], Awaitable[None]],
        answer: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        self.redirect = redirect
        self.show = show
        self.answer = answer


class Tokens:
    """What the SDK's `TokenStorage` asks for, for one server. `login` is set while one goes on."""

    def __init__(self, home: Path, server: Server, login: Login | None = None) -> None:
        self._path = home / FILE
        self._server = server
        self._login = login
        self._kept: dict[str, Any] = read_object(self._path).get(server.url) or {}
        self._provider: OAuthClientProvider | None = None

    def auth(self) -> OAuthClientProvider | None:
        """For the HTTP client; None when there is nothing to log in with."""
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
            redirect_handler=login.show if login else self._refuse,
            callback_handler=login.answer if login else self._never,
        )
        if login is None and self._kept.get("metadata"):  # else a refresh would go astray
            self._provider.context.oauth_metadata = OAuthMetadata.model_validate(
                self._kept["metadata"]
            )
            self._provider.context.token_expiry_time = self._kept.get("expires")
        return self._provider

    def allows(self, url: str) -> bool:
        """Whether another origin than the server's may be asked: to refresh, or during a login."""
        if self._login:
            return url.startswith("https://") or (is_here(url) and is_here(self._server.url))
        endpoint = (self._kept.get("metadata") or {}).get("token_endpoint")
        return isinstance(endpoint, str) and origin_of(url) == origin_of(endpoint)

    async def _refuse(self, url: str) -> None:
        name = self._server.name
        what = f"The login to the MCP server {name!r} has run out."
        raise ConfigError("mcp_login", what, f"searchloop mcp login {name}")

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
        """See `TokenStorage`. A client registered by hand is in the server's `oauth` setting; any
        other is registered anew at each login, because its redirect address has another port.
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
        def put(value: dict[str, Any]) -> None:
            value[self._server.url] = self._kept

        change_object(self._path, put)


def kept_tokens(home: Path) -> dict[str, str]:
    """The tokens that are kept, each under what it is: none of them may leave in a call."""
    return {
        f"{name} of {url}": tokens[name]
        for url, kept in read_object(home / FILE).items()
        for tokens in [kept.get("tokens") or {}]
        for name in ("access_token", "refresh_token")
        if tokens.get(name)
    }


def forget(home: Path, url: str) -> None:
    """Logs out: the tokens for this address are gone."""
    if url in read_object(home / FILE):
        change_object(home / FILE, lambda value: value.pop(url, None))
