"""What declarations hide. Text may go in many ways; each of them is an axis, told by its name.

Nothing is laid out and nothing is fetched: lengths are seen from text of the usual size, and what
only a drawing would show (blending, masks, other elements on top) is taken for visible.

Spec: https://www.w3.org/TR/CSS/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from search_backend.readers._media import HEIGHT, WIDTH, pixels
from search_backend.readers._shapes import (
    FAR,
    FUNCTION,
    LEAST_SCALE,
    LEAST_SIZE,
    as_share,
    clips_away,
    side_of,
    transforms_away,
)

# Children may undo these for themselves, and only these.
INHERITED = frozenset({"visibility", "font-size", "text-indent", "colour"})
# Fainter than this nobody reads.
_LEAST_OPACITY = 0.02
_DISPLAY_WORDS = frozenset(
    {
        *("block", "inline", "inline-block", "flex", "inline-flex", "grid"),
        *("inline-grid", "table", "inline-table", "table-row", "table-cell"),
        *("table-row-group", "table-header-group", "table-footer-group", "table-column"),
        *("table-caption", "table-column-group", "list-item", "contents", "flow-root"),
        *("run-in", "ruby", "initial", "unset", "inherit", "revert", "revert-layer"),
        *("-webkit-box", "-webkit-inline-box", "-webkit-flex", "-ms-flexbox", "math"),
    }
)
# Which properties speak of an axis, in their order of a block.
PROPERTIES: Mapping[str, frozenset[str]] = {
    "display": frozenset({"display"}),
    "visibility": frozenset({"visibility"}),
    "content-visibility": frozenset({"content-visibility"}),
    "opacity": frozenset({"opacity"}),
    "filter": frozenset({"filter", "-webkit-filter"}),
    "font-size": frozenset({"font-size", "font", "zoom"}),
    "text-indent": frozenset({"text-indent"}),
    "offset": frozenset(
        {
            "position",
            "left",
            "top",
            "right",
            "bottom",
            "inset",
            "inset-inline-start",
            "inset-inline-end",
            "inset-block-start",
            "margin",
            "margin-left",
            "margin-top",
            "margin-inline-start",
        }
    ),
    "size": frozenset(
        {
            "height",
            "width",
            "max-height",
            "max-width",
            "min-height",
            "min-width",
            "block-size",
            "inline-size",
            "max-block-size",
            "max-inline-size",
            "overflow",
            "overflow-x",
            "overflow-y",
            "padding",
            "padding-top",
            "padding-bottom",
            "line-height",
            "position",
            "contain",
            "display",
            "float",
        }
    ),
    "clip": frozenset({"clip", "clip-path", "-webkit-clip-path", "position"}),
    "transform": frozenset({"transform", "scale", "translate", "-webkit-transform"}),
    "colour": frozenset(
        {
            "color",
            "-webkit-text-fill-color",
            "text-shadow",
            "background-clip",
            "-webkit-background-clip",
            "background",
            "background-color",
            "background-image",
        }
    ),
}
_SIZES = (
    (("height", "max-height", "block-size", "max-block-size"), "height"),
    (("width", "max-width", "inline-size", "max-inline-size"), "width"),
)
MANY_TIMES = 5
_CONTAINING = frozenset({"strict", "content", "paint"})
_CLIPPING = frozenset({"hidden", "clip", "auto", "scroll"})

Style = Mapping[str, str]


def hiding(style: Style, unknown: bool = True) -> frozenset[str]:
    """The axes on which these declarations hide an element.

    `unknown`: sheets that were not read may add what is missing here to hide it.
    """
    axes = {axis for name in style for axis in _AXES_OF.get(name, ())}
    return frozenset(axis for axis in axes if axis in _TESTS and _TESTS[axis](style, unknown))


def valid_display(value: str) -> bool:
    """Whether a browser knows this value of `display`; it passes over others."""
    if value == "none":
        return True
    words = value.split()
    return 0 < len(words) <= 3 and all(word in _DISPLAY_WORDS or word == "flow" for word in words)


def _filter(style: Style, unknown: bool) -> bool:
    value = style.get("filter", style.get("-webkit-filter", ""))
    return any(
        name == "opacity" and as_share(inside) <= _LEAST_OPACITY
        for name, inside in FUNCTION.findall(value)
    )


def _opacity(style: Style, unknown: bool) -> bool:
    return "opacity" in style and as_share(style["opacity"]) <= _LEAST_OPACITY


def _font_size(style: Style, unknown: bool) -> bool:
    size = style.get("font-size", "")
    if not size and (font := style.get("font")):
        sizes = [word.partition("/")[0] for word in font.split()]
        size = next((s for s in sizes if re.match(r"[.0-9]", s) and not s.isdigit()), "")
        size = size or next((s for s in sizes if s == "0"), "")
    pixel = pixels(size, 16.0)
    zoom = pixels(style.get("zoom", "1"), 1.0)
    if zoom is not None and 0 < zoom < LEAST_SCALE:
        return True
    return pixel is not None and 0 <= pixel < LEAST_SIZE


def _text_indent(style: Style, unknown: bool) -> bool:
    size = pixels(style.get("text-indent", "0").split(" ")[0], WIDTH)
    if size is None:
        return False
    out = size >= FAR and style.get("white-space") == "nowrap" and _clips(style, unknown)
    return size <= -100 or out


def _offset(style: Style, unknown: bool) -> bool:
    position = style.get("position", "")
    moved = position in ("absolute", "fixed", "relative") or (unknown and not position)
    for name in ("left", "top", "right", "bottom") if moved else ():
        length = style.get(name) or side_of(style.get("inset", ""), name)
        if not length and name == "left":
            length = style.get("inset-inline-start", "")
        whole = WIDTH if name in ("left", "right") else HEIGHT
        if (size := pixels(length, whole)) is None:
            continue
        # A carousel that stands at a later picture is moved by a few times its own width.
        far = MANY_TIMES * whole if length.endswith("%") else FAR
        if size <= -far or (position == "fixed" and size >= whole):
            return True
    for name in ("left", "top"):
        length = style.get(f"margin-{name}") or side_of(style.get("margin", ""), name)
        if not length and name == "left":
            length = style.get("margin-inline-start", "")
        size = pixels(length, WIDTH)
        if size is not None and size <= -2 * FAR:
            return True
    return False


def _size(style: Style, unknown: bool) -> bool:
    for names, side in _SIZES:
        sizes = [pixels(style[name], 100.0) for name in names if name in style]
        least = min((size for size in sizes if size is not None), default=LEAST_SIZE)
        if least >= LEAST_SIZE or not _clips(style, unknown):
            continue
        if (pixels(style.get(f"min-{side}", "")) or 0) > LEAST_SIZE:
            continue
        if side == "height" and any((pixels(p) or 0) > LEAST_SIZE for p in _padding(style)):
            continue
        if least == 0 or "overflow" in "".join(style):
            return True
    return pixels(style.get("line-height", "1")) == 0 and "overflow" in style


def _padding(style: Style) -> list[str]:
    sides = [side_of(style.get("padding", ""), side) for side in ("top", "bottom")]
    return [*sides, style.get("padding-top", ""), style.get("padding-bottom", "")]


def _clips(style: Style, unknown: bool) -> bool:
    """Whether what is larger than the element is cut off."""
    said = [style[name] for name in ("overflow", "overflow-x", "overflow-y") if name in style]
    if not _CONTAINING.isdisjoint(style.get("contain", "").split()):
        return True
    if not said:
        return unknown
    return any(not _CLIPPING.isdisjoint(value.split()) for value in said)


_TESTS: Mapping[str, Callable[[Style, bool], bool]] = {
    "display": lambda style, _: style.get("display") == "none",
    "visibility": lambda style, _: style.get("visibility") in ("hidden", "collapse"),
    "content-visibility": lambda style, _: style.get("content-visibility") == "hidden",
    "opacity": _opacity,
    "filter": _filter,
    "font-size": _font_size,
    "text-indent": _text_indent,
    "offset": _offset,
    "size": _size,
    "clip": clips_away,
    "transform": transforms_away,
}
_AXES_OF: Mapping[str, tuple[str, ...]] = {
    name: tuple(axis for axis, names in PROPERTIES.items() if name in names)
    for name in set().union(*PROPERTIES.values())
}
