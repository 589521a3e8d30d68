"""Style sheets of a page: the rules, the elements that each rule matches, and the cascade.

tinycss2 parses declarations and lexbor matches selectors. lexbor backtracks without bound, so a
selector that looks further than once around an element does not count. Each step is charged to the
budget of the page. A step that costs more than what is left is skipped, as if its rule did not
exist: text that only this rule hides is read.

Spec: https://www.w3.org/TR/css-syntax-3/, https://www.w3.org/TR/css-cascade-4/
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from urllib.parse import unquote

import tinycss2  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.ast import Declaration  # type: ignore[import-untyped]

from searchloop.search_backend.readers._html.visibility import SCREEN_WIDTH, Style, Tokens

# A step takes about a microsecond at most.
MOST_STEPS = 500_000
# Characters: of all sheets of a page, of the selectors and the block of one rule; words of a value.
LONGEST_SHEET, LONGEST_SELECTORS, LONGEST_BLOCK, LONGEST_VALUE = 400_000, 4_000, 8_000, 40
_QUOTED = r"\"(?>(?:[^\"\\\n]|\\.)*)\"?|'(?>(?:[^'\\\n]|\\.)*)'?"
_ADDRESS = r"[rR][lL]\(\s*+[^\s\"')][^)]*+\)?"
# Each way begins with a letter that is named: the search then skips what begins none.
_OPAQUE = re.compile(rf"/\*.*?(?:\*/|\Z)|{_QUOTED}|u{_ADDRESS}|U{_ADDRESS}|\\[{{}};]", re.DOTALL)
_IMPORT = re.compile("@import", re.IGNORECASE)
_BLANK = str.maketrans("{};\\", "    ")
_INSIDE = r"\((?>(?:[^()]|\((?>(?:[^()]|\([^()]*+\))*)\))*)\)|\[[^\[\]]*+\]"
_BRACKETS = re.compile(_INSIDE)
_SELECTOR = re.compile(rf"(?>(?:[^,()\[\]\"'\\]|\\.|{_QUOTED}|{_INSIDE})+)", re.DOTALL)
_NAME = re.compile(r"[.#](?>(?:[\w-]|[^\x00-\x7f]|\\.)+)")
_NUMBERED = re.compile(r"\\[0-9a-fA-F]")  # a character by its number
_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d{1,5}(?:\.\d{1,4})?)(px|r?em)\s*\)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]++)\s*(?:,([^()]*+))?\)")
_CUSTOM = re.compile(r"(?<![\w-])(--[\w-]++)\s*:([^;{}]{0,200}+)")
# What looks at all elements around one, or at all before it.
_FAR = re.compile(r"[^\s>+~,(]\s+(?=[^\s>+~,)])|~(?!=)")
# States that a visitor causes, and parts that are no element.
_ELSEWHERE = re.compile(
    r"::|:(?:before|after|first-l|hover|focus|active|visited|target|has|-)", re.IGNORECASE
)
# What looks at all siblings of an element.
_AMONG = re.compile(r"~(?!=)|:(?:nth|last|only|first-of)", re.IGNORECASE)
_ID, _TAG = re.compile(r"#[\w\\-]"), re.compile(r"(?:^|[\s>+~(])[a-z]", re.IGNORECASE)
_CLASS = re.compile(r"\.[\w\\-]|\[|(?<!:):(?!not|is|where|:)[a-z]", re.IGNORECASE)
_MAY_HIDE = re.compile(
    r"none|hidden|collapse|opacity|clip|transform|scale|translate|indent|font|color|-\d{3}|:\s*[.0]"
    r"|[\\(]",
    re.IGNORECASE,
)
# Other ways to write a property, for text that runs from left to right.
_NAMED = (
    "inset-inline-start:left inline-size:width block-size:height max-inline-size:max-width "
    "max-block-size:max-height -webkit-text-fill-color:fill background-clip:painted "
    "-webkit-background-clip:painted"
)
_ALIASES = dict(pair.split(":") for pair in _NAMED.split())
_SIDES = ("top", "right", "bottom", "left")
# What changes what words mean: struck, raised, in lines as typed, counted by letters.
_SHAPING = (
    *("text-decoration", "text-decoration-line", "vertical-align", "white-space", "list-style"),
    *("list-style-type", "font-family"),
)
_is_shape = re.compile(
    r"-(?:through|align: ?(?:su|[.\d]*[1-9])|space: ?(?:pre|b)|alpha|latin|roman)|monospace"
).search
# The custom properties of a page with their values.
Variables = tuple[tuple[str, str], ...]
# How a rule ranks among others: ids, classes and tags of its selector, its place in the sheets.
Rank = tuple[tuple[int, int, int], int]
# What a block declares, and what it declares with `!important`.
Declared = tuple[Style, Style]


def sheets(tree: LexborHTMLParser) -> tuple[list[str], bool]:
    """Return the sheets inside a page that apply on a screen, and whether it links to no others."""
    found: list[str] = []
    left = LONGEST_SHEET
    nodes = tree.css("link[rel~=stylesheet i],style,noscript")
    linked = [node for node in nodes if node.tag == "link"]
    inside = [node for node in linked if (node.attributes.get("href") or "").startswith("data:")]
    unread = {one.mem_id for node in nodes if node.tag == "noscript" for one in node.css("style")}
    for node in [*(node for node in nodes if node.tag == "style"), *inside]:
        attributes = node.attributes
        kind = (attributes.get("type") or "text/css").strip().lower()
        applies = kind == "text/css" and on_screen((attributes.get("media") or "").lower())
        if applies and node.mem_id not in unread:
            data = unquote((attributes.get("href") or "").partition(",")[2])
            found.append((data if node.tag == "link" else node.text() or "")[:left])
            left -= len(found[-1])
    is_whole = len(linked) == len(inside) and left > 0
    return found, is_whole and not any(map(_IMPORT.search, found))


def rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the block of each rule that applies on a wide screen.

    Rules inside rules are left out. tinycss2 would take longer to cut up a sheet than all the rest
    of a page takes.
    """
    sheet = sheet.replace("<!--", "").replace("-->", "")
    # The selectors of the open blocks: empty for a condition, None for a block that is skipped.
    around: list[str | None] = []
    stray = False
    for piece in _OPAQUE.sub(_without_marks, sheet).split("}"):
        *heads, block = piece.split("{")
        for head in heads:
            outer = around[-1] if around else ""
            if ";" in head:
                before, _, head = head.rpartition(";")
                if outer and before:
                    yield outer, before
            around.append(_opened(head) if outer == "" and not stray else None)
        stray = not around
        if around and (outer := around.pop()) and block:
            yield outer, block


def _without_marks(found: re.Match[str]) -> str:
    """Blank the signs in a comment, string, address or escape that would end a rule."""
    text = found[0]
    return "/**/" if text[:2] == "/*" else text.translate(_BLANK)


def _opened(head: str) -> str | None:
    """Return the selectors before a block, nothing for a condition that holds, else None."""
    head = head.replace("/**/", "").strip()
    if head[:1] != "@":
        return head if len(head) <= LONGEST_SELECTORS else None
    name, _, query = head.lower().replace("(", " (").partition(" ")
    return "" if name == "@layer" or (name == "@media" and on_screen(query)) else None


@lru_cache(maxsize=256)
def on_screen(media: str) -> bool:
    """Tell whether a list of media queries in lower case holds on a wide screen."""
    return len(media) < 300 and (not media.strip() or any(map(_asks, media.split(","))))


def _asks(query: str) -> bool:
    words = set(_WIDTH.sub(" ", query).split()) - {"only", "and", "screen", "all"}
    holds = words <= {"not"}
    for bound, size, unit in _WIDTH.findall(query):
        room = SCREEN_WIDTH - float(size) * (1 if unit == "px" else 16)
        holds = holds and (room >= 0 if bound == "min" else room <= 0)
    return holds != ("not" in words)


@lru_cache(maxsize=512)  # pages of one site, and of many, write the same few
def declared(block: str, variables: Variables = ()) -> Declared:
    """Return what a block says; puts the values of custom properties in."""
    if "var(" in block:
        known = dict((*variables, *_CUSTOM.findall(block)))
        block = _VARIABLE.sub(lambda one: str(known.get(one[1], one[2] or "")), block)
    normal: Style = {}
    important: Style = {}
    for one in tinycss2.parse_blocks_contents(block[:LONGEST_BLOCK], True, True):
        if not isinstance(one, Declaration):
            continue
        tokens = tuple(one for one in one.value if one.type not in ("whitespace", "comment"))
        if 0 < len(tokens) <= LONGEST_VALUE:
            name = _ALIASES.get(one.lower_name, one.lower_name.removeprefix("-webkit-"))
            (important if one.important else normal).update(_longhands(name, tokens))
    return normal, important


def _longhands(name: str, tokens: Tokens) -> Iterable[tuple[str, Tokens]]:
    """The properties that a shorthand sets, as far as they matter."""
    match name:
        case "margin" | "padding" | "inset":
            sides = list(tokens[:4])
            sides += sides[len(sides) - 2 :] if len(sides) > 1 else sides * 3
            names = _SIDES if name == "inset" else [f"{name}-{side}" for side in _SIDES]
            return [(side, (token,)) for side, token in zip(names, sides, strict=False)]
        case "background":
            return [("background-color", tokens), ("background-image", tokens)]
        case "font":
            kinds = ("dimension", "percentage")
            sizes = [t for t in tokens if t.type in kinds or (t.type == "number" and not t.value)]
            return [("font-size", (sizes[0],))] if sizes else []
        case "overflow-x" | "overflow-y":
            return [("overflow", tokens)]
    return [(name, tokens)]


class Cascade:
    """The styles of one page. Elements go by their index in the order of the document."""

    def __init__(
        self, tree: LexborHTMLParser, names: frozenset[str] | None = None, steps: int = MOST_STEPS
    ) -> None:
        """`names` are those of the page, where they are known."""
        self.left = steps
        self._tree, self._names = tree, names or frozenset(names_of(tree))
        self._sheets, self.whole = sheets(tree)
        self._ruled: set[int] = set()

    def pay(self, steps: int) -> bool:
        """Charge the budget; return False, and charge nothing, if too little is left."""
        if steps > self.left:
            return False
        self.left -= steps
        return True

    @cached_property
    def nodes(self) -> list[LexborNode]:
        """The elements of the page in their order."""
        return self._tree.css("*")

    @cached_property
    def place(self) -> Mapping[int, int]:
        """The index of each element by its `mem_id`."""
        return {node.mem_id: place for place, node in enumerate(self.nodes)}

    def parent(self, place: int) -> int:
        """The index of the element around one; -1 for none."""
        parent = self.nodes[place].parent
        return self.place.get(parent.mem_id, -1) if parent is not None else -1

    @cached_property
    def styles(self) -> dict[int, Style]:
        """The style of each element that has one: by the browser, by rules in the order of their
        weight, inline, and the same of what is important."""
        layers = defaultdict[int, list[tuple[Rank, Declared]]](list)
        custom = self._custom()
        # What may hide comes first, by simple selectors, and counts however dear the rest is.
        for selector, blocks in sorted(self._rules().items(), key=_urgency):
            places, weight = self._matched(selector), specificity(selector)
            for order, block in blocks if places else ():
                if self.pay(1 + len(block) // 8 + len(places)):
                    said = declared(block, custom if "var(" in block else ())
                    for place in places if any(said) else ():
                        layers[place].append(((weight, order), said))
        self._ruled = set(layers)
        found: dict[int, Style] = {}
        for node in self._tree.css(_STYLED):
            layers.setdefault(self.place[node.mem_id], [])
        known: dict[tuple[object, ...], Style] = {}
        for place, own in layers.items():
            text, style = self._own(place)
            key = (text, style, *sorted(rank for rank, _ in own))
            if key not in known:
                own.sort(key=lambda one: one[0])
                known[key] = _merged(text, style, [said for _, said in own])
            found[place] = known[key]
        return found

    def own(self, place: int) -> Style:
        """The style that an element has by itself."""
        return _merged(*self._own(place), ())

    def _own(self, place: int) -> tuple[str, str]:
        """What attributes of an element say, as declarations, and its inline style."""
        node = self.nodes[place]
        attributes = node.attributes
        is_closed = node.tag == "dialog" and "open" not in attributes
        text = f"background-color:{attributes['bgcolor']};" if attributes.get("bgcolor") else ""
        if node.tag == "font" and attributes.get("color"):
            text += f"color:{attributes['color']};"
        # Last, so that no attribute before it brings in another one.
        text += "display:none" * (is_closed or "hidden" in attributes or "popover" in attributes)
        return text, attributes.get("style") or ""

    def write_shapes(self) -> None:
        """Write what rules say that changes what words mean into the styles of the elements."""
        for place in self._ruled:
            style = self.styles[place]
            said = [
                f"{name}:{tinycss2.serialize(style[name])}" for name in _SHAPING if name in style
            ]
            if shapes := [*filter(_is_shape, said)]:
                attributes = self.nodes[place].attrs
                attributes["style"] = ";".join([attributes.get("style") or "", *shapes])

    def _custom(self) -> Variables:
        sheet = "\n".join(self._sheets)
        return tuple(reversed(_CUSTOM.findall(sheet))) if "var(" in sheet else ()

    def _rules(self) -> dict[str, list[tuple[int, str]]]:
        """The selectors that match elements in any state by names that the page has, each with
        the blocks of its rules and their places."""
        found = defaultdict[str, list[tuple[int, str]]](list)
        every = (rule for one in self._sheets for rule in rules(one))
        for order, (selectors, block) in enumerate(every):
            for selector in _fitting(selectors, self._names):
                found[selector].append((order, block))
        return found

    def _matched(self, selector: str) -> list[int]:
        """The elements that a selector matches; none if that costs too much."""
        size, far = len(self.nodes), _FAR.findall(selector)
        price = 1 + size * (2 + len(selector)) // 256 + size * ("~" not in far) * len(far) // 2
        price += len(_AMONG.findall(selector)) * size * size // 64
        if len(far) > 1 or not self.pay(price):
            return []
        try:
            found = self._tree.css(selector)
        except SelectolaxError:
            return []
        return [self.place[one.mem_id] for one in found if one.mem_id in self.place]


# All elements whose attributes may say how they look.
_STYLED = "[style],[hidden],dialog:not([open]),[popover],font[color],[bgcolor]"


def _urgency(rules: tuple[str, list[tuple[int, str]]]) -> tuple[bool, int]:
    return not any(_MAY_HIDE.search(block) for _, block in rules[1]), len(rules[0])


def _merged(text: str, style: str, layers: Sequence[Declared]) -> Style:
    layers = [declared(text), *layers, declared(style)]
    merged: Style = {}
    for important in (0, 1):
        for layer in layers:
            merged |= layer[important]
    return merged


def names_of(tree: LexborHTMLParser) -> Iterator[str]:
    """Yield the classes and ids of a page, with their marks."""
    for node in tree.css("[class],[id]"):
        yield from ("." + name for name in (node.attrs.get("class") or "").split())
        yield f"#{node.id}"


def _fitting(selectors: str, names: frozenset[str]) -> Iterator[str]:
    """Yield the selectors of a list that match elements in any state by names that there are."""
    for one in _SELECTOR.findall(selectors):
        wanted = [name.replace("\\", "") for name in _NAME.findall(_BRACKETS.sub("", one))]
        is_named = names.issuperset(wanted) or _NUMBERED.search(one)
        if is_named and not _ELSEWHERE.search(one):
            yield one.strip()


def specificity(selector: str) -> tuple[int, int, int]:
    """The weight of a selector: ids, classes, tags."""
    found = (_ID.findall(selector), _CLASS.findall(selector), _TAG.findall(selector))
    return len(found[0]), len(found[1]), len(found[2])
