"""One key for the many spellings of a page's address, to show each page once.

A hundred results are compared in one search, so this takes the address apart by itself: a fifth of
the time of the standard library's functions, which also allow for what is no web address.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_plus

_URL = re.compile(r"(?i:https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_TRACKING = re.compile(
    r"utm_\w+|gclid|gbraid|wbraid|fbclid|msclkid|dclid|yclid|igshid|mc_[ce]id|_hs\w+|ref_src|spm"
)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")
_SLASHES = re.compile(r"//+")


def canonical_key(url: str) -> str:
    """Equal for addresses that lead to the same page; for comparing only, never for opening."""
    found = _URL.fullmatch(url.strip())
    if found is None:
        return url
    authority, path, query, fragment = found.groups()
    host = authority.rpartition("@")[2].lower()
    if ":" in host:
        host = host.removesuffix(":").removesuffix(":80").removesuffix(":443")
    host = host.rstrip(".").removeprefix("www.")
    if "%" in path:
        path = unquote(path)
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if "/index." in path or "/default." in path:
        path = _INDEX.sub("/", path)
    key = host + path.rstrip("/")
    if query and (kept := sorted(_pairs(query))):
        key += "?" + "&".join(kept)
    # Elsewhere a fragment is a place on the page; here it names another page.
    return f"{key}#{fragment}" if fragment and fragment[0] in "!/" else key


def _pairs(query: str) -> list[str]:
    """The parameters that choose a page, in one spelling each."""
    pairs = []
    for pair in query.split("&"):
        if not pair or _TRACKING.fullmatch(pair.partition("=")[0]):
            continue
        if "%" in pair or "+" in pair:
            name, equals, value = pair.partition("=")
            # A quoted separator stays quoted, or two different pages would look alike.
            pair = equals.join(
                unquote_plus(part).replace("%", "%25").replace("&", "%26").replace("=", "%3D")
                for part in ((name, value) if equals else (name,))
            )
        pairs.append(pair)
    return pairs
