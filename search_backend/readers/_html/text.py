"""Text in the form that the parser writes: as it is meant, without tags, in order, inside links.

What the parser writes has one form only: every value in double quotes, no "<" or ">" in text or
values, and five escapes.
"""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

_LINK_TAG = re.compile(r"<(/a|a(?: [^<>]*)?)>")
TAG = re.compile(r"<[^<>]*>")
_BLANKS = re.compile("  +")
# What Python takes for blanks, but for the plain one.
_ASCII_BLANKS = "\n\t\r\x0b\x0c\x1c\x1d\x1e\x1f"
_ODD_BLANKS = (
    f"{_ASCII_BLANKS}\xa0\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
LONGEST_URL = 2_000
# Joining to a base changes nothing of these.
_SIGN = r"[\w%+=&~/.,:@!'*-]"
_WHOLE = rf"https?://[a-z0-9.-]+(?:/{_SIGN}*(?:\?{_SIGN}+)?(?:#{_SIGN}+)?)?"
_is_whole = re.compile(_WHOLE, re.ASCII).fullmatch
# Joining to a page of the web changes nothing of these but what stands before.
is_in_site = re.compile(
    r"/(?!/)(?!\S*/[./])[\w%+=&~/.:,@!'*-]*(?:\?[\w%+=&~/.:,@!'*-]+)?(?:#[\w%+=&~/.-]+)?", re.ASCII
).fullmatch
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
    """`text` with one plain blank wherever it has blanks. Made for much text at once."""
    for blank in _ASCII_BLANKS if text.isascii() else _ODD_BLANKS:
        text = text.replace(blank, " ")
    return one_blank(text)


def one_blank(text: str) -> str:
    """`text` with one plain blank for several."""
    return _BLANKS.sub(" ", text)


def site(url: str) -> str:
    """The scheme and host of `url`; nothing if it is no page of the web."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    is_web = parts.scheme in ("http", "https") and parts.hostname
    return f"{parts.scheme}://{parts.netloc}" if is_web else ""


def address(tag: str) -> str:
    """The address of a link, from its tag."""
    return plain(tag.partition(' href="')[2].partition('"')[0])


def absolute(href: str, base: str, own_site: str = "") -> str:
    """The web address of a link on the page `base`, which is of `own_site`; nothing for one that
    leads nowhere else."""
    # Browsers take blanks around an address and line ends inside it for nothing.
    href = re.sub(r"[\t\r\n]", "", href).strip() if not href.isprintable() or " " in href else href
    if not href or href[0] == "#" or len(href) > LONGEST_URL:
        return ""
    if _is_whole(href):
        return href
    if own_site and is_in_site(href):
        return own_site + href
    try:
        target = urljoin(base, href)
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
