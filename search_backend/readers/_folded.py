"""What is folded away and waits for a visitor to open it: accordions, tabs, answers."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

_OPENERS = "[aria-controls],[popovertarget],[commandfor]"
# What says that it unfolds, and what folds it.
_FOLDED = re.compile(r"accordion|collaps|faq|expander|tab-?(?:pane|panel|content)", re.IGNORECASE)
_FOLDING = frozenset({"display", "visibility", "size", "opacity"})
_FURNITURE = frozenset({"nav", "header", "footer"})
# What opens something is not long.
LONGEST_LABEL = 300
# Shorter text in it is a label, and with more links it is a menu.
LEAST_FOLDED = 40
MOST_LINKED = 1 / 8


def opened_ids(tree: LexborHTMLParser) -> set[str | None]:
    """The ids of what controls of the page open."""
    return {
        name
        for node in tree.css(_OPENERS)
        for attribute in ("aria-controls", "popovertarget", "commandfor")
        for name in (node.attributes.get(attribute) or "").split()
    }


def unfolds(node: LexborNode, axes: frozenset[str], opened: set[str | None]) -> bool:
    """Whether a visitor can open it: a control names it, its wrapper or what it wraps, or stands
    right before it; or it is called something that unfolds, and stands below a label."""
    attributes = node.attributes
    if attributes.get("role") == "tabpanel" or attributes.get("id") in opened:
        return True
    if node.tag == "dialog" or len(text := text_of(node)) < LEAST_FOLDED:
        return False
    if axes - _FOLDING:
        return False
    parent, inside = node.parent, next(node.iter(), None)
    around = parent.attributes if parent is not None else {}
    named = (around.get("id"), inside.attributes.get("id") if inside is not None else None)
    names = f"{attributes.get('class')} {around.get('class')}"
    if opened.isdisjoint(name for name in named if name) and not _has_label(node, names):
        return False
    return len(node.css("a")) <= MOST_LINKED * len(text.split())


def _has_label(node: LexborNode, names: str) -> bool:
    """Whether a short text stands right before it that controls something, as the `names` of the
    node may say."""
    before = _element_before(node)
    if before is None or before.tag in _FURNITURE:
        return False
    if not 0 < len(text_of(before).strip()) <= LONGEST_LABEL:
        return False
    says_so = "aria-expanded" in before.attributes or _FOLDED.search(names) is not None
    return says_so or before.css_first("[aria-expanded]") is not None


def _element_before(node: LexborNode) -> LexborNode | None:
    """The element before it, inside the same one."""
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    return before


def text_of(node: LexborNode | None) -> str:
    """All text in an element; none of no element."""
    return (node.text(deep=True) or "") if node is not None else ""
