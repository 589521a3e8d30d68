"""What an engine or a reader declares of its settings, and how it is given their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Values of settings by name. One that is not set is missing or empty.
Keys = Mapping[str, str]
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


def without_keys(text: str, secrets: Iterable[str]) -> str:
    """What others said, without the keys that they were sent: whole, or cut off after half."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            begun = re.escape(secret[: max(len(secret) // 2, _SHORTEST)])
            text = re.sub(begun + r"[^\s\"')]*", "[key]", text.replace(secret, "[key]"))
    return text
