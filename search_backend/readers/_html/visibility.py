"""Tell which declarations hide text. Each way to hide is called an axis.

Nothing is laid out: lengths are those of text of the usual size, and what only a drawing would show
(blending, masks, other elements on top) counts as visible.

Spec: https://www.w3.org/TR/CSS/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from tinycss2.ast import FunctionBlock, Node  # type: ignore[import-untyped]
from tinycss2.color4 import Color, parse_color  # type: ignore[import-untyped]

# Property to the tokens of its value, without white space.
Tokens = tuple[Node, ...]
Style = dict[str, Tokens]
# Nobody reads what is smaller or further away; in CSS pixels, as a factor, as a share.
LEAST_SIZE, FAR, LEAST_SCALE, FAINTEST = 2.0, 500.0, 0.05, 0.02
# A carousel that stands at a later picture is moved by a few times its own width.
MANY_TIMES = 5
SCREEN_WIDTH, SCREEN_HEIGHT = 1280.0, 800.0
# Nobody tells apart what differs by less, in brightness and in any one of red, green and blue.
_BRIGHTNESS, _CHANNEL = 0.04, 0.095
_UNITS = "px pt pc in cm mm q em rem ch ex vw vmax vh vmin"
_SIZES = (1, 4 / 3, 16, 96, 37.8, 3.78, 0.945, 16, 16, 8, 8, 12.8, 12.8, 8, 8)
_PIXELS = dict(zip(_UNITS.split(), _SIZES, strict=True))
# Red, green, blue, and how opaque; each 0 to 1.
Colour = tuple[float, float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0, 1.0)
CLEAR: Colour = (0.0, 0.0, 0.0, 0.0)


def hiding(style: Style) -> frozenset[str]:
    """The axes on which these declarations hide an element."""
    told = [axis for axis, needed in _NEEDED.items() if not needed.isdisjoint(style)]
    return frozenset(axis for axis in told if _TESTS[axis](style))


def _word(style: Style, name: str) -> str:
    """The first word of a value; empty for none."""
    token = style[name][0] if style.get(name) else None
    return token.lower_value if token is not None and token.type == "ident" else ""


def words(style: Style, name: str) -> set[str]:
    return {token.lower_value for token in style.get(name, ()) if token.type == "ident"}


def _pixels(token: Node, whole: float = 0.0) -> float | None:
    """A length in CSS pixels, a share as one of `whole`; None for what is no length."""
    match token.type:
        case "number":
            return float(token.value)
        case "percentage":
            return float(token.value) * whole / 100
        case "dimension" if token.lower_unit in _PIXELS:
            return float(token.value) * _PIXELS[token.lower_unit]
    return None


def _length(style: Style, name: str, whole: float = 0.0) -> float | None:
    return _pixels(style[name][0], whole) if style.get(name) else None


def _is_within(size: float | None, least: float, most: float) -> bool:
    return size is not None and least <= size <= most


def _functions(style: Style, name: str) -> Iterator[tuple[str, list[Node]]]:
    """Each function of a value, and its arguments."""
    for token in style.get(name, ()):
        if isinstance(token, FunctionBlock):
            parts = (one for one in token.arguments if one.type not in ("whitespace", "comment"))
            yield token.lower_name, [one for one in parts if one != ","]


def _text_indent(style: Style) -> bool:
    size = _length(style, "text-indent", SCREEN_WIDTH) or 0.0
    is_out = size >= FAR and _word(style, "white-space") == "nowrap" and _clips(style)
    return size <= -100 or is_out


def _offset(style: Style) -> bool:
    position = _word(style, "position")
    is_moved = position in ("absolute", "fixed", "relative")
    for name in ("left", "top", "right", "bottom") if is_moved else ():
        whole = SCREEN_WIDTH if name in ("left", "right") else SCREEN_HEIGHT
        size = _length(style, name, whole)
        far = MANY_TIMES * whole if size and style[name][0].type == "percentage" else FAR
        if size is not None and (size <= -far or (position == "fixed" and size >= whole)):
            return True
    margins = (_length(style, name, SCREEN_WIDTH) for name in ("margin-left", "margin-top"))
    return any(size is not None and size <= -2 * FAR for size in margins)


def _size(style: Style) -> bool:
    if not _clips(style):
        return False
    for side in ("height", "width"):
        sizes = [_length(style, name, 100.0) for name in (side, f"max-{side}")]
        least = min((size for size in sizes if size is not None), default=LEAST_SIZE)
        names = [f"min-{side}", *(("padding-top", "padding-bottom") if side == "height" else ())]
        is_wider = any((_length(style, name) or 0.0) > LEAST_SIZE for name in names)
        if not is_wider and (least == 0 or (least < LEAST_SIZE and "overflow" in style)):
            return True
    return _length(style, "line-height") == 0 and "overflow" in style


def _clips(style: Style) -> bool:
    """Tell whether what is larger than the element is cut off."""
    return not words(style, "overflow").isdisjoint(("hidden", "clip", "auto", "scroll"))


def _clip(style: Style) -> bool:
    position = _word(style, "position")
    if position in ("absolute", "fixed"):
        for _, parts in _functions(style, "clip"):
            sides = [size for part in parts if (size := _pixels(part)) is not None]
            if len(sides) == 4 and min(sides[2] - sides[0], sides[1] - sides[3]) < LEAST_SIZE:
                return True
    return any(_is_empty(name, parts) for name, parts in _functions(style, "clip-path"))


def _is_empty(name: str, parts: Sequence[Node]) -> bool:
    """Tell whether a shape of `clip-path` has no inside."""
    sizes = [size for part in parts if (size := _pixels(part, 100.0)) is not None]
    match name:
        case "inset" if sizes and any(part.type == "percentage" for part in parts):
            top, right, bottom = (*sizes, *sizes, *sizes)[:3]
            left = sizes[3] if len(sizes) == 4 else right
            return top + bottom >= 99 or left + right >= 99
        case "circle" | "polygon":
            return len(set(sizes)) == 1
    return False


def _transform(style: Style) -> bool:
    functions = [*_functions(style, "transform")]
    functions += [(name, list(style[name])) for name in ("scale", "translate") if name in style]
    for name, parts in functions:
        sizes = [size for part in parts[:2] if (size := _pixels(part, 100.0)) is not None]
        is_flat = name.startswith("scale") and any(abs(size) < LEAST_SCALE for size in sizes)
        if is_flat or (name.startswith("translate") and any(size <= -2 * FAR for size in sizes)):
            return True
    return False


@lru_cache(maxsize=1024)
def colour(value: str) -> Colour | None:
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
    return colour(said[0].serialize())


def ground(style: Style) -> Colour | None:
    """The colour behind an element's text; clear for none, None for an unknown one."""
    said = style.get("background-color", ())
    tokens = (*said, *style.get("background-image", ()))
    if any(one.type in ("url", "function") and colour(one.serialize()) is None for one in tokens):
        return None
    if known := list(filter(None, (colour(token.serialize()) for token in said))):
        return known[-1]
    return (
        CLEAR
        if words(style, "background-color") <= {"none", "initial", "unset", "inherit"}
        else None
    )


def alike(text: Colour, behind: Colour) -> bool:
    """Tell whether text of this colour looks like the ground it stands on."""
    if text[3] <= FAINTEST:
        return True
    gaps = [(part - under) * text[3] for part, under in zip(text[:3], behind[:3], strict=True)]
    brightness = abs(0.299 * gaps[0] + 0.587 * gaps[1] + 0.114 * gaps[2])
    return behind[3] >= 0.9 and brightness <= _BRIGHTNESS and max(map(abs, gaps)) <= _CHANNEL


def _colour(style: Style) -> bool:
    text, behind = colour_of(style), ground(style)
    return text is not None and alike(text, behind or CLEAR)


_TESTS: Mapping[str, Callable[[Style], bool]] = {
    "display": lambda style: _word(style, "display") == "none",
    "visibility": lambda style: _word(style, "visibility") in ("hidden", "collapse"),
    "content-visibility": lambda style: _word(style, "content-visibility") == "hidden",
    "opacity": lambda style: _is_within(_length(style, "opacity", 1.0), -99, FAINTEST),
    "font-size": lambda style: _is_within(_length(style, "font-size", 16.0), 0, 1.999),
    "text-indent": _text_indent,
    "offset": _offset,
    "size": _size,
    "clip": _clip,
    "transform": _transform,
    "colour": _colour,
}
# Properties of which an axis needs one to hide, where it is not called as the axis.
_OTHERS = {
    "offset": "left top right bottom margin-left margin-top",
    "size": "height width max-height max-width line-height",
    "clip": "clip clip-path",
    "transform": "transform scale translate",
    "colour": "color fill background-color",
}
_NEEDED = {axis: frozenset(_OTHERS.get(axis, axis).split()) for axis in _TESTS}
