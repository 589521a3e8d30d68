"""Which addresses may be links, and how an address is shown to a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agent.sources import url_key

# What browsers and we read alike: no blanks, controls, backslashes or quotes, no user part.
_PLAIN_WEB = re.compile(
    r"(?i:https?)://[^\s\x00-\x20\x7f\\\"'<>@`{}|^/?#]+(?:[/?#][^\s\x00-\x20\x7f\\\"<>`]*)?"
)
_TRACKING = re.compile(r"(?<=[?&])utm_source=[^&#]*&?")


class KnownLinks:
    """The addresses of sources: the only ones that a text may link to."""

    def __init__(self, sources: Iterable[Mapping[str, Any]] = ()) -> None:
        self._urls: dict[str, str] = {}
        self.numbers: set[int] = set()
        self.add(sources)

    def add(self, sources: Iterable[Mapping[str, Any]]) -> None:
        """Takes in sources or citations: mappings with `url` and perhaps `n`."""
        for source in sources:
            url, n = str(source.get("url") or ""), source.get("n")
            if isinstance(n, int):
                self.numbers.add(n)
            if len(url) <= 4096 and _PLAIN_WEB.fullmatch(url):
                self._urls.setdefault(_key(url), url)

    def find(self, href: str) -> str | None:
        """The source's own spelling of this address, or None when it is no source's."""
        if not self._urls or len(href) > 4096 or not _PLAIN_WEB.fullmatch(href):
            return None
        return self._urls.get(_key(href))


def _key(url: str) -> str:
    return url_key(_TRACKING.sub("", url).rstrip("?&"))


def shown_host(href: str) -> str:
    """Who an address leads to, in ASCII; empty when it names nobody."""
    try:
        host = urlsplit(href.replace("\\", "/").strip()).hostname or ""
    except ValueError:
        return ""
    host = host[:253]
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return host.encode("ascii", "backslashreplace").decode()
