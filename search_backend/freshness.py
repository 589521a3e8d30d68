"""For how long a page may be shown again, and how its server is asked whether it changed.

This is a private cache that answers one user: `private` and `s-maxage` mean nothing to it. What
cannot be understood counts as stale. A page without any word about it is fresh for as long as the
settings say, one that tells when it changed last for a tenth of its age.

Spec: RFC 9111 4.2, 5.2, 5.3; RFC 9110 8.8, 13.1
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime

from search_backend.types import Freshness

LONGEST = 86_400.0
_TAG = re.compile(r'(?:W/)?"[!#-~]{0,200}"')
_DIRECTIVE = re.compile(r'([!#$%&\'*+.^_`|~0-9a-z-]+)(?:\s*=\s*("[^"]*"|[^\s,"]*))?', re.I)


def freshness(headers: Mapping[str, str], now: float, usual: float) -> Freshness:
    """Of an answer that came at `now` (seconds since the epoch). `headers` have lower-case names;
    `usual` is for how long a page is fresh that does not say."""
    said = _directives(headers.get("cache-control", ""))
    etag = headers.get("etag", "")
    changed = _moment(headers.get("last-modified", ""))
    date = _moment(headers.get("date", ""))
    age = max(_seconds(headers.get("age", "0")) or 0.0, now - date if date else 0.0, 0.0)
    if said.keys() & {"no-cache", "no-store"} or headers.get("vary", "").strip() == "*":
        lifetime = 0.0
    elif "max-age" in said:
        lifetime = _seconds(said["max-age"]) or 0.0
    elif "expires" in headers:
        ends = _moment(headers["expires"])
        lifetime = ends - (date or now) if ends else 0.0
    elif "cache-control" not in headers and headers.get("pragma", "").lower() == "no-cache":
        lifetime = 0.0
    elif changed:
        lifetime = ((date or now) - changed) / 10
    else:
        lifetime = usual
    return Freshness(
        seconds=min(max(lifetime - age, 0.0), LONGEST),
        store="no-store" not in said,
        etag=etag if _TAG.fullmatch(etag) else "",
        modified=formatdate(changed, usegmt=True) if changed else "",
    )


def conditions(known: Freshness) -> Mapping[str, str]:
    """Headers that ask for the page only if it is another one than that. Empty: it cannot be
    asked."""
    found = {"If-None-Match": known.etag, "If-Modified-Since": known.modified}
    return {name: value for name, value in found.items() if value}


def _directives(header: str) -> dict[str, str]:
    """Cache-Control by name; of two that contradict each other the stricter one counts."""
    found: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(header):
        name, value = name.lower(), value.strip('"')
        if name == "max-age" and name in found:
            value = min(found[name], value, key=lambda text: _seconds(text) or 0.0)
        found[name] = value
    return found


def _seconds(text: str) -> float | None:
    text = text.strip()
    if not text.isascii() or not text.isdigit():
        return None
    return float(text[:12])


def _moment(text: str) -> float | None:
    """Seconds since the epoch of an HTTP date."""
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
