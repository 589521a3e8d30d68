"""A page as a list of blocks: runs of text between which a browser breaks the line.

The parsed page is written out once and cut at its tags: what the parser writes has one form only
(every value in double quotes, no "<" or ">" in text or values), and a step through a list of
strings costs a fraction of a step through nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser

_BLOCK_NAMES = (
    "address article aside blockquote body br button caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html label legend li main nav ol p "
    "pre section summary table tbody td tfoot th thead tr ul"
)
_EMPTY = frozenset(("br", "hr"))
# What the parser writes as it was, with "<" in it.
_RAW = ("xmp", "noembed", "noframes", "plaintext")
_BLOCK_TAG = re.compile(rf"<(/?(?:{'|'.join(_BLOCK_NAMES.split())})(?: [^>]*)?)>")
_LINK_TAG = re.compile(r"<(/a|a(?: [^>]*)?)>")
_LINK = re.compile(r"<a(?: [^>]*)?>([^<]*+(?:<(?!/a>)[^<]*+)*+)</a>")
_TAG = re.compile(r"<[^>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_VALUES = re.compile(r' (class|id|role|itemprop)="([^"]*)"')
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\xa0"), ("&quot;", '"'), ("&amp;", "&"))
_WORD_ENDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
LONGEST_CLASS = 200
MOST_NAMES = 24


@dataclass(slots=True)
class Box:
    """An element that begins a line. `parent` is an index of `Layout.boxes`, -1 for the body."""

    parent: int
    tag: str
    names: tuple[str, ...]
    """Its tag and the words of class, id, role and itemprop, as the model knows them."""


@dataclass(slots=True)
class Block:
    """A run of text. `box` is the innermost element around it."""

    box: int
    html: str
    """What lies between the breaks of the line, with its links and other tags."""
    link: str | None
    """The address of a link that is open where it begins."""
    text: str
    words: int
    linked: float
    """The share of its characters that are inside links."""


@dataclass(slots=True)
class Layout:
    """The boxes of a page in the order of the document, and the blocks of text inside them."""

    boxes: list[Box] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class _Tag:
    """What the tag of a block does: begin a box, or end one, or both."""

    name: str
    names: tuple[str, ...] = ()
    begins: bool = False
    ends: bool = False


def written(tree: LexborHTMLParser) -> str:
    """The body as the parser writes it, without comments."""
    if tree.body is None:
        return ""
    html = tree.body.html or ""
    if any(f"<{name}" in html for name in _RAW):
        tree.unwrap_tags(list(_RAW))
        html = tree.body.html or ""
    # An empty tag in its place: text before and after a comment is not one text.
    return _COMMENT.sub("<!>", html) if "<!--" in html else html


def layout(markup: str) -> Layout:
    """The boxes and blocks of a body in the form of `written`."""
    page = Layout()
    boxes, blocks = page.boxes, page.blocks
    # Text, tag, text, tag and so on.
    parts = iter(_BLOCK_TAG.split(markup))
    known: dict[str, _Tag] = {}
    links: list[str] = []  # those that are open, each inside the one before
    box = -1
    for html, mark in zip(parts, parts, strict=False):
        if html and not html.isspace():
            link = links[-1] if links else None
            if "<" in html:
                text, words, linked = _rich(html, links)
            else:
                text, words = normal(plain(html))
                linked = 0.0 if link is None else 1.0
            if text:
                blocks.append(Block(box, html, link, text, words, linked))
        tag = known.get(mark)
        if tag is None:
            tag = known[mark] = _tag(mark)
        if tag.begins:
            boxes.append(Box(box, tag.name, tag.names))
            box = len(boxes) - 1
        if tag.ends:
            box = boxes[box].parent
    return page


def _rich(html: str, links: list[str]) -> tuple[str, int, float]:
    """(text, words, share of it in links) of text with tags in it. Brings `links` up to date."""
    text, words = normal(bare(html))
    ends = html.count("</a>")
    inside: list[str] = [html] if links else []
    if ends or "<a" in html:
        inside = [] if links else _LINK.findall(html)
        if not html.count("<a ") + html.count("<a>") == ends == len(inside):
            inside = [run for run, link in runs(html, links) if link is not None]
    return text, words, _length(inside) / len(text) if text else 0.0


def _length(runs: list[str]) -> int:
    """The characters of these runs, text by text, without what is between texts."""
    joined = " ".join(runs)
    if "<" in joined or "&" in joined:
        runs = [plain(text) for run in runs for text in _TAG.split(run)]
        joined = " ".join(runs)
    if not joined.isprintable() or "  " in joined or joined[:1] == " " or joined[-1:] == " ":
        runs = [run for run in runs if run and not run.isspace()]
        joined = normal(" ".join(runs))[0]
    return len(joined) - len(runs) + 1 if runs else 0


def runs(html: str, links: list[str]) -> list[tuple[str, str | None]]:
    """The text of a block as (markup, the address of the link it is in).

    `links` are the addresses of links that are open before it, and then those after it.
    """
    parts = iter(_LINK_TAG.split(html))
    found = [(next(parts), links[-1] if links else None)]
    for mark, run in zip(parts, parts, strict=True):
        if mark == "/a":
            links.pop()
        else:
            links.append(plain(mark.partition(' href="')[2].partition('"')[0]))
        found.append((run, links[-1] if links else None))
    return found


def bare(html: str) -> str:
    """The text of a piece of markup as it stands in the page, blanks included."""
    return plain(_TAG.sub("", html) if "<" in html else html)


def normal(text: str) -> tuple[str, int]:
    """The words of `text` with one blank between them, and how many they are."""
    # Most text is in order already, and seeing that is ten times as fast as cutting it up.
    if text.isprintable() and "  " not in text:
        text = text.strip(" ")
        return text, text.count(" ") + 1 if text else 0
    words = text.split()
    return " ".join(words), len(words)


def _tag(mark: str) -> _Tag:
    """What p class="x" or /p does."""
    if mark[0] == "/":
        return _Tag(mark[1:], ends=True)
    name = mark.partition(" ")[0]
    values = tuple(_VALUES.findall(mark)) if len(mark) > len(name) else ()
    return _Tag(name, _names(name, values), begins=True, ends=name in _EMPTY)


def plain(text: str) -> str:
    """Text or a value as it is meant, from the five escapes that the parser writes."""
    if "&" not in text:
        return text
    for escape, sign in _ESCAPES:
        text = text.replace(escape, sign)
    return text


@lru_cache(maxsize=4096)
def _names(tag: str, values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The tag and what its attributes are called, those of `_VALUES` in any order."""
    get = {name: plain(value) for name, value in values}.get
    own = (get("class", "")[:LONGEST_CLASS], get("id", "")[:60])
    words = [word for text in own for name in text.split() for word in _words(name)]
    more = [
        f"{short}={text[:40].lower()}"
        for short, text in (("r", get("role")), ("i", get("itemprop")))
        if text
    ]
    return (tag, *dict.fromkeys(words[:MOST_NAMES]), *more)


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """The words of a class or id, as the model knows them; the same few come again and again."""
    words = _WORD_ENDS.split(name)
    return tuple("." + word.lower() for word in words if len(word) > 1 and not word.isdigit())
