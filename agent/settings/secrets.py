"""Finds the secrets that stand in settings: whole values, and keys and passwords in addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote

HIDDEN = "[secret]"
# Names under which people keep what must not leave.
SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE", re.IGNORECASE
)
_USER = re.compile(r"(?<=://)([^\s/?#]*)@")
_FIELD = re.compile(
    r"((?:[?&;]|\s--?|^--?|\b(?=password\s*=))[\w.-]{0,60}"
    r"(?:key|token|secret|passw|credential|auth|signature)[\w.-]{0,60}\s{0,9}=\s{0,9})"
    r"('[^']*'|[^\s&;#]+)",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"--?(?=[\w-]*+\Z)[\w-]*(?:key|token|secret|passw|credential|auth)[\w-]*", re.IGNORECASE
)
_OPAQUE = re.compile(r"[\w.~+/=-]{8,}")  # what follows such a flag and may be a key


def secrets_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns each secret by what it is: a setting named like one, or a part of an address."""
    found: dict[str, str] = {}
    for name in settings:
        value = settings.get(name) or ""
        if SECRET_NAME.search(name):
            found[name] = value
        elif "://" in value or "=" in value:
            for count, part in enumerate(_parts(value)):
                found[f"a secret in {name}" + (f" ({count + 1})" if count else "")] = part
    return found


def masked(value: str) -> str:
    """Returns a setting that may be shown, without the secrets inside it."""
    value = _USER.sub(lambda found: f"{_named(found[1])}@", value)
    return _FIELD.sub(rf"\1{HIDDEN}", value)


def masked_command(words: Sequence[str]) -> tuple[str, ...]:
    """Returns a program and its arguments, without the keys among them."""
    keys = set(given_by_flags(words).values())
    return tuple(HIDDEN if word in keys else masked(word) for word in words)


def given_by_flags(words: Sequence[str]) -> dict[str, str]:
    """Finds the keys among a program's arguments (`--api-key KEY`, `--token=KEY`), by flag."""
    found = {
        flag: word
        for flag, word in pairwise(words)
        if _FLAG.fullmatch(flag) and _OPAQUE.fullmatch(word) and not word.startswith("-")
    }
    for word in words:
        for part in _parts(word):
            found[word.partition("=")[0]] = part
    return found


def _named(user: str) -> str:
    """Masks `me:password`; a name alone may be a token."""
    name, colon, _ = user.partition(":")
    return f"{name}:{HIDDEN}" if colon else HIDDEN


@lru_cache(maxsize=1024)  # asked for each line of the log
def _parts(value: str) -> tuple[str, ...]:
    found = [user.partition(":")[2] if ":" in user else user for user in _USER.findall(value)]
    found += [said.strip("'") for _, said in _FIELD.findall(value)]
    return tuple(dict.fromkeys(form for said in found for form in (said, unquote(said)) if form))
