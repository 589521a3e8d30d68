"""Turns TeX into MathML: nodes that a browser shows as a formula without any script.

A formula that the converter does not know, whole, is shown as it was written.
https://www.w3.org/TR/mathml-core/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MATHML: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("mrow", "mfrac", "msup", "msub", "msubsup", "msqrt", "mroot"), frozenset()),
    **dict.fromkeys(("mtext", "mn", "mstyle", "mpadded", "mphantom", "mtr"), frozenset()),
    **dict.fromkeys(("munder", "mover", "munderover", "mmultiscripts"), frozenset()),
    "math": frozenset({"display", "alttext"}),
    "menclose": frozenset({"notation"}),
    "mi": frozenset({"mathvariant"}),
    "mo": frozenset({"stretchy", "fence", "form", "separator", "accent"}),
    "mspace": frozenset({"width"}),
    "mtable": frozenset({"displaystyle"}),
    "mtd": frozenset({"columnalign"}),
}
_DEEPEST = 30
_MOST_BRACES = 200  # the converter's own limit is Python's recursion
# Environments that the converter knows, and others as those of them that look the same.
_ENVIRONMENTS = {
    **{name: name for name in ("array", "cases", "align", "align*", "smallmatrix", "substack")},
    **{
        name: name
        for kind in " pbBvV"
        for name in (f"{kind}matrix".strip(), f"{kind}matrix*".strip())
    },
    **dict.fromkeys(("aligned", "eqnarray", "eqnarray*", "split", "flalign"), "align*"),
    **dict.fromkeys(("gathered", "gather", "gather*", "multline"), "matrix"),
}
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([^{}]*)\}")
_ARITY = {
    "msubsup": 3,
    "munderover": 3,
    **dict.fromkeys(("mfrac", "mroot", "msup", "msub", "munder", "mover"), 2),
}
_VALUE = re.compile(r"[a-z0-9. -]{1,24}")
_UNKNOWN = re.compile(r"\\[A-Za-z]")


@lru_cache(maxsize=512)
def mathml(tex: str, display: bool) -> dict[str, Any] | None:
    """Returns a formula as one node, or None where it cannot be shown whole."""
    if tex.count("{") > _MOST_BRACES:
        return None
    from latex2mathml.converter import convert_to_element

    try:
        known = _ENVIRONMENT.sub(lambda m: f"\\{m[1]}{{{_ENVIRONMENTS[m[2]]}}}", tex)
        element = convert_to_element(known, display="block" if display else "inline")
        node = _copied(element, _DEEPEST)
    except Exception:  # its errors have no common type: KeyError, RecursionError, its own
        return None
    return {**node, "a": {**node.get("a", {}), "alttext": tex}}


def _copied(element: Element, depth: int) -> dict[str, Any]:
    """Copies an element that the tree allows; raises ValueError for any other."""
    text = unescape(element.text or "")
    whole = len(element) == _ARITY.get(element.tag, len(element))
    if element.tag not in MATHML or depth == 0 or not whole or _UNKNOWN.search(text):
        raise ValueError(element.tag)
    allowed = MATHML[element.tag]
    given = {k: v for k, v in element.attrib.items() if k in allowed and _VALUE.fullmatch(v)}
    inner: list[str | dict[str, Any]] = [text] if text else []
    inner += (_copied(child, depth - 1) for child in element)
    node: dict[str, Any] = {"t": element.tag}
    if given:
        node["a"] = given
    if inner:
        node["c"] = inner
    return node
