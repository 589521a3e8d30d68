"""RSS, Atom and RDF feeds: their titles, texts, dates and links, as a reader of feeds shows them.

A text in a feed is HTML, behind CDATA or escapes, so it is read as HTML is: without scripts,
comments and what is hidden. What else an item says is for programs and left out.

Spec: https://www.rssboard.org/rss-specification, RFC 4287
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape, unescape

from search_backend.charset import decode
from search_backend.clean import one_line, plain
from search_backend.readers import Reader
from search_backend.readers._bounds import MOST_BYTES
from search_backend.readers._whole import whole
from search_backend.readers._xml import PIECE
from search_backend.types import Page

# What is shown of a feed, by the last part of the tag's name, and as what.
_SHOWN = {
    "title": "h2",
    **dict.fromkeys(("description", "summary", "subtitle", "content", "encoded"), "div"),
    **dict.fromkeys(("pubdate", "published", "updated", "date", "creator", "name"), "p"),
    "link": "a",
}
_HREF = re.compile(r"\shref\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def read(body: bytes, url: str, charset: str | None) -> Page:
    """The feed as one page, its items in order."""
    text = decode(body[:MOST_BYTES], charset)
    parts = list(_parts(text))
    page = whole("".join(parts), url)
    title = next((part for part in parts if part.startswith("<h2>")), "")
    title = one_line(plain(title)) or url
    return replace(page, title=title, cut=page.cut or len(body) > MOST_BYTES)


def _parts(text: str) -> Iterator[str]:
    """HTML of what is shown, one part after another."""
    inside, held = "", list[str]()
    for found in PIECE.finditer(text):
        name = (found["name"] or "").lower()
        if not inside:
            if name in _SHOWN and not found["end"]:
                if found["rest"].endswith("/"):
                    yield _linked(found["rest"])
                else:
                    inside, held = name, [_linked(found["rest"])] if name == "link" else []
        elif name == inside and found["end"]:
            yield _part(_SHOWN[name], "".join(held))
            inside = ""
        else:
            # Tags stand in a text that is XHTML; what is escaped is one that is HTML.
            held.append(
                found["data"] or unescape(found["text"] or "") or (found[0] if name else "")
            )


def _part(tag: str, said: str) -> str:
    if tag == "a":
        return said if said.startswith("<p>") else _link(said)
    return f"<{tag}>{said}</{tag}>"


def _linked(rest: str) -> str:
    """The address in a tag of Atom."""
    found = _HREF.search(rest)
    return _link(unescape(found[1] or found[2] or "")) if found else ""


def _link(address: str) -> str:
    address = escape(address.strip())
    return f'<p><a href="{address}">{address}</a></p>' if address else ""


READER = Reader(types=frozenset({"application/rss+xml"}), suffixes=frozenset(), read=read)
