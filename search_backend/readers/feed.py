"""RSS, Atom and RDF feeds: titles, texts, dates and links, as a feed reader shows them.

Texts in a feed are HTML, in CDATA or escaped, so they are read as HTML: without scripts, comments
and hidden elements. Other fields of an item are for programs and left out.

Spec: https://www.rssboard.org/rss-specification, RFC 4287
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape, unescape

from searchloop.search_backend.readers import XML_PIECE, Reader
from searchloop.search_backend.readers._html.bounds import MOST_BYTES
from searchloop.search_backend.readers._html.whole import whole_page
from searchloop.search_backend.text.clean import decode, one_line, plain
from searchloop.search_backend.types import Page

# What is shown of a feed, by the last part of the tag's name, and as what.
_SHOWN = {
    "title": "h2",
    **dict.fromkeys(("description", "summary", "subtitle", "content", "encoded"), "div"),
    **dict.fromkeys(("pubdate", "published", "updated", "date", "creator", "name"), "p"),
    "link": "a",
}
_HREF = re.compile(r"\shref\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def read(body: bytes, url: str, charset: str | None) -> Page:
    """Returns the feed as one page, its items in order."""
    text = decode(body[:MOST_BYTES], charset)
    parts = list(_parts(text))
    page = whole_page("".join(parts), url)
    title = next((part for part in parts if part.startswith("<h2>")), "")
    title = one_line(plain(title)) or url
    return replace(page, title=title, cut=page.cut or len(body) > MOST_BYTES)


def _parts(text: str) -> Iterator[str]:
    """Yields the visible parts as HTML."""
    inside, held = "", list[str]()
    for found in XML_PIECE.finditer(text):
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
    """Returns a link to the address in a tag of Atom."""
    found = _HREF.search(rest)
    return _link(unescape(found[1] or found[2] or "")) if found else ""


def _link(address: str) -> str:
    address = escape(address.strip())
    return f'<p><a href="{address}">{address}</a></p>' if address else ""


READER = Reader(types=frozenset({"application/rss+xml"}), suffixes=frozenset(), read=read)
