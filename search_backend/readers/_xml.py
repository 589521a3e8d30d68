"""XML in pieces, however broken, and what kind of document it is.

Spec: https://www.w3.org/TR/xml/
"""

from __future__ import annotations

import re

# Each alternative takes at least a character, and none gives back what it took.
PIECE = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)|<[?!][^>]*>?"
    r"|<(?P<end>/?)(?:[\w.-]++:)?+(?P<name>[A-Za-z_][\w.-]*+)(?P<rest>[^<>]*+)>|(?P<text><?[^<]*+)",
    re.DOTALL,
)
_HEAD = 64 * 1024
_KINDS = {"html": "application/xhtml+xml"} | dict.fromkeys(
    ("rss", "feed", "rdf"), "application/rss+xml"
)


def kind_of(body: bytes) -> str:
    """The media type by the first tag; application/xml for what has no reader of its own."""
    head = body[:_HEAD].replace(b"\0", b"").decode("latin-1")
    first = next((found["name"].lower() for found in PIECE.finditer(head) if found["name"]), "")
    return _KINDS.get(first, "application/xml")
