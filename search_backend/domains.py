"""Domain rules: one implementation for search results, pages and every redirect.

A rule is a host name; it covers that host and the hosts below it, never a longer name that
happens to end alike. Rules and hosts are compared in their canonical ASCII form, so case, a
trailing dot and international spelling make no difference. A block always wins over an allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from search_backend.errors import SearchBackendError
from search_backend.names import to_ascii

MOST_RULES = 100


def parse_rules(raw: Sequence[str], name: str) -> tuple[str, ...]:
    """Canonical rules. Raises SearchBackendError(code "bad_domain") with the index of a bad one."""
    if len(raw) > MOST_RULES:
        raise SearchBackendError(
            "bad_domain", f"{name} has more than {MOST_RULES} entries.", "Shorten the list."
        )
    return tuple(_rule(text, f"{name}[{at}]") for at, text in enumerate(raw))


def _rule(text: str, place: str) -> str:
    host = to_ascii(text.strip())
    if host:
        return host
    hint = "Write a host name such as example.org; it covers the names below it as well."
    if "*" in text:
        hint = "Leave the star out: example.org covers the names below it as well."
    elif "/" in text or ":" in text:
        hint = "Write the host name alone, without scheme, port and path: example.org."
    raise SearchBackendError("bad_domain", f"{place} is not a domain: {text[:100]!r}.", hint)


def covers(rule: str, host: str) -> bool:
    """Whether the canonical `host` is the rule's or lies below it."""
    return host == rule or host.endswith("." + rule)


def host_filter(allowed: Sequence[str], blocked: Sequence[str]) -> Callable[[str], bool]:
    """A test for canonical hosts under these rules."""

    def passes(host: str) -> bool:
        if any(covers(rule, host) for rule in blocked):
            return False
        return not allowed or any(covers(rule, host) for rule in allowed)

    return passes


def url_passes(url: str, allowed: Sequence[str], blocked: Sequence[str]) -> bool:
    """Whether a result may stay. One that has no host on the web passes no allow list."""
    try:
        parts = urlsplit(url)
        host = to_ascii(parts.hostname or "")
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return not allowed
    return host is not None and bool(host) and host_filter(allowed, blocked)(host)
