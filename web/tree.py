"""The tree that a rendered text is: strings and elements of a few kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Node = str | dict[str, Any]

TAGS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "blockquote"), frozenset()
    ),
    **dict.fromkeys(("code", "em", "strong", "del", "table", "thead", "tbody", "tr"), frozenset()),
    **dict.fromkeys(("hr", "br"), frozenset()),
    **dict.fromkeys(("th", "td", "span"), frozenset({"class"})),
    "ol": frozenset({"start"}),
    "pre": frozenset({"lang"}),
    "a": frozenset({"href"}),
    "cite": frozenset({"n", "m"}),
}
DEEPEST = 40  # levels of the tree; what lies deeper is shown flat


class Tree:
    """Nodes being put together, never deeper than allowed."""

    def __init__(self, deepest: int = DEEPEST) -> None:
        self._deepest = deepest
        self.nodes: list[Node] = []
        self._open: list[tuple[dict[str, Any] | None, list[Node], str]] = []
        self._depth = 0

    def _here(self) -> list[Node]:
        return self._open[-1][1] if self._open else self.nodes

    def open(
        self, tag: str | None, side: str | None = None, start: str | None = None, *, href: str = ""
    ) -> None:
        """Begins an element; None for one that is not shown itself."""
        if tag is None or self._depth >= self._deepest:
            self._open.append((None, self._here(), href))
            return
        node: dict[str, Any] = {"t": tag}
        if side:
            node["a"] = {"class": side}
        if start:
            node["a"] = {"start": start}
        self._depth += 1
        self._open.append((node, [], href))

    def href(self) -> str:
        """The address of the link that is open."""
        return self._open[-1][2]

    def said(self) -> str:
        """The words so far of the element that is open."""
        return words(self._open[-1][1])

    def close(self, instead: dict[str, Any] | None = None) -> None:
        """Ends the element, as `instead` if that is given."""
        node, children, _ = self._open.pop()
        if node is None:
            return
        self._depth -= 1
        node = instead or node
        if children:
            node["c"] = children
        self._here().append(node)

    def add(self, tag: str, children: list[Node] | None = None, lang: str | None = None) -> None:
        """A whole element."""
        node: dict[str, Any] = {"t": tag}
        if lang:
            node["a"] = {"lang": lang}
        if children:
            node["c"] = children
        self._here().append(node)

    def extend(self, nodes: Sequence[Node]) -> None:
        """Text and finished nodes; neighbouring strings become one."""
        here = self._here()
        for node in nodes:
            if node == "":
                continue
            if isinstance(node, str) and here and isinstance(here[-1], str):
                here[-1] += node
            else:
                here.append(node)


def words(nodes: Sequence[Node]) -> str:
    """All text in these nodes."""
    waiting, out = list(reversed(nodes)), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            out.append(node)
        else:
            waiting += reversed(node.get("c", ()))
    return "".join(out)
