"""Colours of text and ground, as far as it matters whether they can be told apart.

Spec: https://www.w3.org/TR/css-color-4/
"""

from __future__ import annotations

import colorsys
import re
from functools import lru_cache

from search_backend.readers._declared import Declarations
from search_backend.readers._media import pixels

# Red, green, blue (0 to 255) and how opaque (0 to 1).
Colour = tuple[float, float, float, float]
WHITE: Colour = (255.0, 255.0, 255.0, 1.0)
# The names of HTML 4, and those that are nearly white. Others equal only themselves.
_NAMES = {
    "black": "000000",
    "silver": "c0c0c0",
    "gray": "808080",
    "grey": "808080",
    "white": "ffffff",
    "maroon": "800000",
    "red": "ff0000",
    "purple": "800080",
    "fuchsia": "ff00ff",
    "magenta": "ff00ff",
    "green": "008000",
    "lime": "00ff00",
    "olive": "808000",
    "yellow": "ffff00",
    "navy": "000080",
    "blue": "0000ff",
    "teal": "008080",
    "aqua": "00ffff",
    "cyan": "00ffff",
    "canvas": "ffffff",
    "canvastext": "000000",
    "snow": "fffafa",
    "ivory": "fffff0",
    "ghostwhite": "f8f8ff",
    "floralwhite": "fffaf0",
    "mintcream": "f5fffa",
    "azure": "f0ffff",
    "orange": "ffa500",
    "aliceblue": "f0f8ff",
    "honeydew": "f0fff0",
    "seashell": "fff5ee",
    "darkblue": "00008b",
    "whitesmoke": "f5f5f5",
    "lavenderblush": "fff0f5",
    "midnightblue": "191970",
    "oldlace": "fdf5e6",
    "linen": "faf0e6",
    "beige": "f5f5dc",
    "darkgray": "a9a9a9",
    "lightgray": "d3d3d3",
    "lightgrey": "d3d3d3",
    "dimgray": "696969",
    "gainsboro": "dcdcdc",
    "lightyellow": "ffffe0",
    "cornsilk": "fff8dc",
    "darkred": "8b0000",
    "darkgreen": "006400",
}
_HEX = re.compile(r"#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_CALL = re.compile(r"(rgb|rgba|hsl|hsla)\(([^()]*)\)")
_SEPARATOR = re.compile(r"[\s,/]+")
# Nobody tells apart what differs by less, in brightness and in any one of the three.
_BRIGHTNESS, _CHANNEL = 10.0, 24.0
_FAINTEST = 0.02


@lru_cache(maxsize=1024)
def colour(text: str) -> Colour | None:
    """The colour of a CSS value in lower case; None for what is none that is known."""
    if text == "transparent":
        return (0.0, 0.0, 0.0, 0.0)
    if found := _CALL.fullmatch(text):
        return _called(found[1], [part for part in _SEPARATOR.split(found[2].strip()) if part])
    if (found := _HEX.fullmatch(_NAMES.get(text, text))) is None:
        return None
    digits = found[1]
    if len(digits) < 6:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue, opaque = (int(f"{digits}ff"[at : at + 2], 16) for at in (0, 2, 4, 6))
    return (red, green, blue, opaque / 255)


def _called(name: str, parts: list[str]) -> Colour | None:
    if not 3 <= len(parts) <= 4:
        return None
    opaque = pixels(parts[3], 1.0) if len(parts) == 4 else 1.0
    if name.startswith("rgb"):
        values = [pixels(part, 255.0) for part in parts[:3]]
    else:
        shares = [pixels(part, 1.0) for part in parts[1:3]]
        turn = pixels(parts[0].removesuffix("deg"))
        if turn is None or shares[0] is None or shares[1] is None:
            return None
        light, full = min(shares[1], 1.0), min(shares[0], 1.0)
        values = [255 * part for part in colorsys.hls_to_rgb(turn % 360 / 360, light, full)]
    red, green, blue = values
    if red is None or green is None or blue is None or opaque is None:
        return None
    return (red, green, blue, opaque)


def is_clear(text: Colour) -> bool:
    """Whether text of this colour is not there."""
    return text[3] <= _FAINTEST


def alike(text: Colour, ground: Colour) -> bool:
    """Whether text of this colour cannot be told from the ground it stands on."""
    if ground[3] < 0.9:
        return False
    shown = [
        part * text[3] + under * (1 - text[3]) for part, under in zip(text, ground, strict=True)
    ]
    gaps = [part - under for part, under in zip(shown[:3], ground[:3], strict=True)]
    brightness = abs(0.299 * gaps[0] + 0.587 * gaps[1] + 0.114 * gaps[2])
    return brightness <= _BRIGHTNESS and max(map(abs, gaps)) <= _CHANNEL


def ground(value: str) -> Colour | None:
    """The colour of a `background`; None for a picture, or what cannot be told. Clear for none."""
    if "(" in value and ("url(" in value or "gradient(" in value or "image" in value):
        return None
    words = re.findall(r"[a-z-]+\([^()]*\)|[^\s()]+", value)
    found = [known for word in words if (known := colour(word)) is not None]
    if found:
        return found[-1]
    return (0.0, 0.0, 0.0, 0.0) if set(words) <= {"none", "initial", "unset", "inherit"} else None


def clear_text(style: Declarations) -> frozenset[str]:
    """The axis `colour`, when these declarations alone make text invisible."""
    if paints_text(style):
        return frozenset()
    if style.get("background-color") == "currentcolor":
        return frozenset({"colour"})
    if (text := colour_of(style)) is None:
        return frozenset()
    said = style.get("background-color") or style.get("background") or "none"
    behind = ground(said)
    pictured = behind is None or "(" in style.get("background-image", "")
    unseen = is_clear(text) or (not pictured and behind is not None and alike(text, behind))
    return frozenset({"colour"}) if unseen else frozenset()


def colour_of(style: Declarations) -> Colour | None:
    """The colour of text with these declarations."""
    return colour(style.get("-webkit-text-fill-color") or style.get("color", ""))


def paints_text(style: Declarations) -> bool:
    """Whether something else than its colour shows the text: a shadow, or its background."""
    clip = style.get("background-clip", "") + style.get("-webkit-background-clip", "")
    return "text" in clip or style.get("text-shadow", "none") != "none"
