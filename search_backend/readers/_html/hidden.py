"""Remove from a parsed page what its visitors cannot see, so that no model reads it either.

What a visitor can open (accordions, tabs, answers) stays, and what waits for a script: a page that
fades in, or that arrives in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.styles import MOST_STEPS, Cascade, Style
from searchloop.search_backend.readers._html.visibility import (
    MAY_HIDE,
    NAMES,
    WHITE,
    Colour,
    alike,
    colour_of,
    ground,
    hiding,
    words,
)

_NO_TEXT = (
    "script,style,template,iframe,object,embed,svg,canvas,audio,video,map,select,datalist,"
    "input,textarea,progress,meter,noembed,noframes,annotation,annotation-xml,fencedframe,"
    "body title"
)
Axes = Mapping[int, frozenset[str]]
_NONE: frozenset[str] = frozenset()
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE, BETTER_PART = 0.3, 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
# Steps for the second look at what some rule may hide.
RESERVED = MOST_STEPS // 4
_INLINE_TAGS = "a abbr b bdi bdo big cite code em font i mark q s small span strong u"
INLINE = frozenset(_INLINE_TAGS.split())
_BOXED = frozenset({"display", "position", "float"})
# More than that is no parenthesis around a reading.
_LONGEST_RP = 2
_ROOTS = frozenset({"html", "body", "main"})
# Children may undo these axes for themselves, by these properties.
_INHERITED = {
    "visibility": ("visibility",),
    "font-size": ("font-size",),
    "text-indent": ("text-indent",),
    "colour": ("color", "fill", "background-color", "background-image"),
}
# Scripts and the hands of visitors hardly undo these.
_LASTING = frozenset({"font-size", "colour", "text-indent", "clip"})
# React streams a page in pieces, hidden until a script puts them in place.
# https://react.dev/reference/react-dom/server/renderToPipeableStream
_STREAMED = "body > div[hidden][id^='S:']"
_OPENERS = ("aria-controls", "popovertarget", "commandfor")
# All attributes that may hide or open something, searched at once: each search of a page takes the
# time of ten more selectors.
_SPEAKING = (
    "[style],[hidden],dialog:not([open]),[popover],[aria-hidden=true]:not(del,ins),font[color],[role=tab],"
    f"[{'],['.join(_OPENERS)}]"
)
# Names of what unfolds, and the axes that fold it.
_FOLDED = re.compile(r"accordion|collaps|faq|expander|tab-?(?:pane|panel|content)", re.IGNORECASE)
_FOLDING = frozenset({"display", "visibility", "size", "opacity"})
_FURNITURE = frozenset({"nav", "header", "footer"})
# What opens something is not long. Shorter text in it is a label; with more links it is a menu.
LONGEST_LABEL, LEAST_FOLDED, MOST_LINKED = 300, 40, 1 / 8
_EMPTY_CELL = LexborHTMLParser("<table><tr><td hidden></table>").css("td")[0]
_COLOURED = re.compile(r"[;{/]\s*+(?:-webkit-text-fill-)?color\s*:")


def remove_hidden(tree: LexborHTMLParser, cascade: Cascade | None = None) -> Cascade:
    """Remove elements without text or without any that is shown. Changes `tree`; returns what its
    sheets say, with what is left of its budget."""
    cascade = cascade or Cascade(tree)
    _drop_unread(tree)
    if tree.body is not None:
        _Hidden(tree, cascade).take_out()
    return cascade


class _Hidden:
    """The hidden elements of one page, by their index in it."""

    def __init__(self, tree: LexborHTMLParser, cascade: Cascade) -> None:
        self._tree = tree
        self._cascade = cascade
        # The styles of elements inside hidden ones.
        self._inside: dict[int, Style] = {}
        self._emptied: dict[int, frozenset[str]] = {}
        self._opened: set[str] = set()

    def take_out(self) -> None:
        """Remove what is hidden on any axis."""
        own, ruled = self._by_attributes(), self._by_sheets()
        nodes, place_of = self._cascade.nodes, self._cascade.place
        size = {place: _length(nodes[place]) for place in sorted({*own, *ruled})}
        suspects = {
            place: own.get(place, _NONE) | ruled.get(place, _NONE) for place in size if size[place]
        }
        hidden = self._confirmed(suspects) if suspects else {}
        inherited: list[int] = []
        for place in sorted(self._for_good(hidden, own, size)):
            if hidden[place] <= _INHERITED.keys():
                inherited.append(place)
            else:
                _drop([nodes[place]])
        inside: set[int] = set()
        for place in inherited:
            if place not in inside:
                inside.update(place_of[one.mem_id] for one in nodes[place].css("*"))
        speaks = {axis for place in inherited for axis in hidden[place]}
        self._inside = self._cascade.computed(inside, map(_speaks_of, speaks)) if inside else {}
        for place in inherited:
            self._empty(nodes[place], hidden[place])
            if not _text(nodes[place]).strip():
                _drop([nodes[place]])

    def _by_attributes(self) -> dict[int, frozenset[str]]:
        """The elements that their own attributes may hide, and on which axes."""
        found: dict[int, frozenset[str]] = {}
        axes_of = cache(self._axes)
        for node in self._tree.css(_SPEAKING):
            attributes, tag = node.attributes, node.tag
            if attributes.get("role") == "tab":
                named = (attributes.get("id"), (attributes.get("href") or "").partition("#")[2])
                self._opened.update(filter(None, named))
            for opener in _OPENERS:
                self._opened.update((attributes.get(opener) or "").split())
            axes = axes_of(attributes.get("style") or "")
            if tag == "font" and "color" in attributes:
                axes |= {"colour"}
            is_shut = tag == "dialog" and "open" not in attributes
            if is_shut or "hidden" in attributes or "popover" in attributes:
                axes |= {"display"}
            if axes or _is_untold(node):
                found[self._cascade.place[node.mem_id]] = axes
        return found

    def _axes(self, style: str) -> frozenset[str]:
        """The axes on which an inline style may hide."""
        text = ";" + style.lower()
        coloured = _COLOURED.search(text) is not None
        if not coloured and "/*" not in text and MAY_HIDE.search(text) is None:
            return _NONE
        axes = hiding(self._cascade.plain(style))
        return axes | {"colour"} if coloured and self._cascade.whole else axes

    def _by_sheets(self) -> dict[int, frozenset[str]]:
        """The elements that some rule may hide, whatever the others say."""
        cascade = self._cascade
        coloured = set(cascade.rules_with(_COLOURED))
        if not cascade.whole:  # a colour counts only with a background in the same rule
            coloured = {rule for rule in coloured if "background" in rule[1]}
        found: dict[int, frozenset[str]] = {}
        cascade.left -= RESERVED
        # Simple rules first, so that they count however dear the rest is.
        for rule in sorted({*cascade.rules_with(MAY_HIDE), *coloured}, key=lambda one: len(one[0])):
            if not cascade.selectors(rule) or not cascade.pay(1 + len(rule[1]) // 8):
                continue
            axes = hiding(cascade.plain(rule[1]))
            if cascade.whole and rule in coloured:
                axes |= {"colour"}
            matched = [*map(cascade.matched, cascade.selectors(rule) if axes else ())]
            for place in chain(*matched) if cascade.pay(sum(map(len, matched))) else ():
                found[place] = found.get(place, _NONE) | axes
        cascade.left += RESERVED
        return found

    def _confirmed(self, suspects: Mapping[int, frozenset[str]]) -> dict[int, frozenset[str]]:
        """The suspects that stay hidden after the whole cascade, and on which axes."""
        cascade = self._cascade
        speaks = map(_speaks_of, frozenset().union(*suspects.values()))
        styles = cascade.computed(suspects, speaks)
        coloured = [place for place in suspects if cascade.whole and colour_of(styles[place])]
        behind = self._grounds(coloured) if coloured else {}
        found: dict[int, frozenset[str]] = {}
        for place, style in styles.items():
            node = cascade.nodes[place]
            axes = hiding(style)
            text, under = colour_of(style), behind.get(place)
            if text and under and alike(text, under):
                axes |= {"colour"}
            if _is_untold(node):
                axes |= {"display"}
            if cascade.whole and node.tag in INLINE and not _BOXED & style.keys():
                axes -= {"size", "content-visibility"}  # mean nothing to text within a line
            # Transparent and moved by a little, it flies in when a visitor comes to it.
            is_moved = "transform" in style and words(style, "transform") != {"none"}
            if axes and node.tag not in _ROOTS and not (is_moved and axes == {"opacity"}):
                found[place] = axes
        return found

    def _grounds(self, places: Iterable[int]) -> dict[int, Colour | None]:
        """The colour behind each element and all around it; None where it is unknown."""
        parent = self._cascade.parent
        around: set[int] = set()
        for place in places:
            while place >= 0 and place not in around:
                around.add(place)
                place = parent(place)
        found: dict[int, Colour | None] = {-1: WHITE}
        styles = self._cascade.computed(around, [_speaks_of("colour")])
        for place in sorted(around):
            own = ground(styles[place])
            found[place] = own if own is None or own[3] > 0 else found[parent(place)]
        return found

    def _for_good(self, hidden: Axes, own: Axes, size: Mapping[int, int]) -> list[int]:
        """The hidden elements that no script or visitor is going to show.

        A page that fades in, or that arrives in pieces which a script puts in place, hides the
        better part of itself at first: one element with most of the text, or many that are merely
        transparent, or that a sheet takes away.
        """
        nodes = self._cascade.nodes
        total = _length(self._tree.body) if self._tree.body and hidden else 0
        kept: list[int] = []
        faded: list[int] = []
        ruled: list[int] = []
        for place, axes in hidden.items():
            if unfolds(nodes[place], axes, self._opened, size[place]):
                continue
            if place not in own and not axes & _LASTING:
                ruled.append(place)
            elif size[place] <= max(total * BETTER_PART, LONGEST_HIDDEN):
                (faded if axes == {"opacity"} else kept).append(place)
        for group in (faded, ruled):
            if sum(size[place] for place in group) <= total * MOST_HIDDEN_SHARE:
                kept += group
        return kept

    def _empty(self, node: LexborNode, axes: frozenset[str]) -> None:
        """Remove the text of an element, but for children that show themselves."""
        if axes <= self._emptied.get(node.mem_id, _NONE):
            return
        self._emptied[node.mem_id] = axes
        for child in list(node.iter(include_text=True)):
            if not child.is_element_node:
                child.remove()
            elif not _undoes(self._inside[self._cascade.place[child.mem_id]], axes):
                self._empty(child, axes)


@cache
def _speaks_of(axis: str) -> re.Pattern[str]:
    """A pattern for declarations of an axis. One for each: compiling takes milliseconds."""
    return re.compile(rf"[;{{/\\](?:(?<=\\)|\s*+(?:{NAMES.get(axis, axis)})\s*:)")


def _undoes(style: Style, axes: Iterable[str]) -> bool:
    """Tell whether an element shows itself inside one that is hidden on these axes."""
    for axis in axes:
        said = {name for name in _INHERITED[axis] if name in style}
        if all(words(style, name) & {"inherit", "unset"} for name in said):
            return False
        if axis in hiding(style):
            return False
        size = style["font-size"][0] if axis == "font-size" else None
        if size and (size.type == "percentage" or getattr(size, "lower_unit", "") == "em"):
            return False  # a share of nothing
    return True


def unfolds(node: LexborNode, axes: frozenset[str], opened: set[str], length: int) -> bool:
    """Tell whether a visitor can open it: a control names it, its wrapper or what it wraps, or
    stands right before it; or its name says that it unfolds, and it stands below a label."""
    attributes = node.attributes
    known = filter(None, (attributes.get("id"), attributes.get("aria-labelledby")))
    if attributes.get("role") == "tabpanel" or not opened.isdisjoint(known):
        return True
    if (attributes.get("hidden") or "").lower() == "until-found":
        return True
    if axes - _FOLDING or node.tag == "dialog" or length < LEAST_FOLDED:
        return False
    parent, inside = node.parent, next(node.iter(), None)
    around = parent.attributes if parent is not None else {}
    named = (around.get("id"), inside.attributes.get("id") if inside is not None else None)
    names = f"{attributes.get('class')} {around.get('class')}"
    if opened.isdisjoint(filter(None, named)) and not _has_label(node, names):
        return False
    return len(node.css("a")) <= MOST_LINKED * len(_text(node).split())


def _has_label(node: LexborNode, names: str) -> bool:
    """Tell whether a short text right before it controls something, as its `names` may say."""
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    if before is None or before.tag in _FURNITURE:
        return False
    if not 0 < len(_text(before).strip()) <= LONGEST_LABEL:
        return False
    says_so = "aria-expanded" in before.attributes or _FOLDED.search(names) is not None
    return says_so or before.css_first("[aria-expanded]") is not None


def _is_untold(node: LexborNode) -> bool:
    """Tell whether it is kept from screen readers, as are prices that they hear in other words."""
    return node.attributes.get("aria-hidden") == "true" and node.tag not in ("del", "ins")


def _text(node: LexborNode | None) -> str:
    """All text in an element; none of no element."""
    return (node.text(deep=True) or "") if node is not None else ""


def _length(node: LexborNode) -> int:
    """The characters of text in an element, without space around its pieces."""
    return len(node.text(deep=True, strip=True) or "")


def _drop_unread(tree: LexborHTMLParser) -> None:
    """Drop what holds no text, and show streamed pieces for which a template waits."""
    unread: list[LexborNode] = []
    kept: dict[str, list[LexborNode]] = {"div": [], "rp": [], "noscript": []}
    for node in tree.css(f"{_NO_TEXT},{_STREAMED},rp,noscript"):
        kept.get(node.tag or "", unread).append(node)
    if pieces := kept["div"]:
        waiting = {node.attributes.get("id") for node in unread if node.tag == "template"}
        for piece in pieces:
            number = (piece.attributes.get("id") or "")[1:]
            if "B" + number in waiting or "P" + number in waiting:
                del piece.attrs["hidden"]
    _drop(unread)
    _drop([node for node in kept["rp"] if len(_text(node).strip()) > _LONGEST_RP])
    # Some forums hold the text of the page in a <noscript>.
    inside = sum(len(_text(node)) for node in kept["noscript"])
    if inside > max(500, (len(_text(tree.body)) - inside) if inside > 500 else 0):
        tree.unwrap_tags(["noscript"])
    else:
        _drop(kept["noscript"])


def _drop(nodes: list[LexborNode]) -> None:
    # Taken off the tree but not freed: a node may lie inside another one of the list.
    for node in nodes:
        if node.tag in ("td", "th"):  # the rest of its row stays in place
            node.insert_before(_EMPTY_CELL)
        if node.tag not in ("html", "body", "head"):
            node.remove()
