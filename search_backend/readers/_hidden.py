"""Take out of a parsed page what its visitors cannot see, so that no model reads it either."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from search_backend.readers._cascade import Cascade, Finding
from search_backend.readers._colour import alike, clear_text, colour_of, paints_text
from search_backend.readers._declared import LONGEST_BLOCK, Declarations, declarations, plain
from search_backend.readers._folded import opened_ids, text_of, unfolds
from search_backend.readers._signs import may_hide
from search_backend.readers._style import INHERITED, PROPERTIES, hiding

_NO_TEXT = (
    "script,style,template,iframe,object,embed,svg,canvas,audio,video,map,select,datalist,"
    "input,textarea,progress,meter,noembed,noframes,annotation,annotation-xml,fencedframe,"
    "body title"
)
_HIDDEN = "[hidden],dialog:not([open]),[popover]"
# Shown, but not to those who hear the page.
_UNREAD = "[aria-hidden=true]"
# A sheet that hides most of a page does so until a script shows it: that is the page's text.
MOST_HIDDEN_SHARE = 0.3
BETTER_PART = 0.5
# Shorter than any page that was worth hiding.
LONGEST_HIDDEN = 500
_INLINE = frozenset(
    re.split(" ", "a abbr b bdi bdo big cite code em font i mark q s small span strong u")
)
_BOXED = frozenset({"display", "position", "float"})
# More than that is no parenthesis around a reading.
_LONGEST_RP = 2
_ROOTS = frozenset({"html", "body", "main"})
_NONE: frozenset[str] = frozenset()
_DISPLAY, _COLOUR = frozenset({"display"}), frozenset({"colour"})
_LASTING = frozenset({"font-size", "colour", "text-indent", "clip"})
# React streams a page in pieces, hidden until a script puts them in place.
# https://react.dev/reference/react-dom/server/renderToPipeableStream
_STREAMED = "body > div[hidden][id^='S:']"
_WAITING = "template[id^='B:'],template[id^='P:']"


def remove_hidden(tree: LexborHTMLParser) -> None:
    """Drop elements that hold no text or none that is shown. Changes `tree`."""
    cascade = Cascade(tree)
    _show_streamed(tree)
    _drop(tree.css(_NO_TEXT))
    _drop([node for node in tree.css("rp") if len(text_of(node).strip()) > _LONGEST_RP])
    _unfold_noscript(tree)
    if tree.body is not None:
        _Hidden(tree, cascade).take_out()


class _Hidden:
    """The hidden elements of one page."""

    def __init__(self, tree: LexborHTMLParser, cascade: Cascade) -> None:
        self._tree = tree
        self._cascade = cascade
        # What was taken out, and what has nothing left but children that show themselves.
        self._gone: set[int] = set()
        self._hollow: dict[int, frozenset[str]] = {}

    def take_out(self) -> None:
        """Take out what is hidden on any axis."""
        own = self._own()
        found = {node.mem_id: (node, axes) for node, axes in self._cascade.hidden_by_sheets()}
        for node, axes in own:
            known = found.get(node.mem_id)
            found[node.mem_id] = (node, known[1] | axes if known else axes)
        findings = [one for one in found.values() if text_of(one[0]).strip()]
        if not findings:
            return
        named = {node.mem_id for node, _ in own}
        groups: tuple[list[Finding], list[Finding], list[Finding]] = ([], [], [])
        for node, hidden, style in self._seen_whole(findings):
            if not hidden or node.tag in _ROOTS:
                continue
            if node.mem_id not in named:
                groups[2].append((node, hidden))
            elif hidden != {"opacity"}:
                groups[0].append((node, hidden))
            elif style.get("transform", "none") == "none":
                groups[1].append((node, hidden))
        # From the outside in: what lies in something that went needs no look.
        for node, hidden in sorted(self._for_good(*groups), key=lambda found: _depth(found[0])):
            if self._gone.isdisjoint(_path(node)):
                self._take(node, hidden)

    def _own(self) -> list[Finding]:
        """What its own attributes may hide, and on which axes."""
        own = [(node, _DISPLAY) for node in self._tree.css(_HIDDEN)]
        own += [(node, _NONE) for node in self._tree.css(_UNREAD)]
        # Pages write the same few styles again and again.
        known: dict[str | None, frozenset[str]] = {}
        for node in self._tree.css("[style]"):
            style = node.attributes.get("style")
            if (axes := known.get(style)) is None:
                axes = known[style] = self._axes_of(style or "")
            if axes:
                own.append((node, axes))
        own += [(node, _COLOUR) for node in self._tree.css("font[color]")]
        return own

    def _axes_of(self, style: str) -> frozenset[str]:
        if self._cascade.whole:
            return self._cascade.axes_of(style) if may_hide(style) or "color" in style else _NONE
        # Only what is important undoes a style; of a page that is not known whole it is enough.
        return _undone_by(style)

    def _seen_whole(
        self, findings: Sequence[Finding]
    ) -> Iterator[tuple[LexborNode, frozenset[str], Declarations]]:
        """Each element with the axes on which it is hidden, all things considered."""
        whole = self._cascade.whole
        styles = self._cascade.weighed(findings)
        coloured = [
            (node, text)
            for (node, _), style in zip(findings, styles, strict=True)
            if whole and not paints_text(style) and (text := colour_of(style))
        ]
        grounds = self._cascade.grounds_of(node for node, _ in coloured)
        like_ground = {
            node.mem_id
            for (node, text), behind in zip(coloured, grounds, strict=True)
            if behind is not None and alike(text, behind)
        }
        for (node, _), style in zip(findings, styles, strict=True):
            axes = hiding(style, not whole) | clear_text(style)
            if node.attributes.get("aria-hidden") == "true":
                axes |= _DISPLAY
            if whole and node.tag in _INLINE and not _BOXED & style.keys():
                axes -= {"size", "content-visibility"}  # mean nothing to text within a line
            yield node, axes | _COLOUR if node.mem_id in like_ground else axes, style

    def _for_good(
        self, hidden: list[Finding], faded: list[Finding], ruled: list[Finding]
    ) -> list[Finding]:
        """Of what attributes and styles hide, what is merely transparent by them, and what sheets
        hide: what does not wait for a script or a visitor to show it.

        A page that fades in, or that arrives in pieces which a script puts in place, hides the
        better part of itself at first: one element with most of the text, or many that are merely
        transparent.
        """
        total = len(text_of(self._tree.body))
        most = max(total * BETTER_PART, LONGEST_HIDDEN)
        opened = opened_ids(self._tree)
        sizes = [size for node, _ in faded if (size := len(text_of(node))) <= most]
        if sum(sizes) <= total * MOST_HIDDEN_SHARE:
            hidden = hidden + faded
        hidden = [
            (node, axes)
            for node, axes in (*hidden, *((n, axes) for n, axes in ruled if axes & _LASTING))
            if len(text_of(node)) <= most and not unfolds(node, axes, opened)
        ]
        # Scripts and the hands of visitors undo what takes an element away, but hardly what makes
        # its letters invisible.
        ruled = [
            (node, axes)
            for node, axes in ruled
            if not axes & _LASTING and not unfolds(node, axes, opened)
        ]
        if sum(len(text_of(node)) for node, _ in ruled) <= total * MOST_HIDDEN_SHARE:
            hidden += ruled
        return hidden

    def _take(self, node: LexborNode, axes: frozenset[str]) -> None:
        """Drop the node; where its children may show themselves, all but those that do."""
        if axes <= self._hollow.get(node.mem_id, frozenset()):
            return
        shown: set[int] = set()
        if axes <= INHERITED:
            inside = [one for one in node.css("*") if one.mem_id != node.mem_id]
            styles = self._cascade.weighed([(one, axes) for one in inside])
            pairs = zip(inside, styles, strict=True)
            shown = {one.mem_id for one, style in pairs if _undoes(style, axes)}
        if not shown:
            self._gone.add(node.mem_id)
            _drop([node])
            return
        above = {node.mem_id}
        for one in inside:
            at = one.parent if one.mem_id in shown else None
            while at is not None and at.mem_id not in above:
                above.add(at.mem_id)
                at = at.parent
        self._hollow |= dict.fromkeys(above, axes)
        waiting = [node]
        while waiting:
            for child in list(waiting.pop().iter(include_text=True)):
                if child.mem_id in shown:
                    continue
                if child.mem_id in above:
                    waiting.append(child)
                else:
                    child.remove()


@lru_cache(maxsize=4096)
def _undone_by(style: str) -> frozenset[str]:
    """The axes on which an inline style hides, each with the mark of what could undo it."""
    if len(style) > LONGEST_BLOCK or not may_hide(style):
        return _NONE
    declared = plain(declarations(style))
    return frozenset(f"{axis}!" for axis in hiding(declared) | clear_text(declared))


def _path(node: LexborNode) -> Iterator[int]:
    at: LexborNode | None = node
    while at is not None:
        yield at.mem_id
        at = at.parent


def _depth(node: LexborNode) -> int:
    return sum(1 for _ in _path(node))


def _undoes(style: Declarations, axes: Iterable[str]) -> bool:
    """Whether an element shows itself inside one that is hidden on these axes."""
    for axis in axes:
        said = [style[name] for name in PROPERTIES[axis] if name in style]
        if not said or set(said) <= {"inherit", "unset"}:
            return False
        if axis in hiding(style, False) | clear_text(style):
            return False
        if axis == "font-size" and re.search(r"(?<!r)em\b|%", style.get("font-size", "")):
            return False
    return True


def _show_streamed(tree: LexborHTMLParser) -> None:
    """What was streamed and has a template that waits for it is part of the page."""
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
    inside = sum(len(text_of(node)) for node in nodes)
    if inside > max(500, (len(text_of(tree.body)) - inside)):
        tree.unwrap_tags(["noscript"])
    else:
        _drop(nodes)


def _drop(nodes: list[LexborNode]) -> None:
    # Taken off the tree but not freed: a node may lie inside another one of the list.
    for node in nodes:
        if node.tag not in ("html", "body", "head"):
            node.remove()
