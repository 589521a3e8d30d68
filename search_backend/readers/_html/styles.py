"""Style sheets of a page: the rules, the elements that each rule matches, and the cascade.

tinycss2 parses declarations and lexbor matches selectors. lexbor backtracks without bound, so a
selector that looks further than once around an element does not count. Each step is charged to the
budget of the page. A step that costs more than what is left is skipped, as if its rule did not
exist: text that only this rule hides is read.

Spec: https://www.w3.org/TR/css-syntax-3/, https://www.w3.org/TR/css-cascade-4/
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import itemgetter
from urllib.parse import unquote

import tinycss2  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.ast import Declaration, Node  # type: ignore[import-untyped]

# A step takes about a microsecond at most.
MOST_STEPS = 500_000
# Characters: of all sheets of a page, of the selectors and the block of one rule; words of a value.
LONGEST_SHEET, LONGEST_SELECTORS, LONGEST_BLOCK, LONGEST_VALUE = 400_000, 4_000, 8_000, 40
SCREEN_WIDTH = 1280.0
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?"
_ADDRESS = r"[rR][lL]\(\s*+[^\s\"')][^)]*+\)?"
# Each way begins with a letter that is named: the search then skips what begins none.
_OPAQUE = re.compile(rf"/\*.*?(?:\*/|\Z)|{_QUOTED}|u{_ADDRESS}|U{_ADDRESS}|\\[{{}};]", re.DOTALL)
_IMPORT = re.compile("@import", re.IGNORECASE)
_BLANK = str.maketrans("{};\\", "    ")
_INSIDE = r"\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)|\[[^\[\]]*+\]"
_brackets = re.compile(_INSIDE)
_SELECTOR = re.compile(rf"(?:[^,()\[\]\"'\\]|\\.|{_QUOTED}|{_INSIDE})++", re.DOTALL)
_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d{1,5}(?:\.\d{1,4})?)(px|r?em)\s*\)")
_CUSTOM = re.compile(r"(?<![\w-])(--[\w-]++)\s*:([^;{}]{0,200}+)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]++)\s*(?:,([^()]*+))?\)")
# What looks at all elements around one, or at all before it.
_FAR = re.compile(r"[^\s>+~,(]\s+(?=[^\s>+~,)])|~(?!=)")
# States that a visitor causes, and parts that are no element.
_ELSEWHERE = re.compile(
    r"::|:(?:before|after|first-l|hover|focus|active|visited|target|has|-)", re.IGNORECASE
)
_NAME = re.compile(r"[.#](?:[\w-]|[^\x00-\x7f])++")
_PSEUDO = re.compile(r":([a-z-]+)", re.IGNORECASE)
# Pseudo-classes that look at one element alone; others may look at all of its siblings.
_QUICK = frozenset({"not", "is", "where", "root", "empty", "first-child", "link", "checked"})
_ID, _TAG = re.compile(r"#[\w\\-]"), re.compile(r"(?:^|[\s>+~(])[a-z]", re.IGNORECASE)
_CLASS = re.compile(r"\.[\w\\-]|\[|(?<!:):(?!not|is|where|:)[a-z]", re.IGNORECASE)
# Other ways to write a property, for text that runs from left to right.
_NAMED = (
    "inset-inline-start:left inline-size:width block-size:height max-inline-size:max-width "
    "max-block-size:max-height -webkit-text-fill-color:fill background-clip:painted "
    "-webkit-background-clip:painted"
)
_ALIASES = dict(pair.split(":") for pair in _NAMED.split())
_SIDES = ("top", "right", "bottom", "left")
# Declarations that change what words mean: struck, raised, in lines as typed, counted by letters.
SHAPES = re.compile(r"-(?:through|align: ?(?:su|[.\d]*[1-9])|space: ?(?:pre|b)|alpha|latin|roman)")
_SHAPING = re.compile(
    r"[;{/]\s*+(?:text-decoration|vertical-align|white-space|list-style|font-family)"
)
_is_shape = re.compile(f"{SHAPES.pattern}|monospace").search
# The selectors and the declarations of a rule, as written.
Rule = tuple[str, str]
# Property to the tokens of its value, without white space.
Tokens = tuple[Node, ...]
Style = dict[str, Tokens]
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


def rules(sheet: str) -> Iterator[Rule]:
    """Yield the rules that apply on a wide screen.

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
                    yield outer, before[:LONGEST_BLOCK]
            around.append(_opened(head) if outer == "" and not stray else None)
        stray = not around
        if around and (outer := around.pop()) and block:
            yield outer, block[:LONGEST_BLOCK]


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
    if any("(" in word for word in words):
        return False
    holds = words <= {"not"}
    for bound, size, unit in _WIDTH.findall(query):
        room = SCREEN_WIDTH - float(size) * (1 if unit == "px" else 16)
        holds = holds and (room >= 0 if bound == "min" else room <= 0)
    return holds != ("not" in words)


def split_selectors(text: str) -> list[str]:
    """Cut a list of selectors at the commas outside brackets."""
    if not any(sign in text for sign in "([\\\"'"):
        return [part.strip() for part in text.split(",")]
    return [part.strip() for part in _SELECTOR.findall(text)]


def declared(block: str, variables: Mapping[str, str]) -> Declared:
    """Parse a block or an inline style; put the values of custom properties in, also its own."""
    if "var(" in block:
        known = {**variables, **dict(_CUSTOM.findall(block))}
        block = _VARIABLE.sub(lambda one: str(known.get(one[1], one[2] or "")), block)
    normal: Style = {}
    important: Style = {}
    for one in _parsed(block) if len(block) < 500 else _parse(block[:LONGEST_BLOCK]):
        tokens = tuple(one for one in one.value if one.type not in ("whitespace", "comment"))
        if 0 < len(tokens) <= LONGEST_VALUE:
            name = _ALIASES.get(one.lower_name, one.lower_name.removeprefix("-webkit-"))
            (important if one.important else normal).update(_longhands(name, tokens))
    return normal, important


def _parse(block: str) -> tuple[Declaration, ...]:
    found = tinycss2.parse_blocks_contents(block, skip_comments=True, skip_whitespace=True)
    return tuple(one for one in found if isinstance(one, Declaration))


# Pages of one site, and of many, write the same few.
_parsed = lru_cache(maxsize=2048)(_parse)


def _longhands(name: str, tokens: Tokens) -> dict[str, Tokens]:
    """The properties that a shorthand sets, as far as they matter."""
    match name:
        case "margin" | "padding" | "inset":
            sides = list(tokens[:4])
            sides += sides[len(sides) - 2 :] if len(sides) > 1 else sides * 3
            names = _SIDES if name == "inset" else [f"{name}-{side}" for side in _SIDES]
            return {side: (token,) for side, token in zip(names, sides, strict=False)}
        case "background":
            return {"background-color": tokens, "background-image": tokens}
        case "font":
            kinds = ("dimension", "percentage")
            sizes = [t for t in tokens if t.type in kinds or (t.type == "number" and not t.value)]
            return {"font-size": (sizes[0],)} if sizes else {}
        case "overflow-x" | "overflow-y":
            return {"overflow": tokens}
    return {name: tokens}


class Cascade:
    """The declarations of one page. Elements go by their index in the order of the document."""

    def __init__(self, tree: LexborHTMLParser, steps: int = MOST_STEPS):
        self.left = steps
        self._tree = tree
        texts, self.whole = sheets(tree)
        self._rules = [rule for text in texts for rule in rules(text)]
        # Their blocks as one text, which is searched at once.
        self.text = "".join([f"{{{block}" for _, block in self._rules]).lower()
        self._starts = list(accumulate([len(block) + 1 for _, block in self._rules]))
        # A cache of a method would keep the page until the garbage is collected.
        self._parents: dict[int, int] = {}
        self._matches: dict[str, frozenset[int]] = {}
        self._styles: dict[str, Declared] = {}
        self._selectors: dict[str, list[str]] = {}

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

    @cached_property
    def names(self) -> frozenset[str]:
        """The classes and ids of the page, with their marks."""
        classes = {node.attrs.get("class") for node in self._tree.css("[class]")}
        names = {"." + name for name in " ".join(filter(None, classes)).split()}
        return frozenset(names | {f"#{node.id}" for node in self._tree.css("[id]")})

    @cached_property
    def _variables(self) -> dict[str, str]:
        """The custom properties of the page, each as it is first set."""
        return dict(reversed(_CUSTOM.findall(self.text))) if self.pay(len(self.text) // 8) else {}

    def rules_with(self, *said: re.Pattern[str]) -> list[Rule]:
        """The rules in whose blocks any of these finds something, in their order."""
        places = (found.start() for one in said for found in one.finditer(self.text))
        return [self._rules[at] for at in sorted({bisect_right(self._starts, at) for at in places})]

    def style(self, block: str) -> Declared:
        """Parse a block or an inline style; each is parsed once."""
        if (found := self._styles.get(block)) is None:
            found = self._styles[block] = declared(
                block, self._variables if "var(" in block else {}
            )
        return found

    def write_shapes(self) -> None:
        """Write what `SHAPES` finds in the sheets into the styles of the elements."""
        rules = {selector for rule in self.rules_with(SHAPES) for selector in self.selectors(rule)}
        places = set().union(*map(self.matched, rules))
        for place, style in self.computed(places, [_SHAPING]).items() if places else ():
            said = [f"{name}:{tinycss2.serialize(value)}" for name, value in style.items()]
            attributes = self.nodes[place].attrs
            told = attributes.get("style") or ""
            attributes["style"] = ";".join([told, *filter(_is_shape, said)])

    def plain(self, block: str) -> Style:
        """The style that a block alone gives."""
        normal, important = self.style(block)
        return {**normal, **important}

    def selectors(self, rule: Rule) -> list[str]:
        """The selectors of a rule that match elements in any state, by names that the page has."""
        if (known := self._selectors.get(rule[0])) is not None:
            return known
        found = self._selectors[rule[0]] = []
        for selector in split_selectors(rule[0]):
            if ":" in selector and _ELSEWHERE.search(selector):
                continue
            if "\\" in selector or self.names.issuperset(names_in(selector)):
                found.append(selector)
        return found

    def computed(
        self, places: Iterable[int], speaks: Iterable[re.Pattern[str]]
    ) -> dict[int, Style]:
        """The style of these elements, by the rules in which any of `speaks` finds something."""
        layers: dict[int, list[tuple[tuple[object, int], Declared]]] = {at: [] for at in places}
        found = self.rules_with(*speaks)
        ranked = [
            ((specificity(selector), order), selector)
            for order, rule in enumerate(found)
            for selector in self.selectors(rule)
        ]
        # Simple selectors come first, so that they count however dear the rest is.
        for rank, selector in sorted(ranked, key=lambda one: len(one[1])):
            fitting = self.matched(selector) & layers.keys()
            for place in fitting if self.pay(len(fitting)) else ():
                layers[place].append((rank, self.style(found[rank[1]][1])))
        return {
            place: self._merged(place, [style for _, style in sorted(own, key=itemgetter(0))])
            for place, own in layers.items()
        }

    def _merged(self, place: int, layers: list[Declared]) -> Style:
        """Merge the browser's own style, rules by weight and the inline style; then the same of
        what is important."""
        node = self.nodes[place]
        attributes = node.attributes
        is_closed = node.tag == "dialog" and "open" not in attributes
        text = f"background-color:{attributes['bgcolor']};" if attributes.get("bgcolor") else ""
        if node.tag == "font" and attributes.get("color"):
            text += f"color:{attributes['color']};"
        # Last, so that no attribute before it brings in another one.
        text += "display:none" * (is_closed or "hidden" in attributes or "popover" in attributes)
        merged = dict(declared(text, {})[0]) if text else {}
        if attributes.get("style"):
            layers = [*layers, self.style(attributes["style"] or "")]
        for important in (0, 1):
            for layer in layers:
                merged |= layer[important]
        return merged

    def matched(self, selector: str) -> frozenset[int]:
        """The elements that a selector matches; none if that costs too much."""
        if (found := self._matches.get(selector)) is None:
            found = self._matches[selector] = frozenset(self._search(selector))
        return found

    def parent(self, place: int) -> int:
        """The index of the element around one; -1 for none."""
        if (found := self._parents.get(place)) is None:
            parent = self.nodes[place].parent
            found = self.place.get(parent.mem_id, -1) if parent is not None else -1
            self._parents[place] = found
        return found

    def _search(self, selector: str) -> list[int]:
        size, far = len(self.nodes), _FAR.findall(selector)
        price = 1 + size * (2 + len(selector)) // 64 + size * ("~" not in far) * len(far)
        slow = [one for one in _PSEUDO.findall(selector) if one.lower() not in _QUICK]
        price += (len(slow) + far.count("~")) * size * size // 64
        if len(far) > 1 or not self.pay(price):
            return []
        try:
            found = self._tree.css(selector)
        except SelectolaxError:
            return []
        place = self.place
        return [place[one.mem_id] for one in found if one.mem_id in place] * self.pay(len(found))


def names_in(selector: str) -> list[str]:
    """The classes and ids that a page must have for a selector to match, with their marks."""
    return _NAME.findall(_brackets.sub("", selector))


def specificity(selector: str) -> tuple[int, int, int]:
    """The weight of a selector: ids, classes, tags."""
    found = (_ID.findall(selector), _CLASS.findall(selector), _TAG.findall(selector))
    return len(found[0]), len(found[1]), len(found[2])
