"""Text in the form that the parser writes: as it is meant, without tags, in order, inside links.

What the parser writes has one form only: every value in double quotes, no "<" or ">" in text or
values, and five escapes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

_LINK_TAG = re.compile(r"<(/a|a(?: [^<>]*)?)>")
TAG = re.compile(r"<[^<>]*>")
_BLANKS = re.compile(r"\s+")
CUT = "\x01"  # which no text needs: it stands between pieces of markup that are changed at once
LONGEST_URL = 2_000
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\xa0"), ("&quot;", '"'), ("&amp;", "&"))


def plain(text: str) -> str:
    """Text or a value as it is meant, from the five escapes that the parser writes."""
    if "&" not in text:
        return text
    for escape, sign in _ESCAPES:
        text = text.replace(escape, sign)
    return text


def bare(html: str) -> str:
    """The text of a piece of markup as it stands in the page, blanks included."""
    return plain(TAG.sub("", html) if "<" in html else html)


def normal(text: str) -> str:
    """The words of `text` with one blank between them."""
    # Most text is in order already, and seeing that is ten times as fast as cutting it up.
    return text.strip(" ") if text.isprintable() and "  " not in text else " ".join(text.split())


def in_order(text: str) -> str:
    """`text` with one plain blank wherever it has blanks."""
    return _BLANKS.sub(" ", text)


def address(tag: str) -> str:
    """The address of a link, from its tag."""
    return plain(tag.partition(' href="')[2].partition('"')[0])


@lru_cache(maxsize=1024)
def absolute(href: str, base: str) -> str:
    """The web address of a link on the page `base`; nothing for one that leads nowhere else."""
    # Browsers take blanks around an address and line ends inside it for nothing.
    href = re.sub(r"[\t\r\n]", "", href).strip() if not href.isprintable() or " " in href else href
    if not href or href[0] == "#" or len(href) > LONGEST_URL:
        return ""
    try:
        is_whole = href.startswith(("http://", "https://")) and href[-1] not in "#?"
        target = href if is_whole else urljoin(base, href)
        host = urlsplit(target).hostname
    except ValueError:
        return ""
    return target if host and target.startswith(("http://", "https://")) else ""


def runs(html: str, links: list[str]) -> list[tuple[str, str | None]]:
    """The text of a block as (markup, the address of the link it is in).

    `links` are the addresses of links that are open before it, and then those after it.
    """
    parts = iter(_LINK_TAG.split(html))
    found = [(next(parts), links[-1] if links else None)]
    for mark, run in zip(parts, parts, strict=True):
        if mark == "/a":
            del links[-1:]  # broken markup may close more links than it opens
        else:
            links.append(address(mark))
        found.append((run, links[-1] if links else None))
    return found
