"""Tell which declarations hide text. Each way to hide is called an axis.

Nothing is laid out: lengths are those of text of the usual size, and what only a drawing would show
(blending, masks, other elements on top) counts as visible.

Spec: https://www.w3.org/TR/CSS/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, nan

from tinycss2.ast import FunctionBlock, Node  # type: ignore[import-untyped]
from tinycss2.color4 import Color, parse_color  # type: ignore[import-untyped]

from searchloop.search_backend.readers._html.styles import SCREEN_WIDTH, Style

# Nobody reads what is smaller or further away; in CSS pixels, as a factor, as a share.
LEAST_SIZE, FAR, LEAST_SCALE, FAINTEST = 2.0, 500.0, 0.05, 0.02
# A carousel that stands at a later picture is moved by a few times its own width.
MANY_TIMES = 5
SCREEN_HEIGHT = 800.0
# Nobody tells apart what differs by less, in brightness and in any one of red, green and blue.
_BRIGHTNESS, _CHANNEL = 0.04, 0.095
_UNITS = "px pt pc in cm mm q em rem ch ex vw vmax vh vmin"
_SIZES = (1, 4 / 3, 16, 96, 37.8, 3.78, 0.945, 16, 16, 8, 8, 12.8, 12.8, 8, 8)
_SIDES = ("left", "top", "right", "bottom")
_PIXELS = dict(zip(_UNITS.split(), _SIZES, strict=True))
# Red, green, blue, and how opaque; each 0 to 1.
Colour = tuple[float, float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0, 1.0)
CLEAR: Colour = (0.0, 0.0, 0.0, 0.0)


def hiding(style: Style, whole: bool) -> frozenset[str]:
    """The axes on which these declarations hide an element. Of a page that is not known `whole`,
    sheets that were not read may add what is missing here to hide it."""
    return frozenset(axis for axis, hides in _TESTS.items() if hides(style, not whole))


def words(style: Style, name: str) -> set[str]:
    return {token.lower_value for token in style.get(name, ()) if token.type == "ident"}


def _pixels(token: Node, whole: float = 0.0) -> float:
    """A length in CSS pixels, a share as one of `whole`; NaN for what is no length: no comparison
    holds for it."""
    match token.type:
        case "number":
            return float(token.value)
        case "percentage":
            return float(token.value) * whole / 100
        case "dimension":
            return float(token.value) * _PIXELS.get(token.lower_unit, nan)
    return nan


def _length(style: Style, name: str, whole: float = 0.0) -> float:
    return _pixels(style[name][0], whole) if style.get(name) else nan


def _functions(style: Style, name: str) -> Iterator[tuple[str, list[Node]]]:
    """Each function of a value, and its arguments."""
    for token in style.get(name, ()):
        if isinstance(token, FunctionBlock):
            parts = (one for one in token.arguments if one.type not in ("whitespace", "comment"))
            yield token.lower_name, [one for one in parts if one != ","]


def _text_indent(style: Style, unknown: bool) -> bool:
    size = _length(style, "text-indent", SCREEN_WIDTH)
    is_clipped = "nowrap" in words(style, "white-space") and _clips(style, unknown)
    return size <= -100 or (size >= FAR and is_clipped)


def _offset(style: Style, unknown: bool) -> bool:
    position = words(style, "position")
    is_moved = position & {"absolute", "fixed", "relative"} or (unknown and not position)
    for name in _SIDES if is_moved and not style.keys().isdisjoint(_SIDES) else ():
        whole = SCREEN_WIDTH if name in ("left", "right") else SCREEN_HEIGHT
        size = _length(style, name, whole)
        is_share = name in style and style[name][0].type == "percentage"
        if size <= -(MANY_TIMES * whole if is_share else FAR):
            return True
        if "fixed" in position and size >= whole:
            return True
    return any(_length(style, f"margin-{n}", SCREEN_WIDTH) <= -2 * FAR for n in ("left", "top"))


def _size(style: Style, unknown: bool) -> bool:
    if not _clips(style, unknown):
        return False
    said = "overflow" in style
    for side, more in (("height", ("padding-top", "padding-bottom")), ("width", ())):
        sizes = [_length(style, name, 100.0) for name in (side, f"max-{side}")]
        is_wider = any(_length(style, name) > LEAST_SIZE for name in (f"min-{side}", *more))
        if not is_wider and any(size == 0 or (said and size < LEAST_SIZE) for size in sizes):
            return True
    return said and _length(style, "line-height") == 0


def _clips(style: Style, unknown: bool) -> bool:
    """Tell whether what is larger than the element is cut off."""
    said = words(style, "overflow")
    return bool(said & {"hidden", "clip", "auto", "scroll"}) if said else unknown


def _clip(style: Style, unknown: bool) -> bool:
    position = words(style, "position")
    if position & {"absolute", "fixed"} or (unknown and not position):
        for _, parts in _functions(style, "clip"):
            sides = [size for part in parts if not isnan(size := _pixels(part))]
            if len(sides) == 4 and min(sides[2] - sides[0], sides[1] - sides[3]) < LEAST_SIZE:
                return True
    return any(_is_empty(name, parts) for name, parts in _functions(style, "clip-path"))


def _is_empty(name: str, parts: Sequence[Node]) -> bool:
    """Tell whether a shape of `clip-path` has no inside."""
    sizes = [size for part in parts if not isnan(size := _pixels(part, 100.0))]
    match name:
        case "inset" if sizes and any(part.type == "percentage" for part in parts):
            top, right, bottom = (*sizes, *sizes, *sizes)[:3]
            left = sizes[3] if len(sizes) == 4 else right
            return top + bottom >= 99 or left + right >= 99
        case "circle" | "ellipse":
            return bool(sizes) and min(sizes[: len(name) - 5]) < 0.5
        case "polygon":
            return len(set(sizes[::2])) == 1 or len(set(sizes[1::2])) == 1
    return False


def _transform(style: Style, _: bool) -> bool:
    functions = [*_functions(style, "transform")]
    functions += [(name, list(style[name])) for name in ("scale", "translate") if name in style]
    for name, parts in functions:
        sizes = [_pixels(part, 100.0) for part in parts[:2]]
        is_flat = name.startswith("scale") and any(abs(size) < LEAST_SCALE for size in sizes)
        if is_flat or (name.startswith("translate") and any(size <= -2 * FAR for size in sizes)):
            return True
    return False


def colour(value: Node) -> Colour | None:
    """The colour of a CSS value; None for what is none that is known."""
    known = parse_color(value)
    try:
        return known.to("srgb") if isinstance(known, Color) else None
    except NotImplementedError:
        return None


def colour_of(style: Style) -> Colour | None:
    """The colour of text with these declarations; None if something else shows the text."""
    shadow = style.get("text-shadow") and words(style, "text-shadow") != {"none"}
    said = style.get("fill") or style.get("color")
    if shadow or not said or "text" in words(style, "painted"):
        return None
    return colour(said[0])


def ground(style: Style) -> Colour | None:
    """The colour behind an element's text; clear for none, None for an unknown one."""
    said = style.get("background-color", ())
    tokens = (*said, *style.get("background-image", ()))
    if any(token.type in ("url", "function") and colour(token) is None for token in tokens):
        return None
    if known := [one for token in said if (one := colour(token)) is not None]:
        return known[-1]
    names = words(style, "background-color")
    if "currentcolor" in names:
        return colour_of(style)
    return CLEAR if names <= {"none", "initial", "unset", "inherit"} else None


def alike(text: Colour, behind: Colour) -> bool:
    """Tell whether text of this colour looks like the ground it stands on."""
    if text[3] <= FAINTEST:
        return True
    gaps = [(part - under) * text[3] for part, under in zip(text[:3], behind[:3], strict=True)]
    brightness = abs(0.299 * gaps[0] + 0.587 * gaps[1] + 0.114 * gaps[2])
    return behind[3] >= 0.9 and brightness <= _BRIGHTNESS and max(map(abs, gaps)) <= _CHANNEL


def _colour(style: Style, _: bool) -> bool:
    text = colour_of(style)
    is_alike = text is not None and alike(text, ground(style) or CLEAR)
    return is_alike or "currentcolor" in words(style, "background-color")


_TESTS: Mapping[str, Callable[[Style, bool], bool]] = {
    "display": lambda style, _: "none" in words(style, "display"),
    "visibility": lambda style, _: bool(words(style, "visibility") & {"hidden", "collapse"}),
    "content-visibility": lambda style, _: "hidden" in words(style, "content-visibility"),
    "opacity": lambda style, _: -99 <= _length(style, "opacity", 1.0) <= FAINTEST,
    "font-size": lambda style, _: 0 <= _length(style, "font-size", 16.0) < LEAST_SIZE,
    "text-indent": _text_indent,
    "offset": _offset,
    "size": _size,
    "clip": _clip,
    "transform": _transform,
    "colour": _colour,
}
_LOOKED_AT = """
display visibility content-visibility opacity font-size text-indent white-space overflow position
left top right bottom margin-left margin-top height width max-height max-width min-height min-width
padding-top padding-bottom line-height float clip clip-path transform scale translate
color fill text-shadow background-color background-image painted
"""
PROPERTIES = frozenset(_LOOKED_AT.split())
