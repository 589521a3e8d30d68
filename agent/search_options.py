"""What every search of this installation is held to: sites, country, depth, cached pages only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.errors import ConfigError
from agent.settings import Setting, is_on
from agent.types import NativeSearch

SETTINGS: tuple[Setting, ...] = (
    Setting("SEARCH_ALLOWED_DOMAINS", "Search only these sites, a comma list: example.org,gov.uk"),
    Setting("SEARCH_BLOCKED_DOMAINS", "Never use these sites, a comma list"),
    Setting("SEARCH_COUNTRY", "Country that results are meant for, two letters: DE"),
    Setting("SEARCH_CONTEXT_SIZE", "How much a provider's own search reads: low, medium or high"),
    Setting("SEARCH_CACHED_ONLY", "1 = a provider's own search uses its index, not the live web"),
)
_SIZES = ("low", "medium", "high")
_DOMAIN = re.compile(r"(?!-)[^\s/:@*?#,]+\.[^\s/:@*?#,]+")


def search_options(env: Mapping[str, str], *, max_searches: int | None = None) -> NativeSearch:
    """From the settings. Raises ConfigError naming the one that is wrong."""
    size = (env.get("SEARCH_CONTEXT_SIZE") or "").strip().lower()
    if size and size not in _SIZES:
        raise _wrong("SEARCH_CONTEXT_SIZE", size, f"Choose one of {', '.join(_SIZES)}.")
    country = (env.get("SEARCH_COUNTRY") or "").strip().upper()
    if country and not re.fullmatch(r"[A-Z]{2}", country):
        raise _wrong("SEARCH_COUNTRY", country, "Write two letters, for example DE.")
    options: dict[str, Any] = {
        "allowed_domains": domains(env.get("SEARCH_ALLOWED_DOMAINS"), "SEARCH_ALLOWED_DOMAINS"),
        "blocked_domains": domains(env.get("SEARCH_BLOCKED_DOMAINS"), "SEARCH_BLOCKED_DOMAINS"),
        "context_size": size or None,
        "country": country or None,
        "external_access": not is_on(env.get("SEARCH_CACHED_ONLY")),
        "max_searches": max_searches,
    }
    return NativeSearch(**options)


def domains(text: str | None, name: str) -> tuple[str, ...]:
    """A comma list of host names; the entry that is none is named with its place."""
    found = tuple(part.strip().lower() for part in (text or "").split(",") if part.strip())
    for place, domain in enumerate(found, 1):
        if not _DOMAIN.fullmatch(domain):
            raise _wrong(name, domain, f"Entry {place} is not a host name such as example.org.")
    return found


def _wrong(name: str, value: str, remedy: str) -> ConfigError:
    return ConfigError("bad_search_option", f"{name} cannot be {value!r}.", remedy)
