"""The session's source table: who gets which number, and what was read.

The program owns the numbers. A URL is numbered once, in order of first appearance before the
model; a model can only point at a number, so a citation can never name a URL that was not met.
The same table is the list of URLs that may be opened: what the user wrote, what a search found,
what an opened page linked to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from agent.types import Message, Source, SourceState

_RANK: dict[SourceState, int] = {"found": 0, "opened": 1, "cited": 2}
_PUBLIC = ("library://docs/", "library://pages/")  # our own documents, pages that were opened
_KEPT = 400_000  # characters of one page, the latest read: as much as ten long parts
_URL = re.compile(r"(?:https?|library|zim)://[^\s<>\"'`\\^{}|]+")


class SourceTable:
    """Sources by URL, in order of appearance. Rebuilt from the transcript at each run's start."""

    def __init__(self) -> None:
        self._by_key: dict[str, Source] = {}
        self._by_number: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._touched: dict[str, None] = {}

    @classmethod
    def of(cls, messages: Iterable[Message]) -> SourceTable:
        """The table as it stands after these messages."""
        table = cls()
        for message in messages:
            table.remember(message)
        table._touched.clear()
        return table

    def remember(self, message: Message) -> None:
        """Takes over what a message says of sources."""
        if message.role == "user":
            self.see(urls_in(message.content))
        for source in message.sources:
            self.restore(source)
        if message.role == "tool":
            self.see(message.details.get("links", ()))
            start, end = message.details.get("text", (0, 0))
            if end:
                self.read(message.details["url"], message.content[start:end])

    def __len__(self) -> int:
        return len(self._by_number)

    def meet(
        self,
        url: str,
        title: str = "",
        state: SourceState = "found",
        *,
        number: bool = True,
        published: str | None = None,
    ) -> Source:
        """Notes a source, raises its state if it grew, and numbers it unless told not to."""
        key = url_key(url)
        known = self._by_key.get(key) or Source(url, title, state)
        if _RANK[state] > _RANK[known.state]:
            known = replace(known, state=state)
        if title and not known.title:
            known = replace(known, title=title)
        if published and not known.published:
            known = replace(known, published=published)
        if number and known.n is None:
            known = replace(known, n=max(self._by_number, default=0) + 1)
        return self._keep(key, known)

    def restore(self, source: Source) -> None:
        """Takes over a source with the number it already has."""
        known = self._by_key.get(url_key(source.url))
        if known:
            state = max(known.state, source.state, key=_RANK.__getitem__)
            title, n = known.title or source.title, known.n or source.n
            published = known.published or source.published
            source = replace(known, state=state, title=title, n=n, published=published)
        self._keep(url_key(source.url), source)

    def _keep(self, key: str, source: Source) -> Source:
        self._by_key[key] = source
        self._touched[key] = None
        self._seen.setdefault(key, source.url)
        if source.n is not None:
            self._by_number[source.n] = key
        return source

    def numbered(self, n: int) -> Source | None:
        """The source behind `[n]`, if there is one."""
        key = self._by_number.get(n)
        return self._by_key[key] if key else None

    def see(self, urls: Iterable[str]) -> None:
        """URLs that the user wrote or a page linked to: they may be opened."""
        for url in urls:
            self._seen.setdefault(url_key(url), url)

    def met(self, url: str) -> str | None:
        """The address as it was met, or None when nobody has named it.

        Several spellings are one address, and a model could write something into the differences:
        only the spelling that was met may be opened without asking.
        """
        return self._seen.get(url_key(url))

    def read(self, url: str, text: str) -> None:
        """Keeps the text of a page that was opened, to check quotes against."""
        key = url_key(url)
        known = self._texts.get(key, "")
        if not known:
            self._texts[key] = text[-_KEPT:]
        elif text not in known:
            self._texts[key] = f"{known}\n{text}"[-_KEPT:]

    def text(self, url: str) -> str | None:
        """What was read of this page, or None if it was not opened."""
        return self._texts.get(url_key(url))

    def touched(self) -> tuple[Source, ...]:
        """The sources met since the table was made: those of this run, numbered ones first."""
        met = [self._by_key[key] for key in self._touched]
        return tuple(sorted(met, key=lambda s: (s.n is None, s.n or 0)))


def private_mark(urls: Iterable[str]) -> dict[str, bool]:
    """The mark of a result that holds the user's own files: what is in folders they added."""
    own = [u for u in urls if u.startswith("library://") and not u.startswith(_PUBLIC)]
    return {"private": True} if own else {}


def urls_in(text: str) -> list[str]:
    """URLs written in a text, without the punctuation that follows them."""
    if "://" not in text:  # far faster than the pattern, and the usual case
        return []
    return [_trim(found) for found in _URL.findall(text)]


def _trim(url: str) -> str:
    end = len(url.rstrip(".,;:!?*_"))
    opened = url.count("(", 0, end) + url.count("[", 0, end)
    closed = url.count(")", 0, end) + url.count("]", 0, end)
    while closed > opened and url[end - 1] in ")].,;:!?":
        closed -= url[end - 1] in ")]"
        end -= 1
    return url[:end].rstrip(".,;:!?")


def url_key(url: str) -> str:
    """One key for the spellings of one address.

    Case of scheme and host, default port, fragment and `utm_` parameters make no other address.
    A user name in an address is sent to the host, so an address with one is another address.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url.strip()
    host = (parts.hostname or "").rstrip(".")
    if port and (parts.scheme.lower(), port) not in {("http", 80), ("https", 443)}:
        host = f"{host}:{port}"
    user, at, _ = parts.netloc.rpartition("@")
    fragment = f"#{parts.fragment}" if parts.scheme == "library" and parts.fragment else ""
    kept = [part for part in parts.query.split("&") if part and not part.startswith("utm_")]
    query = f"?{'&'.join(kept)}" if kept else ""
    return f"{parts.scheme.lower()}://{user}{at}{host}{parts.path or '/'}{query}{fragment}"
