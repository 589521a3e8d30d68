"""Which elements a page's own sheets, styles and attributes hide, each rule against the others.

Rules that may hide are asked first, and only of elements that they can mean: most pages have none,
and end here. For what they find, the rules that speak of the same are weighed as a browser does it,
by importance, specificity and order. Sheets elsewhere are not fetched; a page that names some is
not known whole, and then colours are compared on one element only.

Spec: https://www.w3.org/TR/css-cascade-4/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from search_backend.readers._colour import (
    WHITE,
    Colour,
    alike,
    clear_text,
    colour,
    colour_of,
    ground,
)
from search_backend.readers._declared import Declarations, declarations, plain
from search_backend.readers._rules import Rules
from search_backend.readers._selectors import needed, specificity
from search_backend.readers._sheets import is_whole, sheets
from search_backend.readers._style import hiding, valid_display

# Each query is a walk over the page, or over what is in a few elements. So many cost little, one
# that counts neighbours as much as DEAR others; all further ones may look at so many elements.
CHEAP, DEAR, MOST_STEPS = 500, 20, 40_000_000
FEW = 8
# No longer block is kept for other pages.
COMMON = 500
MOST_NEIGHBOURS = 400
_COLOUR = frozenset({"colour"})
# An element, and the axes on which it is hidden.
Finding = tuple[LexborNode, frozenset[str]]
_Layer = tuple[tuple[int, int, int], Declarations]


class Cascade:
    """What is declared for the elements of one page."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        texts = list(sheets(tree))
        self._rules = Rules(texts)
        # Whether nothing but what stands in the page has a say in how it looks.
        self.whole = self._rules.thorough and is_whole(tree, texts)
        self._steps = MOST_STEPS
        self._size = 0
        self._asked = 0
        self._used: frozenset[str] | None = None
        self._like_ground: dict[Colour, bool] = {}
        self._grounds: dict[int, Colour | None] = {}
        self._grounds_used: set[Colour] | None = None

    def hidden_by_sheets(self) -> list[Finding]:
        """Elements that some rule hides, whatever the others say, and on which axes."""
        selectors: dict[frozenset[str], dict[str, None]] = {}
        hiding_rules: list[int] = []
        suspects = self._rules.suspects(self.whole)
        for at in suspects:
            said = [selector for selector, _ in self._rules.means(at)]
            if len(suspects) > FEW:  # most rules of a sheet mean nothing in the page at hand
                said = [one for one, key in self._rules.means(at) if self._is_used(one, key)]
            if said and (axes := self.axes_of(self._rules.blocks[at])):
                selectors.setdefault(axes, {}).update(dict.fromkeys(said))
                hiding_rules.append(at)
        if not self._rules.thorough:
            self._rules.keep(hiding_rules)
        found: dict[int, Finding] = {}
        for axes, group in selectors.items():
            for node in self._found(list(group)):
                known = found.get(node.mem_id)
                found[node.mem_id] = (node, known[1] | axes if known else axes)
        return list(found.values())

    def _is_used(self, selector: str, key: str) -> bool:
        """Whether the page has the names that a selector needs."""
        if self._used is None:
            classes = {node.attributes.get("class") for node in self._tree.css("[class]")}
            names = {"." + name for name in " ".join(filter(None, classes)).split()}
            names |= {f"#{node.attributes.get('id')}" for node in self._tree.css("[id]")}
            self._used = frozenset(names)
        if key == selector or (key[:1] in (".", "#") and key not in self._used):
            return key in self._used or key[:1] not in (".", "#")
        return needed(selector) <= self._used

    def axes(self, style: Declarations) -> frozenset[str]:
        """The axes on which these declarations hide, or may hide, an element."""
        axes = hiding(style, not self.whole) | clear_text(style)
        return axes | {"colour"} if self.may_be_like_its_ground(style) else axes

    def axes_of(self, block: str) -> frozenset[str]:
        """The axes on which a block or an inline style hides, or may hide, an element."""
        if not self.whole and len(block) <= COMMON and "var(" not in block:
            return _common_axes(block)
        return self.axes(plain(self._rules.of(block)))

    def may_be_like_its_ground(self, style: Declarations) -> bool:
        """Whether text of that colour could stand on a ground of the same somewhere in the page."""
        if not self.whole or (text := colour_of(style)) is None:
            return False
        if self._grounds_used is None:
            self._grounds_used = {WHITE, *self._declared_grounds()}
        if text not in self._like_ground:
            self._like_ground[text] = any(alike(text, behind) for behind in self._grounds_used)
        return self._like_ground[text]

    def _declared_grounds(self) -> Iterator[Colour]:
        blocks = [block for block in self._rules.blocks if "background" in block]
        nodes = self._tree.css("[style*=background i],[bgcolor]")
        for style in map(
            self._rules.of, [*blocks, *((n.attributes.get("style") or "") for n in nodes)]
        ):
            said = plain(style)
            for name in ("background", "background-color"):
                if found := ground(said.get(name, "none")):
                    yield found
        for node in nodes:
            if found := colour((node.attributes.get("bgcolor") or "").strip().lower()):
                yield found

    def weighed(self, findings: Sequence[Finding]) -> list[Declarations]:
        """What holds for each of the elements, of the properties of its axes."""
        layers: list[dict[int, _Layer]] = [{} for _ in findings]
        if self._rules.blocks:
            for (axis, name), numbers in _by_name(findings).items():
                for selector, order in self._rules.said_of(axis, name):
                    wanted = [number for number in numbers if order not in layers[number]]
                    nodes = [findings[number][0] for number in wanted]
                    if nodes and (meant := self._meant(nodes, selector, name)):
                        layer = (
                            (*specificity(selector), order),
                            self._rules.of(self._rules.blocks[order]),
                        )
                        for number in wanted:
                            if findings[number][0].mem_id in meant:
                                layers[number][order] = layer
        pairs = zip(findings, layers, strict=True)
        return [self._merged(node, list(found.values())) for (node, _), found in pairs]

    def _meant(self, nodes: list[LexborNode], selector: str, name: str) -> set[int]:
        """Which of the nodes, all of which have this name, a selector means. Once the page has cost
        too much, none."""
        if selector == name:
            return {node.mem_id for node in nodes}
        found: set[int] = set()
        if self._may_ask(selector):
            with suppress(SelectolaxError):
                if len(nodes) > FEW:
                    return {node.mem_id for node in self._tree.css(selector)}
                for node in nodes:
                    # Elements come in their order, so it is the first, if it is one at all.
                    first = node.css_first(selector)
                    if first is not None and first.mem_id == node.mem_id:
                        found.add(node.mem_id)
        return found

    def _may_ask(self, selector: str) -> bool:
        """Whether the page may cost one more query."""
        self._asked += _weight(selector)
        if self._asked > CHEAP:
            self._steps -= self._cost(selector)
        return self._steps > 0

    def _merged(self, node: LexborNode, layers: list[_Layer]) -> Declarations:
        """User agent, rules by weight, inline style; what is important once more on top."""
        attributes = node.attributes
        styles = [_built_in(node)]
        styles += [style for _, style in sorted(layers, key=lambda layer: layer[0])]
        if attributes.get("style"):
            styles.append(self._rules.of(attributes["style"] or ""))
        merged: Declarations = {}
        for prefix in ("", "!"):
            for style in styles:
                for name, value in style.items():
                    if name.startswith("!") != bool(prefix):
                        continue
                    if name[len(prefix) :] != "display" or valid_display(value):
                        merged[name[len(prefix) :]] = value
        return merged

    def grounds_of(self, nodes: Iterable[LexborNode]) -> list[Colour | None]:
        """The colour behind each node; None where it cannot be told."""
        paths = [list(_elements_above(node)) for node in nodes]
        unknown = {one.mem_id: (one, _COLOUR) for path in paths for one in path}
        findings = [unknown[key] for key in unknown.keys() - self._grounds.keys()]
        for (node, _), style in zip(findings, self.weighed(findings), strict=True):
            self._grounds[node.mem_id] = _own_ground(node, style)
        own = [[self._grounds[one.mem_id] for one in path] for path in paths]
        last = WHITE if self.whole else None
        return [next((o for o in path if o is None or o[3] > 0), last) for path in own]

    def _found(self, selectors: list[str]) -> list[LexborNode]:
        """What any of them means."""
        if sum(map(_weight, selectors)) <= CHEAP:
            with suppress(SelectolaxError):
                return self._tree.css(",".join(selectors)) if selectors else []
        found: dict[int, LexborNode] = {}
        # The cheap ones first, so that none of them goes without for the sake of dear ones.
        for selector in sorted(selectors, key=self._cost):
            if self._may_ask(selector):
                with suppress(SelectolaxError):
                    found |= {node.mem_id: node for node in self._tree.css(selector)}
        return list(found.values())

    def _cost(self, selector: str) -> int:
        """About how many elements are looked at."""
        self._size = self._size or len(self._tree.css("*"))
        neighbours = min(self._size, MOST_NEIGHBOURS) * _counting(selector)
        return self._size * (1 + selector.count(" ") + neighbours)


def _counting(selector: str) -> int:
    """How often it may make the parser look at all neighbours of an element."""
    return selector.count(":") + selector.count("~") + selector.count("*")


def _weight(selector: str) -> int:
    return 1 + DEAR * _counting(selector)


@lru_cache(maxsize=4096)
def _common_axes(block: str) -> frozenset[str]:
    """Of what stands alike in the pages of many sites."""
    style = plain(declarations(block))
    return hiding(style) | clear_text(style)


def _own_ground(node: LexborNode, style: Declarations) -> Colour | None:
    """The ground that an element has itself; clear for none, None for one that cannot be told."""
    if "(" in style.get("background-image", ""):
        return None
    said = style.get("background-color") or style.get("background")
    if said is None:
        said = (node.attributes.get("bgcolor") or "none").strip().lower()
    if said == "currentcolor":
        return colour_of(style)
    return ground(said)


def _by_name(findings: Sequence[Finding]) -> dict[tuple[str, str], list[int]]:
    """The numbers of those that have a name, by axis and name."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (node, axes) in enumerate(findings):
        if axes:
            attributes = node.attributes
            names = {"." + name for name in (attributes.get("class") or "").split()}
            for name in {"", node.tag or "", f"#{attributes.get('id')}", *names}:
                for axis in axes:
                    groups.setdefault((axis, name), []).append(number)
    return groups


def _elements_above(node: LexborNode) -> Iterator[LexborNode]:
    at: LexborNode | None = node
    while at is not None and at.is_element_node:
        yield at
        at = at.parent


def _built_in(node: LexborNode) -> Declarations:
    """What a browser declares before the page has a say."""
    attributes = node.attributes
    style: Declarations = {}
    if "hidden" in attributes or (node.tag == "dialog" and "open" not in attributes):
        style["display"] = "none"
    if "popover" in attributes:
        style["display"] = "none"
    if node.tag == "font" and attributes.get("color"):
        style["color"] = (attributes["color"] or "").strip().lower()
    return style
