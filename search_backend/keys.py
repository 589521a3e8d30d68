"""What an engine or a reader declares of its settings, and how it is given their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Values of settings by name. One that is not set is missing or empty.
Keys = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an engine or a reader, and the other names it goes by. A `secret` is never
    shown."""

    name: str
    help: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    secret: bool = False
