"""Style sheets of a page: their rules, and what these declare for each element.

tinycss2 parses; css_inline matches elements and weighs rules. Each selector is charged to the
budget of the page. One that costs more than what is left is skipped, as if its rule did not exist:
text that only this rule hides is read.

Spec: https://www.w3.org/TR/css-syntax-3/, https://www.w3.org/TR/css-cascade-4/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote

import css_inline
import tinycss2  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser, LexborNode
from tinycss2.ast import Node, QualifiedRule  # type: ignore[import-untyped]

# A step takes about a microsecond at most.
MOST_STEPS = 500_000
# Characters of all sheets of a page; selectors of a rule; words of a value; brackets in brackets;
# custom properties that name each other.
LONGEST_SHEET, MOST_SELECTORS, LONGEST_VALUE, DEEPEST, MOST_ROUNDS = 200_000, 400, 40, 6, 4
SCREEN_WIDTH = 1280.0
_SIMPLE = re.compile(r"(?<![^{};/])([^][(){}@\"'\\/;]+)\{[^{}@\"'\\/]*\}")
_NAMES = re.compile(r"[.#][\w-]+")
_DIGITS = re.compile(r"(\d{99})\d+")
_WIDTH = re.compile(r"\(\s*(min|max)-width\s*:\s*(\d{1,5}(?:\.\d{1,4})?)(px|r?em)\s*\)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]++)\s*(?:,([^()]*+))?\)")
_of_the_page = re.compile(r":root|:host|\bhtml\b|\bbody\b|\*").search
# States that a visitor causes, and parts that are no element.
_ELSEWHERE = re.compile(
    r"::|:(?:before|after|first-l|hover|focus|active|visited|target|has|-)", re.IGNORECASE
)
# Other ways to write a property, for text that runs from left to right.
_ALIASES = {
    "inset-inline-start": "left",
    "inline-size": "width",
    "block-size": "height",
    "max-inline-size": "max-width",
    "max-block-size": "max-height",
    "-webkit-text-fill-color": "fill",
    "background-clip": "painted",
    "-webkit-background-clip": "painted",
}
_SIDES = ("top", "right", "bottom", "left")
_MARK = "data-place"
# Property to the tokens of its value, without white space.
Tokens = tuple[Node, ...]
Style = dict[str, Tokens]


class Rule(NamedTuple):
    """The selectors that may match and what each costs; what is declared, and declared with
    `!important`; whether all other rules are stronger."""

    selectors: dict[str, int]
    normal: Style
    important: Style
    weak: bool


class Sheets:
    """The rules of the sheets inside a page."""

    def __init__(self, tree: LexborHTMLParser, steps: int = MOST_STEPS) -> None:
        self.left = steps
        self._tree = tree
        self._styles: dict[str, tuple[Style, Style]] = {}
        texts, self.whole = _sheets(tree)
        # Most of a sheet is about other pages, and parsing it would take the longest.
        texts = [_SIMPLE.sub(self._if_used, text) for text in texts]
        found = [rule for text in texts for rule in _rules(text)]
        self._variables: dict[str, str] = {}
        for rule in found if any("var(" in text for text in texts) else ():
            if _of_the_page(_written(rule.prelude)[:200]):
                self._variables |= _custom(_block(rule.content))
        self.rules = [
            Rule(selectors, *_declared(_block(rule.content), self._variables), _is_weak(rule))
            for rule in found
            if (selectors := self._selectors(rule.prelude))
        ]

    def _if_used(self, rule: re.Match[str]) -> str:
        """Return a rule of a few names, nothing if the page has none of them."""
        heads = map(_NAMES.findall, rule[1].split(","))
        return rule[0] if any(all(map(self._counts.__getitem__, head)) for head in heads) else ""

    def pay(self, steps: int) -> bool:
        """Charge the budget; return False, and charge nothing, if too little is left."""
        if steps > self.left:
            return False
        self.left -= steps
        return True

    def style(self, *texts: str) -> Style:
        """Merge styles, the weakest first, and then the same of what is important."""
        parsed = [self._parsed(text) for text in texts]
        layers = [part for parts in zip(*parsed, strict=True) for part in parts]
        return {name: value for layer in layers for name, value in layer.items()}

    def _parsed(self, text: str) -> tuple[Style, Style]:
        if (found := self._styles.get(text)) is None:  # pages repeat a few
            block = _block(_DIGITS.sub(r"\1", text))
            found = self._styles[text] = _declared(block, self._variables)
        return found

    def applied(self, nodes: Sequence[LexborNode], names: Set[str]) -> dict[int, str]:
        """Return what all rules together say for the elements, of the properties `names`. Takes
        the elements' own styles away."""
        found: dict[int, str] = {}
        kept: dict[int, str] = {}
        # Cheap rules come first, so that they count however dear the rest is.
        for at in sorted(range(len(self.rules)), key=lambda at: sum(self.rules[at][0].values())):
            prices, *styles, _ = self.rules[at]
            text = "".join(
                f"{name}:{_written(tokens)}{mark};"
                for style, mark in zip(styles, ("", "!important"), strict=True)
                for name, tokens in style.items()
                if name in names
            )
            times = 1 + len(text) // 64
            heads = [one for one, price in prices.items() if text and self.pay(price * times)]
            if heads:
                kept[at] = f"{','.join(heads)}{{{text}}}"
        for place, node in enumerate(nodes if kept else ()):
            node.attrs[_MARK] = str(place)
        for node in self._tree.css("[style]") if kept else ():
            del node.attrs["style"]
        # Rules with `:where()` are weaker than all others; css_inline would weigh what is in it.
        for weak in (True, False):
            sheet = "".join(kept[at] for at in sorted(kept) if self.rules[at].weak is weak)
            inliner = css_inline.CSSInliner(False, load_remote_stylesheets=False, extra_css=sheet)
            text = inliner.inline(self._tree.html or "") if sheet else ""
            for node in LexborHTMLParser(text).css(f"[style][{_MARK}]"):
                place = int(node.attributes[_MARK] or 0)
                found[place] = f"{found.get(place, '')};{node.attributes['style']}"
        for node in nodes if kept else ():
            del node.attrs[_MARK]
        return found

    @cached_property
    def _counts(self) -> Counter[str]:
        """How many elements of the page have each class and id, with its mark, and each tag."""
        names = [str(node.tag) for node in self._tree.css("*")]
        found = Counter([*names, *("#" + str(n.attributes["id"]) for n in self._tree.css("[id]"))])
        for node in self._tree.css("[class]"):
            found.update({f".{name}" for name in (node.attributes["class"] or "").split()})
        found["*"] = len(names)
        return found

    def _selectors(self, head: Sequence[Node]) -> dict[str, int]:
        """The selectors that match elements in any state, by names that the page has."""
        found: dict[str, int] = {}
        for part in _cut(head)[:MOST_SELECTORS]:
            while part and part[-1].type == "whitespace":
                part.pop()
            text = "".join(map(_modern, part)).strip()
            if ":::" in text:
                return {}
            names, last = [], 0
            for before, token in pairwise(["", *part]):
                if token.type == "hash" or (token.type == "ident" and before != ":"):
                    mark = {"hash": "#"}.get(token.type, "." if before == "." else "")
                    names.append(mark + (token.value if mark else token.lower_value))
                elif token.type == "whitespace" or token in (">", "+", "~"):
                    last = len(names)
            if text and not _ELSEWHERE.search(text) and all(self._counts[one] for one in names):
                size = self._counts["*"]
                most = min(self._counts[one] for one in (*names[last:], "*"))
                found[text] = 1 + size // 64 + most * (1 + ("~" in text) * size // 256)
        return found


def _is_weak(rule: QualifiedRule) -> bool:
    return any(one.type == "function" and one.lower_name == "where" for one in rule.prelude)


def _block(css: str | Sequence[Node]) -> list[Node]:
    """Parse what stands in a block."""
    return list(tinycss2.parse_blocks_contents(css, skip_comments=True, skip_whitespace=True))


def _cut(head: Sequence[Node]) -> list[list[Node]]:
    """Cut a list of selectors at its commas."""
    parts: list[list[Node]] = [[]]
    for token in head:
        if token == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    return parts


def _modern(token: Node) -> str:
    """Return a token of a selector as text; `:is()` in other words, as css_inline has no such."""
    if token.type == "function" and token.lower_name in ("is", "where"):
        return f"not(:not({_written(token.arguments)}))"
    simple = token.type in ("ident", "literal", "whitespace", "hash")
    return str(token.serialize()) if simple else _written([token])


def _written(tokens: Sequence[Node]) -> str:
    """Return the text of tokens; none of those that lie too deep in brackets."""
    inside = tokens
    for _ in range(DEEPEST):
        inside = [
            one
            for token in inside
            for one in getattr(token, "arguments", None) or getattr(token, "content", None) or ()
        ]
    return "" if inside else str(tinycss2.serialize(tokens))


def _sheets(tree: LexborHTMLParser) -> tuple[list[str], bool]:
    """Return the sheets inside a page that apply on a screen, and whether it links to no others."""
    found: list[str] = []
    left, whole = LONGEST_SHEET, True
    unread = {node.mem_id for node in tree.css("noscript style")}
    for node in tree.css("style,link[rel~=stylesheet i]"):
        kind, media, href = (node.attributes.get(name) or "" for name in ("type", "media", "href"))
        if node.tag == "link" and not href.startswith("data:"):
            whole = False
        elif kind.strip().lower() in ("", "text/css") and _on_screen(media.lower()):
            text = unquote(href.partition(",")[2]) if node.tag == "link" else node.text() or ""
            if node.mem_id not in unread:
                found.append(_DIGITS.sub(r"\1", text[:left]))
                left -= len(found[-1])
                whole = whole and left > 0 and "@import" not in text.lower()
    return found, whole


def _rules(sheet: str) -> Iterator[QualifiedRule]:
    """Yield the rules that apply on a wide screen; those inside other rules are left out."""
    pending = tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True)[::-1]
    while pending:
        rule = pending.pop()
        if rule.type == "qualified-rule":
            yield rule
        elif rule.type == "at-rule" and rule.content is not None:
            name, query = rule.lower_at_keyword, _written(rule.prelude).lower()
            if name == "layer" or (name == "media" and query and _on_screen(query)):
                pending += tinycss2.parse_rule_list(rule.content, True, True)[::-1]


def _on_screen(media: str) -> bool:
    """Tell whether a list of media queries in lower case holds on a wide screen."""
    return len(media) < 300 and (not media.strip() or any(map(_asks, media.split(","))))


def _asks(query: str) -> bool:
    rooms = [
        (SCREEN_WIDTH - float(size) * (1 if unit == "px" else 16)) * (1 if bound == "min" else -1)
        for bound, size, unit in _WIDTH.findall(query)
    ]
    words = set(_WIDTH.sub(" ", query).split()) - {"only", "and", "screen", "all"}
    holds = words <= {"not"} and all(room >= 0 for room in rooms)
    return holds != ("not" in words) and not any("(" in word for word in words)


def _declared(block: Iterable[Node], variables: Mapping[str, str]) -> tuple[Style, Style]:
    """Read parsed declarations; put the values of custom properties in, also their own."""
    styles: tuple[Style, Style] = ({}, {})
    known = {**variables, **_custom(block)}
    for one in block:
        value = one.value if one.type == "declaration" else ()
        if any(token.type == "function" for token in value) and "var(" in (text := _written(value)):
            for _ in range(MOST_ROUNDS):
                text = _VARIABLE.sub(lambda found: known.get(found[1], found[2] or ""), text)[:999]
            value = tinycss2.parse_component_value_list(text)
        tokens = tuple(token for token in value if token.type not in ("whitespace", "comment"))
        if 0 < len(tokens) <= LONGEST_VALUE:
            name = _ALIASES.get(one.lower_name, one.lower_name.removeprefix("-webkit-"))
            styles[one.important].update(_longhands(name, tokens))
    return styles


def _custom(block: Iterable[Node]) -> dict[str, str]:
    """Return the custom properties that parsed declarations set."""
    found = (one for one in block if one.type == "declaration" and one.name.startswith("--"))
    return {one.name: _written(one.value)[:200] for one in found}


def _longhands(name: str, tokens: Tokens) -> dict[str, Tokens]:
    """Return the properties that a shorthand sets, as far as they matter."""
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
