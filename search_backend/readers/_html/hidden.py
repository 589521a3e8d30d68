"""Remove from a parsed page what its visitors cannot see, so that no model reads it either.

What a visitor can open (accordions, tabs, answers) stays, and what waits for a script: a page that
fades in, or that arrives in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.styles import Cascade
from searchloop.search_backend.readers._html.visibility import (
    WHITE,
    Colour,
    Style,
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
_PLAIN: Style = {}
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE, BETTER_PART = 0.3, 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
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
_CONTROLS = f"[role=tab],[{'],['.join(_OPENERS)}]"
# Names of what unfolds, and the axes that fold it.
_FOLDED = re.compile(r"accordion|collaps|faq|expander|tab-?(?:pane|panel|content)", re.IGNORECASE)
_FOLDING = frozenset({"display", "visibility", "size", "opacity"})
_FURNITURE = frozenset({"nav", "header", "footer"})
# What opens something is not long. Shorter text in it is a label; with more links it is a menu.
LONGEST_LABEL, LEAST_FOLDED, MOST_LINKED = 300, 40, 1 / 8
_EMPTY_CELL = LexborHTMLParser("<table><tr><td hidden></table>").css("td")[0]


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
        self._cascade = cascade
        self._styles = cascade.styles
        self._emptied: dict[int, frozenset[str]] = {}
        self._grounds: dict[int, Colour | None] = {-1: WHITE}
        self._untold = {
            cascade.place[node.mem_id] for node in tree.css("[aria-hidden=true]:not(del,ins)")
        }
        # What a control of the page opens.
        self._opened: set[str] = set()
        for node in tree.css(_CONTROLS):
            attributes = node.attributes
            if attributes.get("role") == "tab":
                named = (attributes.get("id"), (attributes.get("href") or "").partition("#")[2])
                self._opened.update(filter(None, named))
            for opener in _OPENERS:
                self._opened.update((attributes.get(opener) or "").split())
        self._total = _length(tree.body) if tree.body is not None else 0

    def take_out(self) -> None:
        """Remove what is hidden on any axis."""
        nodes = self._cascade.nodes
        inherited: list[int] = []
        hidden = self._hidden()
        for place in self._for_good(hidden):
            if hidden[place] <= _INHERITED.keys():
                inherited.append(place)
            else:
                _drop([nodes[place]])
        for place in inherited:
            self._empty(nodes[place], hidden[place])
            if not _text(nodes[place]).strip():
                _drop([nodes[place]])

    def _hidden(self) -> Axes:
        """The elements with text that are hidden, and on which axes."""
        cascade = self._cascade
        alike_ones: dict[int, frozenset[str]] = {}  # many elements share one style
        found: dict[int, frozenset[str]] = {}
        for place in sorted({*self._styles, *self._untold}):
            style, node = self._styles.get(place, _PLAIN), cascade.nodes[place]
            if (axes := alike_ones.get(id(style))) is None:
                axes = alike_ones[id(style)] = hiding(style)
            text = colour_of(style) if cascade.whole else None
            if text and (under := self._ground(place)) and alike(text, under):
                axes |= {"colour"}
            if place in self._untold:
                axes |= {"display"}
            if cascade.whole and node.tag in INLINE and not _BOXED & style.keys():
                axes -= {"size", "content-visibility"}  # mean nothing to text within a line
            # Transparent and moved by a little, it flies in when a visitor comes to it.
            is_moved = "transform" in style and words(style, "transform") != {"none"}
            is_shown = node.tag in _ROOTS or (is_moved and axes == {"opacity"})
            if axes and not is_shown and _length(node):
                found[place] = axes
        return found

    def _ground(self, place: int) -> Colour | None:
        """The colour behind an element and all around it; None where it is unknown."""
        way = []
        while place not in self._grounds:
            way.append(place)
            place = self._cascade.parent(place)
        colour = self._grounds[place]
        for place in reversed(way):
            own = ground(self._styles.get(place, _PLAIN))
            colour = self._grounds[place] = own if own is None or own[3] > 0 else colour
        return colour

    def _for_good(self, hidden: Axes) -> list[int]:
        """The hidden elements that no script or visitor is going to show.

        A page that fades in, or that arrives in pieces which a script puts in place, hides the
        better part of itself at first: one element with most of the text, or many that are merely
        transparent, or that a sheet takes away.
        """
        nodes = self._cascade.nodes
        size = {place: _length(nodes[place]) for place in hidden}
        kept: list[int] = []
        faded: list[int] = []
        ruled: list[int] = []
        for place, axes in hidden.items():
            if unfolds(nodes[place], axes, self._opened, size[place]):
                continue
            is_own = place in self._untold or hiding(self._cascade.own(place))
            if not is_own and not axes & _LASTING:
                ruled.append(place)
            elif size[place] <= max(self._total * BETTER_PART, LONGEST_HIDDEN):
                (faded if axes == {"opacity"} else kept).append(place)
        for group in (faded, ruled):
            if sum(size[place] for place in group) <= self._total * MOST_HIDDEN_SHARE:
                kept += group
        return sorted(kept)

    def _empty(self, node: LexborNode, axes: frozenset[str]) -> None:
        """Remove the text of an element, but for children that show themselves."""
        if axes <= self._emptied.get(node.mem_id, _NONE):
            return
        self._emptied[node.mem_id] = axes
        for child in list(node.iter(include_text=True)):
            if not child.is_element_node:
                child.remove()
            elif not _undoes(self._styles.get(self._cascade.place[child.mem_id], _PLAIN), axes):
                self._empty(child, axes)


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
