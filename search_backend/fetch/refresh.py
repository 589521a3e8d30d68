"""Where a page sends its readers on by itself.

Spec: https://html.spec.whatwg.org/multipage/semantics.html (declarative refresh)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.text.clean import decode

# Seconds before a refresh that is still followed, and the words of a page that is read instead.
_LONGEST_DELAY = 15
_MANY_WORDS = 60
_DELAYED = re.compile(
    r"\s*+([0-9]{1,3})(?>(?:\.[0-9.]*+)?)(?:\s*+[;,]|\s)\s*+(?:url\s*+=\s*+)?"
    r"(?:\"([^\"]*+)|'([^']*+)|([^\"'].*+))",
    re.IGNORECASE | re.DOTALL,
)

# Called with the start of a page, its charset and its Refresh header; returns the address as
# written, or None.
RefreshIn = Callable[[bytes, str | None, str], str | None]


def refresh_in(head: bytes, charset: str | None, header: str) -> str | None:
    """Returns the address to which a page sends its readers on soon, as written; None without.

    A page with text of its own is left only at once, and not for what is in its `noscript`.
    """
    tree = LexborHTMLParser(decode(head, charset))
    tags = 'meta[http-equiv="refresh" i][content]'
    said = [tag.attributes["content"] or "" for tag in tree.css(f"{tags}:not(noscript *)")]
    unscripted = [tag.attributes["content"] or "" for tag in tree.css(f"noscript {tags}")]
    for node in tree.css("script,style,noscript,template"):
        node.decompose()
    words = (tree.body.text(separator=" ") if tree.body else "").split(None, _MANY_WORDS)
    alone = len(words) < _MANY_WORDS
    told = [header, *said, *(unscripted if alone else ())]
    found = (_soon(text, _LONGEST_DELAY if alone else 1) for text in told)
    start = next((node.attributes["href"] or "" for node in tree.css("base[href]")), "")
    return next((urljoin(start, url) for url in found if url), None)


def _soon(text: str, most: int) -> str | None:
    """Returns the web address in the text of a refresh after at most so many seconds."""
    found = _DELAYED.match(text)
    url = (found[2] or found[3] or found[4] or "").strip() if found else ""
    other = re.match(r"(?!https?:)[a-z][a-z0-9+.-]*+:", url, re.IGNORECASE)
    return None if found is None or int(found[1]) > most or other else url
