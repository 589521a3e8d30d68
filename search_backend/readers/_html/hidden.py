"""Remove from a parsed page what its visitors cannot see, so that no model reads it either.

What a visitor can open (accordions, tabs, answers) stays, and what waits for a script: a page that
fades in, or that arrives in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchloop.search_backend.readers._html.styles import MOST_STEPS, Sheets, Style
from searchloop.search_backend.readers._html.visibility import (
    PROPERTIES,
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
_STYLED = "[style],[hidden],dialog:not([open]),[popover],[aria-hidden=true],[bgcolor],font[color]"
# What stands in every style that may hide, in lower case: most have none of it.
_MAY_HIDE = re.compile(
    r"\\|/\*|none|hidden|collapse|var\(|opacity|clip|transform|scale|translate|colou?r|fill|font"
    r"|-\d*\.?\d|\d{3}v|[:\s]\+?(?:0|\.|1(?:\.\d*)?(?:p|q|%))|\d{3}%|\de\d"
)
_NONE: frozenset[str] = frozenset()
_PLAIN = ("", "", "")
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE, BETTER_PART = 0.3, 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
_INLINE_TAGS = "a abbr b bdi bdo big cite code em font i mark q s small span strong u"
_INLINE = frozenset(_INLINE_TAGS.split())
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
_WAITING = "template[id^='B:'],template[id^='P:']"
_OPENERS = ("aria-controls", "popovertarget", "commandfor")
# Names of what unfolds, and the axes that fold it.
_FOLDED = re.compile(r"accordion|collaps|faq|expander|tab-?(?:pane|panel|content)", re.IGNORECASE)
_FOLDING = frozenset({"display", "visibility", "size", "opacity"})
_FURNITURE = frozenset({"nav", "header", "footer"})
# What opens something is not long. Shorter text in it is a label; with more links it is a menu.
LONGEST_LABEL, LEAST_FOLDED, MOST_LINKED = 300, 40, 1 / 8


def remove_hidden(tree: LexborHTMLParser) -> int:
    """Remove elements without text or without any that is shown. Changes `tree`; returns the steps
    that its sheets cost, at most MOST_STEPS."""
    sheets = Sheets(tree)
    _show_streamed(tree)
    _drop(tree.css(_NO_TEXT))
    _drop([node for node in tree.css("rp") if len(_text(node).strip()) > _LONGEST_RP])
    _unfold_noscript(tree)
    if tree.body is not None:
        _Hidden(tree, sheets).take_out()
    return MOST_STEPS - sheets.left


class _Hidden:
    """The hidden elements of one page, by their index in it."""

    def __init__(self, tree: LexborHTMLParser, sheets: Sheets) -> None:
        self._tree = tree
        self._sheets = sheets
        self._nodes = tree.css("*")
        self._place = {node.mem_id: place for place, node in enumerate(self._nodes)}
        self._emptied: dict[int, frozenset[str]] = {}
        self._grounds: dict[int, Colour | None] = {-1: WHITE}
        self._style, self._axes = cache(sheets.style), cache(self._axes_of)
        # What the browser, the sheets and the element itself say.
        self._own = {
            self._place[node.mem_id]: (_defaults(node), "", node.attributes.get("style") or "")
            for node in tree.css(_STYLED)
        }
        ruled = sheets.applied(self._nodes, PROPERTIES)
        self._all = self._own | {
            place: (self._own.get(place, _PLAIN)[0], text, self._own.get(place, _PLAIN)[2])
            for place, text in ruled.items()
        }

    def take_out(self) -> None:
        """Remove what is hidden on any axis."""
        hidden = {
            place: axes
            for place in sorted(self._all)
            if (axes := self._confirmed(place)) and _text(self._nodes[place]).strip()
        }
        inherited: list[int] = []
        for place in sorted(self._for_good(hidden)):
            if hidden[place] <= _INHERITED.keys():
                inherited.append(place)
            else:
                _drop([self._nodes[place]])
        for place in inherited:
            self._empty(self._nodes[place], hidden[place])
            if not _text(self._nodes[place]).strip():
                _drop([self._nodes[place]])

    def _axes_of(self, *texts: str) -> frozenset[str]:
        """The axes on which a style hides, whatever is around it."""
        if not _MAY_HIDE.search(" ".join(texts).lower()):
            return _NONE
        return hiding(self._style(*texts), self._sheets.whole)

    def _confirmed(self, place: int) -> frozenset[str]:
        """The axes on which an element is hidden after the whole cascade."""
        node, texts, whole = self._nodes[place], self._all[place], self._sheets.whole
        axes = self._axes(*texts)
        style = self._style(*texts)
        if whole and (colour := colour_of(style)) and (behind := self._ground(place)):
            axes |= {"colour"} if alike(colour, behind) else _NONE
        if _is_silent(node):
            axes |= {"display"}
        if whole and node.tag in _INLINE and not _BOXED & style.keys():
            axes -= {"size", "content-visibility"}  # mean nothing to text within a line
        # Transparent and moved by a little, it flies in when a visitor comes to it.
        is_moved = "transform" in style and words(style, "transform") != {"none"}
        return _NONE if node.tag in _ROOTS or (is_moved and axes == {"opacity"}) else axes

    def _ground(self, place: int) -> Colour | None:
        """The colour behind an element and all around it; None where it is unknown."""
        path: list[int] = []
        while place not in self._grounds:
            path.append(place)
            parent = self._nodes[place].parent
            place = self._place.get(parent.mem_id, -1) if parent is not None else -1
        behind = self._grounds[place]
        for at in reversed(path):
            own = ground(self._style(*self._all.get(at, _PLAIN)))
            behind = self._grounds[at] = own if own is None or own[3] > 0 else behind
        return behind

    def _for_good(self, hidden: Mapping[int, frozenset[str]]) -> list[int]:
        """The hidden elements that no script or visitor is going to show.

        A page that fades in, or that arrives in pieces which a script puts in place, hides the
        better part of itself at first: one element with most of the text, or many that are merely
        transparent, or that a sheet takes away.
        """
        nodes = self._nodes
        total = len(_text(self._tree.body))
        opened = _opened_ids(self._tree)
        size = {place: len(_text(nodes[place])) for place in hidden}
        kept: list[int] = []
        faded: list[int] = []
        ruled: list[int] = []
        for place, axes in hidden.items():
            if unfolds(nodes[place], axes, opened):
                continue
            by_itself = self._axes(*self._own.get(place, _PLAIN)) or _is_silent(nodes[place])
            if not by_itself and not axes & _LASTING:
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
                continue
            texts = self._all.get(self._place[child.mem_id], _PLAIN)
            if not _undoes(self._style(*texts), axes):
                self._empty(child, axes)


def _is_silent(node: LexborNode) -> bool:
    return node.attributes.get("aria-hidden") == "true"


def _defaults(node: LexborNode) -> str:
    """Return the style that a browser gives an element for its attributes."""
    attributes = node.attributes
    is_closed = node.tag == "dialog" and "open" not in attributes
    text = f"background-color:{attributes['bgcolor']};" if attributes.get("bgcolor") else ""
    if node.tag == "font" and attributes.get("color"):
        text += f"color:{attributes['color']};"
    # Last, so that no attribute before it brings in another one.
    return text + "display:none;" * (is_closed or "hidden" in attributes or "popover" in attributes)


def _undoes(style: Style, axes: Iterable[str]) -> bool:
    """Tell whether an element shows itself inside one that is hidden on these axes."""
    for axis in axes:
        said = {name for name in _INHERITED[axis] if name in style}
        if all(words(style, name) & {"inherit", "unset"} for name in said):
            return False
        if axis in hiding(style, True):
            return False
        size = style["font-size"][0] if axis == "font-size" else None
        if size and (size.type == "percentage" or getattr(size, "lower_unit", "") == "em"):
            return False  # a share of nothing
    return True


def unfolds(node: LexborNode, axes: frozenset[str], opened: set[str]) -> bool:
    """Tell whether a visitor can open it: a control names it, its wrapper or what it wraps, or
    stands right before it; or its name says that it unfolds, and it stands below a label."""
    attributes = node.attributes
    if attributes.get("role") == "tabpanel" or attributes.get("id") in opened:
        return True
    if axes - _FOLDING or node.tag == "dialog" or len(text := _text(node)) < LEAST_FOLDED:
        return False
    parent, inside = node.parent, next(node.iter(), None)
    around = parent.attributes if parent is not None else {}
    named = (around.get("id"), inside.attributes.get("id") if inside is not None else None)
    names = f"{attributes.get('class')} {around.get('class')}"
    if opened.isdisjoint(filter(None, named)) and not _has_label(node, names):
        return False
    return len(node.css("a")) <= MOST_LINKED * len(text.split())


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


def _opened_ids(tree: LexborHTMLParser) -> set[str]:
    """The ids of what controls of the page open."""
    return {
        name
        for attribute in _OPENERS
        for node in tree.css(f"[{attribute}]")
        for name in (node.attributes.get(attribute) or "").split()
    }


def _text(node: LexborNode | None) -> str:
    """All text in an element; none of no element."""
    return (node.text(deep=True) or "") if node is not None else ""


def _show_streamed(tree: LexborHTMLParser) -> None:
    """Show the streamed pieces for which a template waits."""
    if pieces := tree.css(_STREAMED):
        waiting = {node.attributes.get("id") for node in tree.css(_WAITING)}
        for piece in pieces:
            number = (piece.attributes.get("id") or "")[1:]
            if "B" + number in waiting or "P" + number in waiting:
                del piece.attrs["hidden"]


def _unfold_noscript(tree: LexborHTMLParser) -> None:
    """Keep a <noscript> that holds the text of the page, as some forums do; drop the others."""
    nodes = tree.css("noscript")
    if not nodes:
        return
    inside = sum(len(_text(node)) for node in nodes)
    if inside > max(500, (len(_text(tree.body)) - inside)):
        tree.unwrap_tags(["noscript"])
    else:
        _drop(nodes)


def _drop(nodes: list[LexborNode]) -> None:
    # Taken off the tree but not freed: a node may lie inside another one of the list.
    for node in nodes:
        if node.tag not in ("html", "body", "head"):
            node.remove()
