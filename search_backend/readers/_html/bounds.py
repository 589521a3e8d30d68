"""Bound markup before a parser sees it.

Building a tree costs time quadratic in its depth and in the attributes of one tag, and formatting
left open is repeated in every paragraph that follows. Nearly all pages have nothing of that kind
and pass as they are. The others are written anew, tag by tag: with few attributes, without scripts
and comments, and without the tags that would go too deep. What is written can be read in one way
only, so no trick of quoting makes the parser see a deeper tree than was counted here.
https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

import re
from functools import cache

from searchloop.search_backend.readers._html.parts import NAMES

MOST_BYTES = 6 * 2**20
MOST_CHARACTERS = 2_000_000
LONGEST_VALUE = 4_000

# A parsed element and what is made of it take some 700 bytes.
MOST_ELEMENTS = 60_000
DEEPEST = 256
MOST_FORMATTING = 8
_FORMATTING_NAMES = "a b big code em font i nobr s small strike strong tt u"
FORMATTING = frozenset(_FORMATTING_NAMES.split())

_TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+>?"
    r"|<(script|style|textarea|xmp|iframe|noembed|noframes)(?=[\s/>])[^>]*+>?(.*?)(?:</\1[^>]*+>|\Z)"
    # A quote opens a value only behind "="; a stray one must not swallow the page.
    r"|<(/?)([a-zA-Z][^\s/>]{0,60})"
    r"((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?)*+)>?"
    r"|<",
    re.DOTALL | re.IGNORECASE,
)
# All but those that tell of the page, and formulas.
_SCRIPT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<script(?=[\s/>])(?![^>]{0,200}(?:ld\+json|math/tex))[^>]*+>?.*?(?:</script[^>]*+>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Where scripts run, an open frame ends with the <noscript> around it; here it would take the rest
# of the page for its own.
_OPEN_FRAME = re.compile(r"(<noscript[^<>]*+>\s*+<iframe[^<>]*+>)(?=\s*+</noscript)")
_MATH_SCRIPT = re.compile(
    r"<script type=[\"']?math/tex(?:; ?mode=display)?[\"']?(?: id=[\"']?[\w-]*[\"']?)?>"
)
_ATTRIBUTE = re.compile(
    r"([a-zA-Z][\w:-]{0,40})(?:\s*=\s*(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++)))?"
)
_KEPT_ATTRIBUTES = NAMES["attributes"]
_is_name = re.compile(r"[a-z][a-z0-9-]*").fullmatch
# A barrier that would let these nest is itself counted.
NEVER_OPEN = NAMES["never_open"]
_ENDS_FORMATTING = frozenset("/" + name for name in FORMATTING)
_ENDS_SHAPE = frozenset("/" + name for name in NAMES["shapes"])

_RAW_NAMES = ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes")
# What has no tags inside, up to its end.
_RAW = "|".join(
    rf"(?i:{name})(?=[\s/>])[^>]*+>?[^<]*+(?:<(?!/(?i:{name})[\s/>])[^<]*+)*+"
    for name in _RAW_NAMES
)
_REMARK = r"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+)|[!?][^>]*+"
# The name of a tag that can be read in one way only and has few attributes. The rest lies between.
_CLEAR = re.compile(
    # What has no tags inside is known by the letters it may begin with: looked at first, they save
    # a tenth of the time.
    rf"<(?:(?![sStTxXiInN](?i:{'|'.join(name[1:] for name in _RAW_NAMES)})[\s/>])"
    r"(/?[a-zA-Z][^\s/<>]*+)(?:>|"
    r"(?:\s*+[^<>=\"']{0,100}+(?<![\s/\"'])=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"'`]++(?=[\s>])))"
    rf"{{0,64}}+\s*+[^<>=\"']{{0,100}}+>)|{_REMARK}|{_RAW})"
)
# What an element shows instead of its own content, the innermost first.
_SHADOW = re.compile(
    r"(?i)<template\s[^<>]*shadowrootmode[^<>]*>([^<]*+(?:<(?!/?template[\s>])[^<]*+)*+)</template>"
)


def bounded(html: str) -> tuple[str, bool]:
    """The markup within the bounds, and whether it was longer than the cap."""
    if len(html) > MOST_CHARACTERS:
        # Most of so long a page is scripts as a rule, and its text may stand behind them.
        html = _SCRIPT.sub(" ", html)
    cut = len(html) > MOST_CHARACTERS
    html = _OPEN_FRAME.sub(r"\1</iframe>", html[:MOST_CHARACTERS])
    for _ in range(9 * ("shadowrootmode" in html)):
        html = _SHADOW.sub(r"<shadow-root>\1</shadow-root>", html)
    if is_shallow(html):
        return html, cut
    html, ended = _Rewriter().rewrite(html)
    return html, cut or ended


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
                if _MATH_SCRIPT.match(match[0]):
                    return match[0].replace("<!", "< !")
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
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        if (name := name.lower()) in _KEPT_ATTRIBUTES:
            value = (double or single or bare)[:LONGEST_VALUE].replace('"', "&quot;")
            found.setdefault(name, f' {name}="{value}"')
    return "".join(found.values())


def is_shallow(html: str) -> bool:
    """Tell whether tags can be read in one way only, are few, never nest deep, nor pile up
    formatting or attributes."""
    if len(html) > 4 * MOST_ELEMENTS < html.count("<"):
        return False
    names = clear_names(html)
    if names is None or sum(name[0] != "/" for name in names) > MOST_ELEMENTS:
        return False
    return _stays_within(names)


def clear_names(html: str) -> list[str] | None:
    """The names of the tags, "/" before that of an end; None if any could be read in two ways."""
    parts = _CLEAR.split(html)
    return None if "<" in "".join(parts[::2]) else list(filter(None, parts[1::2]))


def _stays_within(names: list[str]) -> bool:
    """Tell whether few tags, and few of formatting, are ever open at once. Only an end right
    after the matching start counts as one, so this errs towards deep."""
    ends: dict[str, str] = {}
    opened: list[str] = []
    formatting = 0
    for name in names:
        end = ends.get(name)
        if end is None:
            end = ends[name] = _end_of(name.lower())
        if not end:
            continue
        if name[0] != "/":
            opened.append(end)
            formatting += end in _ENDS_FORMATTING
            if len(opened) > DEEPEST or formatting > MOST_FORMATTING:
                return False
        elif opened and opened[-1] == end:
            opened.pop()
            formatting -= end in _ENDS_FORMATTING
        elif end == "/svg":
            _end_drawing(opened)
    return True


def _end_drawing(opened: list[str]) -> None:
    """The end of a drawing ends whatever shapes in it were not ended."""
    at = len(opened) - 1
    while at > 0 and opened[at] in _ENDS_SHAPE:
        at -= 1
    if at >= 0 and opened[at] == "/svg":
        del opened[at:]


def _end_of(name: str) -> str:
    """The end tag of a tag that stays open; an end tag itself; nothing for others."""
    if not name or name[0] == "/":
        return "" if name[1:] in NEVER_OPEN else name
    return "" if name in NEVER_OPEN else "/" + name
