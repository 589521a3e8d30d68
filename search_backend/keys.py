"""What an engine or a reader declares of its settings, and how it is given their values."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, unquote_to_bytes

# Values of settings by name. One that is not set is missing or empty.
Keys = Mapping[str, str]
_USER = re.compile(r"(?<=://)([^\s/?#]*)@")
_FIELD = re.compile(
    r"[?&][\w.-]{0,60}(?:key|token|secret|passw)[\w.-]{0,60}=([^\s&#]+)", re.IGNORECASE
)
_SHORTEST = 6  # a key of fewer characters is a word that may stand anywhere


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an engine or a reader, and the other names it goes by. A `secret` is never
    shown."""

    name: str
    help: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    secret: bool = False


def secrets_in(keys: Keys) -> list[str]:
    """What others must not be quoted with: keys, and passwords and keys inside addresses, these
    also as they are sent."""
    found = [value for name, value in keys.items() if name.endswith(("_KEY", "_TOKEN"))]
    for value in keys.values():
        for user in _USER.findall(value):
            found += [unquote(user.rpartition(":")[2]), b64encode(unquote_to_bytes(user)).decode()]
        found += [form for said in _FIELD.findall(value) for form in (said, unquote(said))]
    return found


def without_keys(text: str, secrets: Iterable[str]) -> str:
    """What others said, without the keys that they were sent: whole, or cut off after half."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            begun = re.escape(secret[: max(len(secret) // 2, _SHORTEST)])
            text = re.sub(begun + r"[^\s\"')]*", "[key]", text.replace(secret, "[key]"))
    return text
