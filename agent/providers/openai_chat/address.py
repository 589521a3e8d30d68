"""Which server is asked, and which key may go there."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.settings import Setting

DEFAULT_BASE = "https://api.openai.com/v1"
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "OPENAI_CHAT_BASE_URL",
        "A server of the Chat Completions API (default: OPENAI_BASE_URL)",
        aliases=("OPENAI_BASE_URL",),
    ),
    Setting("OPENAI_CHAT_API_KEY", "Key for that server, if it wants one", secret=True),
)


@dataclass(frozen=True, slots=True)
class Server:
    """One server. `chosen` is whether the user named it, rather than our default."""

    base: str
    key: str = field(default="", repr=False)
    chosen: bool = True

    def address(self, path: str) -> str:
        """An endpoint under the base URL."""
        return f"{self.base.rstrip('/')}/{path}"

    @property
    def host(self) -> str:
        """Its host name, empty when the URL has none."""
        origin = _origin(self.base)
        return origin[1] if origin else ""

    @property
    def official(self) -> bool:
        """Whether it is the API's own maker."""
        return _is_official(self.base)

    @property
    def name(self) -> str:
        """How we call it."""
        if self.official:
            return "OpenAI"
        return f"The server at {self.host or 'an unknown address'}"

    @property
    def needs_key(self) -> bool:
        """A server of one's own may want no key; the official one always does."""
        return self.official and not self.key

    @property
    def loopback(self) -> bool:
        """Whether it is this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def own(self) -> bool:
        """Whether it is this machine or one beside it, where the user decides on the window."""
        try:
            return self.loopback or ipaddress.ip_address(self.host).is_private
        except ValueError:
            return bool(self.host) and "." not in self.host.removesuffix(".local")


def find_server(env: Mapping[str, str]) -> Server:
    """The server that the settings name.

    OPENAI_API_KEY goes along only to OpenAI and to the origin of OPENAI_BASE_URL.
    """
    own, shared = _read(env, "OPENAI_CHAT_BASE_URL"), _read(env, "OPENAI_BASE_URL")
    base = own or shared or DEFAULT_BASE
    key = _read(env, "OPENAI_CHAT_API_KEY")
    chosen = bool(own or key) or not _is_official(base)
    origin = _origin(base)
    meant = _is_official(base) or (origin is not None and origin == _origin(shared))
    if not key and meant:
        key = _read(env, "OPENAI_API_KEY")
    return Server(base, key, chosen)


def _read(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or "").strip()


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        return (parts.scheme, parts.hostname, port) if parts.hostname else None
    except ValueError:
        return None  # the transport says what is wrong with it


def _is_official(url: str) -> bool:
    return _origin(url) == ("https", "api.openai.com", 443)
