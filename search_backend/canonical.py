"""One key for the many spellings of a page's address, to show each page once."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

_TRACKING = re.compile(
    r"utm_\w+|gclid|gbraid|wbraid|fbclid|msclkid|dclid|yclid|igshid|mc_[ce]id|_hs\w+|ref_src|spm"
)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")


def canonical_key(url: str) -> str:
    """Equal for addresses that lead to the same page; for comparing only, never for opening."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    if parts.scheme not in ("http", "https"):
        return url
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    if port not in (None, 80, 443):
        host += f":{port}"
    path = _INDEX.sub("/", unquote(parts.path)).rstrip("/")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode(sorted(pair for pair in pairs if not _TRACKING.fullmatch(pair[0])))
    return f"{host}{path}?{query}" if query else host + path
