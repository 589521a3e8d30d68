"""Search options: the sites and the country that the settings demand for every search."""

from __future__ import annotations

import re
from collections.abc import Mapping

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Setting
from searchloop.agent.types import NativeSearch

SETTINGS: tuple[Setting, ...] = (
    Setting("SEARCH_ALLOWED_DOMAINS", "Search only these sites, a comma list: example.org,gov.uk"),
    Setting("SEARCH_BLOCKED_DOMAINS", "Never use these sites, a comma list"),
    Setting("SEARCH_COUNTRY", "Country that results are meant for, two letters: DE"),
)
_DOMAIN = re.compile(r"(?!-)[^\s/:@*?#,]+\.[^\s/:@*?#,]+")


def search_options(env: Mapping[str, str], *, max_searches: int | None = None) -> NativeSearch:
    """Reads the options from the settings. Raises ConfigError naming the one that is wrong."""
    country = (env.get("SEARCH_COUNTRY") or "").strip().upper()
    if country and not re.fullmatch(r"[A-Z]{2}", country):
        raise _wrong("SEARCH_COUNTRY", country, "Write two letters, for example DE.")
    return NativeSearch(
        allowed_domains=domains(env.get("SEARCH_ALLOWED_DOMAINS"), "SEARCH_ALLOWED_DOMAINS"),
        blocked_domains=domains(env.get("SEARCH_BLOCKED_DOMAINS"), "SEARCH_BLOCKED_DOMAINS"),
        country=country or None,
        max_searches=max_searches,
    )


def domains(text: str | None, name: str) -> tuple[str, ...]:
    """Splits a comma list of host names. Raises ConfigError with the place of a wrong entry."""
    found = tuple(part.strip().lower() for part in (text or "").split(",") if part.strip())
    for place, domain in enumerate(found, 1):
        if not _DOMAIN.fullmatch(domain):
            raise _wrong(name, domain, f"Entry {place} is not a host name such as example.org.")
    return found


def _wrong(name: str, value: str, remedy: str) -> ConfigError:
    return ConfigError("bad_search_option", f"{name} cannot be {value!r}.", remedy)
