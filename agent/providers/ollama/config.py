"""What the environment says about Ollama, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from agent.errors import ConfigError
from agent.providers.ollama.address import Address, parse_address
from agent.settings import Setting, is_on

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "OLLAMA_HOST",
        "Where Ollama listens: host, host:port or a URL",
        "127.0.0.1:11434",
        aliases=("OLLAMA_BASE_URL",),
    ),
    Setting("OLLAMA_API_KEY", "Key for ollama.com; sent to no other host", secret=True),
    Setting("OLLAMA_API_KEY_HOST", "Another host name that OLLAMA_API_KEY is meant for"),
    Setting("OLLAMA_NO_CLOUD", "1 = models that run in Ollama's cloud are refused"),
    Setting("OLLAMA_CONTEXT_LENGTH", "Context window in tokens to ask for (default: the server's)"),
    Setting("OLLAMA_KEEP_ALIVE", "How long a model stays loaded: 10m, seconds, -1 = for ever"),
    Setting("OLLAMA_THINK", "off, on, low, medium or high, for models that think"),
)
Think = Literal["off", "on", "low", "medium", "high"]

_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in the types that they have on the wire."""

    address: Address
    headers: Mapping[str, str]
    has_key: bool = False
    num_ctx: int | None = None
    keep_alive: int | str | None = None
    think: Think | None = None
    offline: bool = False
    no_cloud: bool = False

    @property
    def local_only(self) -> bool:
        """Whether a model that runs in Ollama's cloud must be refused."""
        return self.offline or self.no_cloud


def read_config(env: Mapping[str, str]) -> Config:
    """The settings. Raises ConfigError naming the one that is wrong."""
    address = parse_address(env.get("OLLAMA_HOST") or env.get("OLLAMA_BASE_URL") or "")
    key = env.get("OLLAMA_API_KEY") or None
    authorization = address.authorization(key, env.get("OLLAMA_API_KEY_HOST"))
    return Config(
        address=address,
        headers=authorization,
        has_key=bool(key),
        num_ctx=_num_ctx(env.get("OLLAMA_CONTEXT_LENGTH")),
        keep_alive=_keep_alive(env.get("OLLAMA_KEEP_ALIVE")),
        think=_think(env.get("OLLAMA_THINK")),
        offline=is_on(env.get("SEARCHLOOP_OFFLINE")),
        no_cloud=is_on(env.get("OLLAMA_NO_CLOUD")),
    )


def _num_ctx(value: str | None) -> int | None:
    text = (value or "").strip()
    if not text or text == "0":
        return None
    if not text.isascii() or not text.isdigit():
        raise ConfigError(
            "bad_context_length",
            f"OLLAMA_CONTEXT_LENGTH {text!r} is not a number of tokens.",
            "Write a whole number, for example OLLAMA_CONTEXT_LENGTH=16384.",
        )
    return int(text)


def _keep_alive(value: str | None) -> int | str | None:
    text = (value or "").strip()
    if not text:
        return None
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if not _DURATION.fullmatch(text):
        raise ConfigError(
            "bad_keep_alive",
            f"OLLAMA_KEEP_ALIVE {text!r} is not a duration.",
            "Write seconds or a duration, for example OLLAMA_KEEP_ALIVE=10m.",
        )
    return text


def _think(value: str | None) -> Think | None:
    text = (value or "").strip().lower()
    text = {"0": "off", "false": "off", "no": "off", "1": "on", "true": "on", "yes": "on"}.get(
        text, text
    )
    for level in get_args(Think):
        if text == level:
            return level  # type: ignore[no-any-return]
    if text:
        raise ConfigError(
            "bad_think",
            f"OLLAMA_THINK {text!r} is no way to think.",
            f"Write one of {', '.join(get_args(Think))}.",
        )
    return None
