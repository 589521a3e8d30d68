"""The tree that a rendered text becomes, the addresses it may link to, and its citation marks.

The span of a citation's mark is either the mark itself (`[2]`, or the link that a provider wrote as
one) or the words that the source supports. A mark is replaced; after words a mark is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.search.answer_markdown import DEEPEST
from searchloop.analysis.addresses import url_key
from searchloop.render.formulas import MATHML

Node = str | dict[str, Any]

TAGS: Mapping[str, frozenset[str]] = {
    **MATHML,
    **dict.fromkeys(("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "blockquote"), frozenset()),
    **dict.fromkeys(("dl", "dt", "dd", "sup"), frozenset()),
    **dict.fromkeys(("li", "div"), frozenset({"class"})),
    **dict.fromkeys(("code", "em", "strong", "del", "table", "thead", "tbody", "tr"), frozenset()),
    **dict.fromkeys(("hr", "br"), frozenset()),
    **dict.fromkeys(("th", "td", "span"), frozenset({"class"})),
    "ol": frozenset({"start"}),
    "pre": frozenset({"lang"}),
    "a": frozenset({"href"}),
    "cite": frozenset({"n", "m"}),
}

# Addresses that browsers and we read alike: no blanks, controls, backslashes, quotes or user part.
_PLAIN_WEB = re.compile(
    r"(?i:https?)://[^\s\x00-\x20\x7f\\\"'<>@`{}|^/?#]+(?:[/?#][^\s\x00-\x20\x7f\\\"<>`]*)?"
)
_IS_MARK = re.compile(
    r"\s*(?:\[[^\[\]]{1,200}\](?:\([^()\s]{0,2000}\))?|\(\[[^\[\]]{1,200}\]\([^()\s]{0,2000}\)\)|【[^】]{1,100}】)\s*"
)

_BEHIND = " \t\r\n|"  # a mark goes before these, or it would start a line or a cell of its own
_NO_WORDS = re.compile(r"(?:^|\n)[ >]{0,8}(?:```+|~~~+|\*\*\*+|---+|===+)\Z")
_MOST, _LONGEST = 12, 120  # suggested links, characters of one


class Tree:
    """Builds nodes, never deeper than allowed."""

    def __init__(self, deepest: int = DEEPEST) -> None:
        self._deepest = deepest
        self.nodes: list[Node] = []
        self._open: list[tuple[dict[str, Any] | None, list[Node], str]] = []
        self._depth = 0

    def _here(self) -> list[Node]:
        return self._open[-1][1] if self._open else self.nodes

    def open(self, tag: str | None, href: str = "", **attributes: str | None) -> None:
        """Opens an element; None for one that is not shown itself."""
        if tag is None or self._depth >= self._deepest:
            self._open.append((None, self._here(), href))
            return
        self._depth += 1
        self._open.append((_node(tag, attributes), [], href))

    def href(self) -> str:
        """Returns the address of the open link."""
        return self._open[-1][2]

    def said(self) -> str:
        """Returns the text so far of the open element."""
        return words(self._open[-1][1])

    def close(self, instead: dict[str, Any] | None = None) -> None:
        """Closes the element, as `instead` if that is given."""
        node, children, _ = self._open.pop()
        if node is None:
            return
        self._depth -= 1
        node = instead or node
        if children:
            node["c"] = children
        self._here().append(node)

    def add(self, tag: str, children: list[Node] | None = None, **attributes: str | None) -> None:
        """Adds a whole element."""
        node = _node(tag, attributes)
        if children:
            node["c"] = children
        self._here().append(node)

    def extend(self, nodes: Sequence[Node]) -> None:
        """Adds text and finished nodes, and joins neighbouring strings."""
        here = self._here()
        for node in nodes:
            if node == "":
                continue
            if isinstance(node, str) and here and isinstance(here[-1], str):
                here[-1] += node
            else:
                here.append(node)


def _node(tag: str, attributes: Mapping[str, str | None]) -> dict[str, Any]:
    given = {name.strip("_"): value for name, value in attributes.items() if value}
    return {"t": tag, "a": given} if given else {"t": tag}


def words(nodes: Sequence[Node]) -> str:
    """Returns all text in these nodes."""
    waiting, out = list(reversed(nodes)), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            out.append(node)
        else:
            waiting += reversed(node.get("c", ()))
    return "".join(out)


def change(old: Sequence[Node], new: Sequence[Node]) -> list[Any]:
    """Returns [k, *nodes] that makes `new` of `old`: its first k nodes, and then these.

    The first of them may stand for the old one in its place: {"more": text} puts text behind a
    string, {"in": change} changes the children of an element.
    """
    same = 0
    while same < min(len(old), len(new)) and (old[same] is new[same] or old[same] == new[same]):
        same += 1
    tail: list[Any] = list(new[same:])
    if tail and same < len(old):
        was, now = old[same], tail[0]
        if isinstance(was, str) and isinstance(now, str) and now.startswith(was):
            tail[0] = {"more": now[len(was) :]}
        elif isinstance(was, dict) and isinstance(now, dict) and _grows(was, now):
            tail[0] = {"in": change(was["c"], now.get("c", ()))}
    return [same, *tail]


def _grows(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return bool(was.get("c")) and (was["t"], was.get("a")) == (now["t"], now.get("a"))


class KnownLinks:
    """The addresses of sources, the only ones that a text may link to."""

    def __init__(self, sources: Iterable[Mapping[str, Any]] = ()) -> None:
        self._urls: dict[str, str] = {}
        self.numbers: set[int] = set()
        self.add(sources)

    def add(self, sources: Iterable[Mapping[str, Any]]) -> None:
        """Adds sources or citations: mappings with `url` and perhaps `n`."""
        for source in sources:
            url, n = str(source.get("url") or ""), source.get("n")
            if isinstance(n, int):
                self.numbers.add(n)
            if len(url) <= 4096 and _PLAIN_WEB.fullmatch(url):
                self._urls.setdefault(url_key(url), url)

    def find(self, href: str) -> str | None:
        """Returns the source's own spelling of this address, or None if no source has it."""
        if not self._urls or len(href) > 4096 or not _PLAIN_WEB.fullmatch(href):
            return None
        return self._urls.get(url_key(href))


def shown_host(href: str) -> str:
    """Returns the host of an address, in ASCII; "" if there is none."""
    try:
        host = urlsplit(href.replace("\\", "/").strip()).hostname or ""
    except ValueError:
        return ""
    host = host[:253]
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return host.encode("ascii", "backslashreplace").decode()


def suggestions(details: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns the [{text, url}] of searches that a provider wants shown beside its answer.

    The provider sends markup; only the text and address of each link are taken from it.
    """
    sent = details.get("search_suggestions")
    html = sent.get("html") if isinstance(sent, Mapping) else None
    if not isinstance(html, str):
        return []
    from selectolax.lexbor import LexborHTMLParser

    links = LexborHTMLParser(html[:100_000]).css("a[href^='https://']")
    pairs = ((" ".join(a.text().split())[:_LONGEST], a.attributes["href"] or "") for a in links)
    known = [{"url": url, "text": text} for text, url in pairs if text and shown_host(url)]
    return [link for link in known if len(link["url"]) < 4096][:_MOST]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place for citation marks: `text[start:end]` is replaced; an empty range adds them.

    `numbers` maps each citation to the indexes of those of its marks that stand here.
    """

    start: int
    end: int
    numbers: Mapping[int, tuple[int, ...]]


def find_marks(text: str, citations: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """Returns the marks of citations in order, without overlap."""
    found: dict[tuple[int, int], dict[int, tuple[int, ...]]] = {}
    for citation in citations:
        n = int(citation["n"])
        for i, mark in enumerate(citation.get("marks", ())):
            start, end = mark["span"] or (0, 0)
            if 0 <= start < end <= len(text):
                here = found.setdefault(_place(text, start, end), {})
                here[n] = (*here.get(n, ()), i)
    marks: list[Mark] = []
    reached = 0
    for (start, end), which in sorted(found.items()):
        if start >= reached:
            marks.append(Mark(start, end, which))
            reached = end
        elif start < end and end <= reached:
            continue
        else:
            marks.append(Mark(max(end, reached), max(end, reached), which))
            reached = max(end, reached)
    return marks


def _place(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    stripped = words.strip()
    lead = start + len(words) - len(words.lstrip())
    if len(stripped) < 4000 and _IS_MARK.fullmatch(stripped):
        return lead, lead + len(stripped)
    kept = _NO_WORDS.sub("", words.rstrip(_BEHIND)).rstrip(_BEHIND)
    after = start + len(kept) if kept.strip() else end
    return after, after


def substitute(text: str, marks: Sequence[Mark], write: Callable[[Mark], str]) -> str:
    """Returns the text with `write(mark)` in the place of each mark."""
    out: list[str] = []
    last = 0
    for mark in marks:
        out += (text[last : mark.start], write(mark))
        last = mark.end
    out.append(text[last:])
    return "".join(out)
