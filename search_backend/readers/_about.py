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
_BYLINES = (
    'meta[name="author"]',
    'meta[property="article:author"]',
    'meta[name="parsely-author"]',
    'meta[name="dc.creator"]',
)
_DATES = (
    'meta[property="article:published_time"]',
    'meta[name="date"]',
    'meta[name="pubdate"]',
    'meta[itemprop="datePublished"]',
    'meta[name="dc.date"]',
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
    text = _meta(tree, _BYLINES)
    return one_line(text, 200) if text and not text.startswith(("http:", "https:")) else None


def published(tree: LexborHTMLParser) -> str | None:
    """The ISO date (and time) of publication."""
    found = _DATE.match(_meta(tree, _DATES) or "")
    if found:
        return found[0]
    for script in tree.css('script[type="application/ld+json"]'):
        data = _LINKED_DATA_DATE.search(script.text() or "")
        if data and (found := _DATE.match(data[1])):
            return found[0]
    node = tree.css_first("article time[datetime], time[pubdate]")
    found = _DATE.match((node.attributes.get("datetime") or "") if node is not None else "")
    return found[0] if found else None


def language(tree: LexborHTMLParser) -> str | None:
    """The language tag of the page, such as en or pt-BR."""
    root = tree.css_first("html")
    tag = (root.attributes.get("lang") or "").strip() if root is not None else ""
    return tag if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}", tag) else None


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


def _meta(tree: LexborHTMLParser, queries: tuple[str, ...]) -> str | None:
    for query in queries:
        node = tree.css_first(query)
        if node is not None and (text := (node.attributes.get("content") or "").strip()):
            return text
    return None


def _joined(base: str, href: str | None) -> str | None:
    # Browsers take blanks around an address and line ends inside it for nothing.
    plain = re.sub(r"[\t\r\n]", "", href or "").strip()
    if not plain or plain.startswith("#") or len(plain) > LONGEST_URL:
        return None
    try:
        target = urldefrag(urljoin(base, plain)).url
        host = urlsplit(target).hostname
    except ValueError:
        return None
    return target if host and target.startswith(("http://", "https://")) else None
