"""The text of a page that shows none: what it tells search engines, or gives its own scripts.

JSON-LD comes first, then the data of Next and Nuxt, then what a script stores for others. No
visitor sees any of it as it stands, so it is read only in place of an empty page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from selectolax.lexbor import LexborHTMLParser

_LINKED = "script[type='application/ld+json']"
_OF_SCRIPTS = "script#__NEXT_DATA__,script#__NUXT_DATA__,script[type='application/json']"
# `window.__NUXT__ = {...}`, `self.__next_f.push([1, "..."])`
_is_stored = re.compile(
    r"(?i)\W{0,3}(?:window|self|globalThis)\W{1,3}(?:__|\w*(?:state|data))"
).match
_QUOTED = re.compile(
    r"\"((?>(?:[^\"\\]|\\.)*))(?:\"|\Z)|'((?>(?:[^'\\]|\\.)*))(?:'|\Z)|`([^`]*+)", re.DOTALL
)
# Of an object of schema.org: what stands by itself, and names whose values say nothing.
_UNNAMED = ("name", "headline", "title", "text", "articleBody", "description")
_says_nothing = re.compile(
    r"(?i)@(?!graph|value)|url|image|logo|sameas|action|publisher|breadcrumb|ispart|mainentityof"
    r"|inlanguage|price(?:currency)?\Z|id\Z"
).match
# Not of the text: words of the program, what a browser shows in its tab.
_OTHER = re.compile(
    r"(?i)i18n|locale|translat|messages|cookie|consent|meta|seo|schema|config|query"
)
_LEAST_BLANKS, _MOST_VALUES, _DEEPEST = 7, 20_000, 12
_TAG = re.compile(r"</?[a-zA-Z][\w-]*[\s/>]")
_SIGNS = "。！？।۔"  # of sentences in scripts that may have no blanks


def told(tree: LexborHTMLParser) -> str:
    """Returns what the data of a page says, as HTML; "" if it says nothing."""
    ways = (_LINKED, _parsed, _linked), (_OF_SCRIPTS, _parsed, _sentences), ("script", str, _stored)
    for query, parsed, read in ways:
        data = (parsed(node.text() or "") for node in tree.css(query))
        said = dict.fromkeys(filter(None, (one.strip() for each in data for one in read(each))))
        if said:
            # Some values hold a whole page.
            return "".join(one if _TAG.search(one) else f"<p>{escape(one)}</p>" for one in said)
    return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _linked(data: Any, depth: int = 0, called: str = "text") -> Iterator[str]:
    """Yields what an object of schema.org says, and those inside it, by its names."""
    if isinstance(data, str | int | float):
        said = str(data).removeprefix("https://schema.org/").strip()
        if said and not said.startswith("http"):
            yield said if " " in said or called in _UNNAMED else f"{called}: {said}"
    elif isinstance(data, list) and depth < _DEEPEST:
        for one in data:
            yield from _linked(one, depth + 1, called)
    elif isinstance(data, dict) and depth < _DEEPEST:
        if "price" in data:
            yield f"{data['price']} {data.get('priceCurrency', '')}"
        for name, value in data.items():
            if not _says_nothing(name):
                yield from _linked(value, depth + 1, name)


def _sentences(data: Any) -> Iterator[str]:
    """Yields the sentences among the values of a page's own data, in their order."""
    left, waiting = _MOST_VALUES, [data]
    while waiting and left:
        left -= 1
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed([one for name, one in value.items() if not _OTHER.search(name)])
        elif isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, str) and _is_text(value):
            yield value


def _stored(script: str) -> Iterator[str]:
    """Yields the sentences among the texts that a script stores, also those inside such a text."""
    waiting = [script] if _is_stored(script) else []
    while waiting:
        for quoted in _QUOTED.finditer(waiting.pop()):
            said = next(filter(None, quoted.groups()), "")
            said = str(_parsed(f'"{said}"') or said)
            if '":' in said or '["' in said:
                waiting.append(said)
            elif _is_text(said):
                yield said


def _is_text(value: str) -> bool:
    is_sentence = value.count(" ") >= _LEAST_BLANKS or any(map(value.__contains__, _SIGNS))
    return is_sentence and not value.lstrip().startswith(("{", "[", "http", "data:", ".", "@"))
