"""What a page says about itself: title, author, date, language, and where it links to."""

from __future__ import annotations

import re
from urllib.parse import urldefrag, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser

from search_backend.clean import one_line

MOST_LINKS = 200
LONGEST_URL = 2_000

_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_LINKED_DATA_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
_LINKED_DATA_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(\w{1,40})"')
# The most telling first: a discussion may hold articles, an article may name a product.
_KINDS = (
    (3, ("discussion", "qapage", "question")),
    (1, ("article", "blogpost", "report")),
    (4, ("itemlist", "collectionpage", "category", "searchresults")),
    (2, ("product",)),
)
# In an object, a list of objects or as it is; what stands between is short.
_LINKED_DATA_AUTHOR = re.compile(
    r'"author"\s*:\s*(?:"([^"\\]{2,100})"|[\[{][^\]}]{0,300}?"name"\s*:\s*"([^"\\]{2,100})")'
)
_SIGNED = "[rel~=author],[itemprop=author] [itemprop=name],[itemprop=author]"
LONGEST_NAME = 80
_BYLINES = (
    "name=author",
    "property=article:author",
    "name=parsely-author",
    "name=dc.creator",
)
_DATES = (
    "property=article:published_time",
    "name=date",
    "name=pubdate",
    "itemprop=datePublished",
    "name=dc.date",
)


def title(tree: LexborHTMLParser) -> str:
    """The title shown in a browser's tab, else the one for sharing, else the first heading."""
    for query in ("head title", 'meta[property="og:title"]', "h1", "title"):
        node = tree.css_first(query)
        if node is not None:
            text = node.attributes.get("content") or node.text(deep=True) or ""
            if words := one_line(text):
                return words
    return ""


def byline(tree: LexborHTMLParser) -> str | None:
    """The author as the page names them, not as an address."""
    named = [_meta(tree, _BYLINES) or "", _linked_data(tree, _LINKED_DATA_AUTHOR)]
    signed = tree.css_first(_SIGNED)
    if signed is not None and len(text := one_line(signed.text(deep=True) or "")) <= LONGEST_NAME:
        named.append(text.removeprefix("By ").removeprefix("by "))
    for text in named:
        if text and not text.startswith(("http:", "https:", "@")):
            return one_line(text, 200)
    return None


def published(tree: LexborHTMLParser) -> str | None:
    """The ISO date (and time) of publication."""
    found = _DATE.match(_meta(tree, _DATES) or "")
    if found:
        return found[0]
    if found := _DATE.match(_linked_data(tree, _LINKED_DATA_DATE)):
        return found[0]
    if tree.css_first("time,[itemprop=datePublished]") is None:
        return None
    for query in ("[itemprop=datePublished]", "time[pubdate]", "article time", "main time", "time"):
        node = tree.css_first(query)
        if node is not None:
            told = node.attributes.get("datetime") or node.attributes.get("content") or ""
            if found := _DATE.match(told):
                return found[0]
    return None


def language(tree: LexborHTMLParser) -> str | None:
    """The language tag of the page, such as en or pt-BR."""
    root = tree.css_first("html")
    tag = (root.attributes.get("lang") or "").strip() if root is not None else ""
    return tag if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}", tag) else None


def kind(tree: LexborHTMLParser) -> int:
    """What the page says it is: 1 article, 2 product, 3 discussion, 4 list, 5 other, 0 nothing."""
    said = [
        name.lower()
        for script in tree.css('script[type="application/ld+json"]')
        for name in _LINKED_DATA_TYPE.findall((script.text() or "")[:100_000])
    ]
    said.append((_meta(tree, ("property=og:type",)) or "").lower())
    for number, words in _KINDS:
        if any(word in name for name in said for word in words):
            return number
    return 5 if any(said) else 0


def links(tree: LexborHTMLParser, url: str) -> tuple[str, ...]:
    """Absolute web addresses, those of the main part first, each once, at most MOST_LINKS."""
    base_node = tree.css_first("base[href]")
    base = _joined(url, base_node.attributes.get("href") if base_node is not None else None) or url
    own = urldefrag(url).url
    found: dict[str, None] = {}
    tried: set[str | None] = set()
    for query in ("main a[href], article a[href]", "a[href]"):
        for node in tree.css(query):
            href = node.attributes.get("href")
            if href in tried:
                continue
            tried.add(href)
            target = _joined(base, href)
            if target is not None and target != own:
                found[target] = None
            if len(found) >= MOST_LINKS:
                return tuple(found)
    return tuple(found)


def _linked_data(tree: LexborHTMLParser, wanted: re.Pattern[str]) -> str:
    """The first group that is there of the first match in the page's JSON-LD, else nothing."""
    for script in tree.css('script[type="application/ld+json"]'):
        if found := wanted.search((script.text() or "")[:200_000]):
            return next(filter(None, found.groups()), "")
    return ""


def _meta(tree: LexborHTMLParser, wanted: tuple[str, ...]) -> str | None:
    """The content of the first of these that has one, each as name=value."""
    found: dict[str, str] = {}
    # Once through the tree, whatever is wanted.
    for node in tree.css("meta"):
        attributes = node.attributes
        for name in ("name", "property", "itemprop"):
            if value := attributes.get(name):
                found.setdefault(f"{name}={value}", (attributes.get("content") or "").strip())
    return next(filter(None, map(found.get, wanted)), None)


# Joining to a base changes nothing of these.
_WHOLE = re.compile(r"https?://[a-z0-9.-]+/(?:[\w%+=&~/.-]*(?:\?[\w%+=&~/.-]+)?)", re.ASCII)


def _joined(base: str, href: str | None) -> str | None:
    # Browsers take blanks around an address and line ends inside it for nothing.
    plain = re.sub(r"[\t\r\n]", "", href or "").strip()
    if not plain or plain.startswith("#") or len(plain) > LONGEST_URL:
        return None
    if _WHOLE.fullmatch(plain):
        return plain
    try:
        target = urldefrag(urljoin(base, plain)).url
        host = urlsplit(target).hostname
    except ValueError:
        return None
    return target if host and target.startswith(("http://", "https://")) else None
