"""Where Ollama is, and whether the key may go there.

The rules for OLLAMA_HOST are Ollama's own, so that one variable serves its tools and us: no scheme
means port 11434, `http://h` means port 80, and an address to listen on (0.0.0.0) is reached through
loopback. A path is kept, because proxies and fake servers live below one.

https://github.com/ollama/ollama/blob/main/envconfig/config.go
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from agent.errors import ConfigError

DEFAULT_PORT = 11434
DEFAULT_HOST = f"127.0.0.1:{DEFAULT_PORT}"
CLOUD = "ollama.com"


@dataclass(frozen=True, slots=True)
class Address:
    """One Ollama server. `base` has no trailing slash and no password; paths are appended to it."""

    base: str
    hostname: str
    secure: bool
    login: str | None = field(default=None, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether it is this machine."""
        if self.hostname == "localhost" or self.hostname.endswith(".localhost"):
            return True
        try:
            return _plain_ip(self.hostname).is_loopback
        except ValueError:
            return False

    @property
    def cloud(self) -> bool:
        """Whether it is Ollama's own service and not somebody's server."""
        return self.hostname == CLOUD or self.hostname.endswith(f".{CLOUD}")

    def authorization(self, key: str | None, key_host: str | None) -> Mapping[str, str]:
        """The Authorization header for this address, or nothing.

        OLLAMA_API_KEY belongs to ollama.com and goes there over https only. Another host gets it
        when OLLAMA_API_KEY_HOST names that host, and then over https or loopback.
        """
        named = bool(key_host) and (key_host or "").strip().lower() == self.hostname
        if key and ((self.cloud and self.secure) or (named and (self.secure or self.loopback))):
            return {"authorization": f"Bearer {key}"}
        return {"authorization": f"Basic {self.login}"} if self.login else {}


def parse_address(value: str) -> Address:
    """OLLAMA_HOST as an address. Raises ConfigError when it cannot be one."""
    text = value.strip().strip("\"'").strip() or DEFAULT_HOST
    scheme, mark, rest = text.partition("://")
    try:
        if not mark:
            cloud = text == CLOUD
            parts = urlsplit(f"{'https' if cloud else 'http'}://{_with_brackets(text)}")
            port = parts.port or (None if cloud else DEFAULT_PORT)
        else:
            parts = urlsplit(f"{scheme.lower()}://{_with_brackets(rest)}")
            port = parts.port
        if parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
            raise ValueError("only http:// and https:// addresses work here")
        if any(c.isspace() for c in parts.netloc + parts.path):
            raise ValueError("it holds blanks")
    except ValueError as error:
        raise ConfigError(
            "bad_ollama_host",
            f"OLLAMA_HOST {text.rpartition('@')[2]!r} is not an address: {error}.",
            "Write host, host:port or a URL, for example OLLAMA_HOST=http://127.0.0.1:11434.",
        ) from error
    hostname = _reachable(parts.hostname or "127.0.0.1")
    netloc = (f"[{hostname}]" if ":" in hostname else hostname) + (f":{port}" if port else "")
    base = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
    return Address(base, hostname, parts.scheme == "https", _login(parts))


def _with_brackets(text: str) -> str:
    """A bare IPv6 address in the brackets that a URL wants."""
    host, slash, path = text.partition("/")
    try:
        bare = ipaddress.ip_address(host).version == 6
    except ValueError:
        bare = False
    return f"[{host}]{slash}{path}" if bare else text


def _reachable(hostname: str) -> str:
    try:
        unspecified = ipaddress.ip_address(hostname).is_unspecified
    except ValueError:
        return hostname
    return hostname if not unspecified else "::1" if ":" in hostname else "127.0.0.1"


def _plain_ip(hostname: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(hostname)
    return ip.ipv4_mapped or ip if isinstance(ip, ipaddress.IPv6Address) else ip


def _login(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode("ascii")
