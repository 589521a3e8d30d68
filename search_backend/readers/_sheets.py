"""The style sheets that stand in a page itself, and whether they are all that it has.

Nothing is fetched: of a sheet elsewhere only its address is seen.

Spec: https://html.spec.whatwg.org/multipage/semantics.html#the-style-element, RFC 2397
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote_to_bytes

from selectolax.lexbor import LexborHTMLParser, LexborNode

from search_backend.readers._declared import with_letters
from search_backend.readers._media import holds_on_screen

# Of all sheets together; more is read by nobody, and a browser would take its time as well.
LONGEST_SHEET = 400_000
_ROOT = re.compile(r":root|:host|\bhtml\b|\bbody\b|\*")
_VARIABLE = re.compile(r"(?:^|;)\s*(--[\w-]+)\s*:([^;]{1,400})")
_IMPORT = re.compile(r"@import\s", re.IGNORECASE)
_DATA_SHEET = re.compile(r"@import\s++(?:url\()?+\s*+[\"']?(data:[^\"')]+)", re.IGNORECASE)


def is_whole(tree: LexborHTMLParser, sheets: list[str]) -> bool:
    """Whether nothing but what stands in the page has a say in how it looks."""
    return not any(map(_IMPORT.search, sheets)) and not any(
        not (node.attributes.get("href") or "").startswith("data:")
        for node in tree.css("link[rel~=stylesheet i]")
    )


def sheets(tree: LexborHTMLParser) -> Iterator[str]:
    """The text of the sheets in the page that hold on a screen with scripts."""
    left = LONGEST_SHEET
    for node in tree.css("style,link[rel~=stylesheet][href^='data:']"):
        attributes = node.attributes
        kind = (attributes.get("type") or "text/css").strip().lower()
        if kind != "text/css" or not holds_on_screen((attributes.get("media") or "").lower()):
            continue
        if any(above in ("noscript", "template") for above in _above(node)):
            continue
        text = node.text() or "" if node.tag == "style" else _of_data(attributes["href"] or "")
        text = with_letters(text[:left])
        left -= len(text)
        for address in _DATA_SHEET.findall(text) if "data:" in text else ():
            yield _of_data(address)
        yield _DATA_SHEET.sub("", text)


def _of_data(url: str) -> str:
    """The text in a data: address."""
    head, _, data = url[:LONGEST_SHEET].partition(",")
    with suppress(ValueError):
        raw = unquote_to_bytes(data)
        return (b64decode(raw) if head.endswith(";base64") else raw).decode("utf-8", "replace")
    return ""


def _above(node: LexborNode) -> Iterator[str | None]:
    at = node.parent
    while at is not None:
        yield at.tag
        at = at.parent


def variables(selectors: list[str], blocks: list[str]) -> Iterator[tuple[str, str]]:
    """The custom properties that hold for the whole page."""
    for names, block in zip(selectors, blocks, strict=True):
        if "--" in block and len(names) < 200 and _ROOT.search(names):
            for name, value in _VARIABLE.findall(block):
                yield name, value.partition("!")[0].strip()
