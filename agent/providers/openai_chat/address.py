"""Which server is asked, and which key may go there."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.endpoint import Endpoint, origin_of
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
class ChatServer(Endpoint):
    """One server. `chosen` is whether the user named it, rather than our default."""

    chosen: bool = True
    vendor: str = field(default="OpenAI", kw_only=True)
    home: str = field(default=DEFAULT_BASE, kw_only=True)
    setting: str = field(default="OPENAI_CHAT_BASE_URL", kw_only=True)

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


def find_server(env: Mapping[str, str]) -> ChatServer:
    """The server that the settings name.

    OPENAI_API_KEY goes along only to OpenAI and to the origin of OPENAI_BASE_URL.
    """
    own, shared = _read(env, "OPENAI_CHAT_BASE_URL"), _read(env, "OPENAI_BASE_URL")
    base = own or shared or DEFAULT_BASE
    key = _read(env, "OPENAI_CHAT_API_KEY")
    official = origin_of(base) == origin_of(DEFAULT_BASE)
    chosen = bool(own or key) or not official
    origin = origin_of(base)
    meant = official or (origin is not None and origin == origin_of(shared))
    if not key and meant:
        key = _read(env, "OPENAI_API_KEY")
    return ChatServer(base, key, chosen)


def _read(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or "").strip()
