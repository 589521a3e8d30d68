"""Searches that a provider wants shown beside its answer, out of the markup it sends them in.

Only the words and the addresses of its links are taken: the page shows them as links of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from web.links import shown_host

_MOST, _LONGEST = 12, 120  # links, characters of one


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[dict[str, str]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            href = dict(attrs).get("href") or ""
            self._open = href.startswith("https://") and len(href) < 4096 and bool(shown_host(href))
            if self._open:
                self.found.append({"url": href, "text": ""})

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "a"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.found[-1]["text"] += data


def suggestions(details: Mapping[str, Any]) -> list[dict[str, str]]:
    """[{text, url}] of a message's details; empty when the provider wants nothing shown."""
    told = details.get("search_suggestions")
    html = told.get("html") if isinstance(told, Mapping) else None
    if not isinstance(html, str):
        return []
    parser = _Links()
    parser.feed(html[:100_000])
    links = ({**link, "text": " ".join(link["text"].split())[:_LONGEST]} for link in parser.found)
    return [link for link in links if link["text"]][:_MOST]
