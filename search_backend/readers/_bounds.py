"""Bound markup before a parser sees it.

Building a tree costs time quadratic in its depth and in the attributes of one tag, and formatting
left open is repeated in every paragraph that follows. Most pages are too small for this to matter
and pass as they are. The others are written anew, tag by tag: with few attributes, without scripts
and comments, and without the tags that would go too deep. What is written can be read in one way
only, so no trick of quoting makes the parser see a deeper tree than was counted here.
https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

import re
from functools import cache

from search_backend.readers._nesting import (
    DEEPEST,
    FORMATTING,
    LONGEST_TAG,
    MOST_ELEMENTS,
    MOST_FORMATTING,
    NEVER_OPEN,
    REPEATED_NAMES,
    is_shallow,
)

MOST_BYTES = 6 * 2**20
MOST_CHARACTERS = 2_000_000
# Up to here depth and repetition cost milliseconds, whatever the markup.
HARMLESS_TAGS = 4_000
HARMLESS_REPEATS = 400_000
# Longer pages are read by a process that can be killed, should a trick of quoting mislead here.
LARGE = 150_000
MOST_ATTRIBUTES = 24
LONGEST_VALUE = 4_000

_OPENING = re.compile(r"<[a-zA-Z]")
_REPEATED = re.compile(rf"<(?:{REPEATED_NAMES})(?=[\s/>])", re.IGNORECASE)
_QUOTED_TAG = re.compile(r"<[a-zA-Z](?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?)*+")
_PLAIN_TAG = re.compile(r"<[a-zA-Z][^>]*+")
_TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+>?"
    r"|<(script|style|textarea|xmp|iframe|noembed|noframes)(?=[\s/>])[^>]*+>?(.*?)(?:</\1[^>]*+>|\Z)"
    # A quote opens a value only behind "="; a stray one must not swallow the page.
    r"|<(/?)([a-zA-Z][^\s/>]{0,60})"
    r"((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?)*+)>?"
    r"|<",
    re.DOTALL | re.IGNORECASE,
)
# All but those that tell of the page.
_SCRIPT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<script(?=[\s/>])(?![^>]{0,200}ld\+json)[^>]*+>?.*?(?:</script[^>]*+>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Where scripts run, an open frame ends with the <noscript> around it; here it would take the rest
# of the page for its own.
_OPEN_FRAME = re.compile(r"(<noscript[^>]*+>\s*+<iframe[^>]*+>)(?=\s*+</noscript)")
_ATTRIBUTE = re.compile(
    r"([a-zA-Z][\w:-]{0,40})(?:\s*=\s*(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++)))?"
)
_KEPT_ATTRIBUTES = frozenset(
    {
        *("aria-hidden", "class", "colspan", "content", "datetime", "hidden", "href", "id"),
        *("itemprop", "lang", "name", "open", "property", "role", "rowspan", "style", "type"),
    }
)
_is_name = re.compile(r"[a-z][a-z0-9-]*").fullmatch


def bounded(html: str) -> tuple[str, bool]:
    """The markup within the bounds, and whether it was longer than the cap."""
    if len(html) > MOST_CHARACTERS:
        # Most of so long a page is scripts as a rule, and its text may stand behind them.
        html = _SCRIPT.sub(" ", html)
    cut = len(html) > MOST_CHARACTERS
    html = _OPEN_FRAME.sub(r"\1</iframe>", html[:MOST_CHARACTERS])
    if _is_harmless(html):
        return html, cut
    html, ended = _Rewriter().rewrite(html)
    return html, cut or ended


def _is_harmless(html: str) -> bool:
    if len(html) >= LARGE:
        return is_shallow(html)
    tags = len(_OPENING.findall(html))
    if tags > HARMLESS_TAGS or len(_REPEATED.findall(html)) * tags > HARMLESS_REPEATS:
        return False
    # Read with quotes in mind, and again without: a page may mean either.
    return not any(
        len(max(pattern.findall(html), key=len, default="")) > LONGEST_TAG
        for pattern in (_QUOTED_TAG, _PLAIN_TAG)
    )


class _Rewriter:
    """Writes markup anew while it counts what is open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._left_out: dict[str, int] = {}
        self._depth = 0
        self._formatting = 0
        self._attributes = cache(_attributes)

    def rewrite(self, html: str) -> tuple[str, bool]:
        """The same text in tags that nest at most DEEPEST deep, up to MOST_ELEMENTS; and whether
        there was more."""
        written: list[str] = []
        position = elements = 0
        for match in _TOKEN.finditer(html):
            written.append(html[position : match.start()])
            position = match.end()
            token = self._token(match)
            written.append(token)
            elements += token[:1] == "<" and token[1] != "/"
            if elements >= MOST_ELEMENTS:
                return "".join(written), True
        written.append(html[position:])
        return "".join(written), False

    def _token(self, match: re.Match[str]) -> str:
        raw, sheet, ends, name, attributes = match.groups()
        if name is None:
            if raw:
                sheet = (sheet or "").replace("<", " ")
                return f"<style>{sheet}</style>" if raw.lower() == "style" else " "
            # A comment, a doctype, or a "<" that begins no tag.
            return "&lt;" if match[0] == "<" else ""
        name = name.lower()
        if ends:
            return f"</{name}>" if _is_name(name) and self._close(name) else " "
        if not _is_name(name) or not self._enter(name):
            return " "
        return f"<{name}{self._attributes(attributes)}>" if attributes else f"<{name}>"

    def _enter(self, name: str) -> bool:
        if name in NEVER_OPEN:
            return True
        repeated = name in FORMATTING
        if (self._formatting >= MOST_FORMATTING) if repeated else (self._depth >= DEEPEST):
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return False
        self._open[name] = self._open.get(name, 0) + 1
        self._formatting += repeated
        self._depth += not repeated
        return True

    def _close(self, name: str) -> bool:
        if name in NEVER_OPEN:
            return True
        if self._left_out.get(name):
            self._left_out[name] -= 1
            return False
        if not self._open.get(name):
            return False
        self._open[name] -= 1
        self._formatting -= name in FORMATTING
        self._depth -= name not in FORMATTING
        return True


def _attributes(text: str) -> str:
    kept: list[str] = []
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        name = name.lower()
        if name not in _KEPT_ATTRIBUTES:
            continue
        value = (double or single or bare)[:LONGEST_VALUE].replace('"', "&quot;")
        kept.append(f' {name}="{value}"')
        if len(kept) >= MOST_ATTRIBUTES:
            break
    return "".join(kept)
