"""Read what a page says about itself: title, date, kind, and where it links to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urldefrag

from selectolax.lexbor import LexborHTMLParser

from searchloop.analysis.dates import iso_date
from searchloop.search_backend.readers._html.parts import ABOUT
from searchloop.search_backend.readers._html.text import absolute
from searchloop.search_backend.text.clean import one_line

MOST_LINKS = 200

_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_is_date = re.compile(
    r"(?:\w+:)?publi\w*[-_]?(?:date|time)|(?:parsely-)?pub-?date|datepublished|dcterms\.issued"
    r"|(?:(?:dc|dcterms|sailthru)\.|citation_(?:publication_)?)?date(?:\.issued)?"
).fullmatch
_DATED_PATH = re.compile(r"/((?:19|20)\d\d)[/-](\d\d)[/-](\d\d)(?!\d)")
_LABEL = re.compile(r"\A[^:\d]{0,30}(?::| on )\s*")  # Published on
_LINKED_DATA_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
_LINKED_DATA_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(\w{1,40})"')


@dataclass(frozen=True, slots=True)
class Metadata:
    """The facts of a page for machines: contents of <meta> by name, and JSON-LD.

    `base` is the address that its links start from.
    """

    metas: dict[str, str]
    data: tuple[str, ...]
    base: str


def metadata(tree: LexborHTMLParser, url: str) -> Metadata:
    """Collect them, with one search of the page."""
    metas: dict[str, str] = {}
    data: list[str] = []
    base: str | None = None
    for node in tree.css('meta,base,script[type="application/ld+json"]'):
        attributes = node.attributes
        if node.tag == "script":
            data.append(node.text() or "")
        elif node.tag == "base":
            base = attributes.get("href") if base is None else base
        for name in ("name", "property", "itemprop") if node.tag == "meta" else ():
            if value := attributes.get(name):
                metas.setdefault(value.lower(), (attributes.get("content") or "").strip())
    return Metadata(metas, tuple(data), absolute(base or "", url) or url)


def title(tree: LexborHTMLParser) -> str:
    """The title shown in a browser's tab, else the one for sharing, else the first heading."""
    for query in ("head title", 'meta[property="og:title"]', "h1", "title"):
        node = tree.css_first(query)
        if node is not None:
            text = node.attributes.get("content") or node.text(deep=True) or ""
            if words := one_line(text):
                return words
    return ""


def published(tree: LexborHTMLParser, metadata: Metadata, url: str) -> str | None:
    """The ISO date (and time) of publication, as told for machines, in the address, to people."""
    said: list[str | None] = [metadata.metas.get("article:published_time")]
    said += [one for data in metadata.data for one in _LINKED_DATA_DATE.findall(data[:200_000])]
    said += [one for name, one in metadata.metas.items() if _is_date(name)]
    nodes = [node for query in ABOUT["dated"] if (node := tree.css_first(query)) is not None]
    said += [node.attributes.get(name) for node in nodes for name in ("datetime", "content")]
    said.append("-".join((*_DATED_PATH.findall(url), ())[0]))
    said += [_LABEL.sub("", node.text(deep=True).strip()) for node in nodes]
    return next(filter(None, (_date(one.replace("\\/", "/")) for one in said if one)), None)


def _date(said: str) -> str | None:
    found = _DATE.match(said.replace("/", "-"))
    return found[0] if found and iso_date(found[0][:10]) else iso_date(said)


def kind(metadata: Metadata) -> int:
    """The kind that a page names: 1 article, 2 product, 3 discussion, 4 list, 5 other, 0 none."""
    names = (_LINKED_DATA_TYPE.findall(script[:100_000]) for script in metadata.data)
    said = [name.lower() for found in names for name in found]
    said.append(metadata.metas.get("og:type", "").lower())
    for number, words in ABOUT["kinds"]:
        if any(word in name for name in said for word in words):
            return int(number)
    return 5 if any(said) else 0


def links(metadata: Metadata, tree: LexborHTMLParser, url: str) -> tuple[str, ...]:
    """Absolute web addresses, those of the main part first, each once, at most MOST_LINKS."""
    base = metadata.base
    own = urldefrag(url).url
    found: dict[str, None] = {}
    ways = tree.css("main a[href],article a[href]"), tree.css("a[href]")
    for node in chain.from_iterable(ways):
        target = absolute(node.attributes["href"] or "", base).partition("#")[0]
        if target and target != own:
            found[target] = None
            if len(found) >= MOST_LINKS:
                break
    return tuple(found)
