"""Reads Ollama's settings: its address, and which host may receive the key.

OLLAMA_HOST follows Ollama's own rules, so that one variable serves its tools and us: no scheme
means port 11434, `http://h` means port 80, and an address to listen on (0.0.0.0) becomes loopback.
A path stays, because proxies and fake servers live below one.

https://github.com/ollama/ollama/blob/main/envconfig/config.go
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Setting, is_on
from searchloop.agent.transport.exchange import Endpoint

DEFAULT_PORT = 11434
DEFAULT_HOST = f"127.0.0.1:{DEFAULT_PORT}"
CLOUD = "ollama.com"
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class OllamaAddress(Endpoint):
    """One Ollama server. `base` has no trailing slash and no password."""

    login: str | None = field(default=None, repr=False, kw_only=True)

    @property
    def cloud(self) -> bool:
        """True for Ollama's own service."""
        return self.host == CLOUD or self.host.endswith(f".{CLOUD}")

    def authorization(self, key: str | None) -> Mapping[str, str]:
        """Returns the Authorization header. The key goes to ollama.com alone, over https."""
        if key and self.cloud and self.base.startswith("https"):
            return {"authorization": f"Bearer {key}"}
        return {"authorization": f"Basic {self.login}"} if self.login else {}


def parse_address(value: str) -> OllamaAddress:
    """Reads OLLAMA_HOST. Raises ConfigError if it is no address."""
    text = value.strip().strip("\"'").strip() or DEFAULT_HOST
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "https" if text == CLOUD else "http", text
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        port = parts.port or (None if mark or text == CLOUD else DEFAULT_PORT)
        if parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
            raise ValueError("only http:// and https:// addresses work here")
        if parts.netloc.rpartition("@")[2].count(":") > 1 and "[" not in parts.netloc:
            raise ValueError("an IPv6 address stands in brackets")
        if any(c.isspace() for c in parts.netloc + parts.path):
            raise ValueError("it holds blanks")
    except ValueError as error:
        what = f"OLLAMA_HOST {text.rpartition('@')[2]!r} is not an address: {error}."
        remedy = "Write host, host:port or a URL, for example OLLAMA_HOST=http://127.0.0.1:11434."
        raise ConfigError("bad_ollama_host", what, remedy) from error
    hostname = parts.hostname or "127.0.0.1"
    hostname = _REACHABLE.get(hostname, hostname)
    netloc = (f"[{hostname}]" if ":" in hostname else hostname) + (f":{port}" if port else "")
    base = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
    return OllamaAddress(base, login=_login(parts))


def _login(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode("ascii")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "OLLAMA_HOST",
        "Where Ollama listens: host, host:port or a URL",
        "127.0.0.1:11434",
        aliases=("OLLAMA_BASE_URL",),
    ),
    Setting("OLLAMA_API_KEY", "Key for ollama.com; sent to no other host", secret=True),
    Setting("OLLAMA_NO_CLOUD", "1 = models that run in Ollama's cloud are refused"),
    Setting("OLLAMA_CONTEXT_LENGTH", "Context window in tokens to ask for (default: the server's)"),
)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings, in the types of the wire."""

    address: OllamaAddress
    headers: Mapping[str, str]
    has_key: bool = False
    num_ctx: int | None = None
    offline: bool = False
    no_cloud: bool = False

    @property
    def local_only(self) -> bool:
        """True if models that run in Ollama's cloud are refused."""
        return self.offline or self.no_cloud


def read_config(env: Mapping[str, str]) -> Config:
    """Reads the settings. Raises ConfigError for a wrong one."""
    address = parse_address(env.get("OLLAMA_HOST") or env.get("OLLAMA_BASE_URL") or "")
    key = env.get("OLLAMA_API_KEY") or None
    return Config(
        address=address,
        headers=address.authorization(key),
        has_key=bool(key),
        num_ctx=_num_ctx(env.get("OLLAMA_CONTEXT_LENGTH")),
        offline=is_on(env.get("SEARCHLOOP_OFFLINE")),
        no_cloud=is_on(env.get("OLLAMA_NO_CLOUD")),
    )


def _num_ctx(value: str | None) -> int | None:
    text = (value or "").strip()
    if not text or text == "0":
        return None
    if not text.isascii() or not text.isdigit():
        what = f"OLLAMA_CONTEXT_LENGTH {text!r} is not a number of tokens."
        remedy = "Write a whole number, for example OLLAMA_CONTEXT_LENGTH=16384."
        raise ConfigError("bad_context_length", what, remedy)
    return int(text)
