"""Clipping and moving: whether they leave nothing of an element to see.

Spec: https://www.w3.org/TR/css-masking-1/, https://www.w3.org/TR/css-transforms-1/
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from search_backend.readers._media import pixels, share

FUNCTION = re.compile(r"([a-z0-9]+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?")
# Smaller or further away than this nobody reads; in CSS pixels, and as a factor.
LEAST_SIZE, FAR, LEAST_SCALE = 2.0, 500.0, 0.05

Style = Mapping[str, str]


def as_share(text: str) -> float:
    """A number or a percentage; 1 for what is neither."""
    size = share(text)
    return 1.0 if size is None else size


def side_of(value: str, side: str) -> str:
    """One side of a value for up to four."""
    parts = value.split()
    if not parts or len(parts) > 4:
        return ""
    at = {"top": 0, "right": 1, "bottom": 2, "left": 3}[side]
    return parts[at] if at < len(parts) else parts[at - 2] if at - 2 < len(parts) else parts[0]


def clips_away(style: Style, unknown: bool) -> bool:
    position = style.get("position", "")
    if position in ("absolute", "fixed") or (unknown and not position):
        found = FUNCTION.match(style.get("clip", ""))
        if found and found[1] == "rect":
            sides = [pixels(part) for part in re.split(r"[\s,]+", found[2].strip())]
            if len(sides) == 4 and None not in sides:
                top, right, bottom, left = (side or 0.0 for side in sides)
                if bottom - top < LEAST_SIZE or right - left < LEAST_SIZE:
                    return True
    path = style.get("clip-path", style.get("-webkit-clip-path", ""))
    found = FUNCTION.match(path)
    return found is not None and _empty_shape(found[1], found[2])


def _empty_shape(name: str, inside: str) -> bool:
    inside = inside.partition(" round ")[0]
    first = inside.partition(" at ")[0].split()
    match name:
        case "inset":
            sides = [pixels(side_of(inside, side), 100.0) for side in ("top", "bottom")]
            across = [pixels(side_of(inside, side), 100.0) for side in ("left", "right")]
            share = "%" in inside
            return share and any(
                None not in pair and sum(s or 0.0 for s in pair) >= 99 for pair in (sides, across)
            )
        case "circle" | "ellipse":
            return any((size := pixels(part, 100.0)) is not None and size < 0.5 for part in first)
        case "rect" | "xywh":
            sizes = [pixels(part, 100.0) for part in first]
            ends = sizes[2:] if name == "xywh" else [sizes[i] for i in (1, 2) if i < len(sizes)]
            return any(size is not None and size < 0.5 for size in ends)
        case "polygon":
            points = [
                tuple(pixels(part, 100.0) or 0.0 for part in point.split()[-2:])
                for point in inside.split(",")
                if point.strip()
            ]
            return len({point[0] for point in points if point}) == 1 or (
                len({point[-1] for point in points if point}) == 1
            )
    return False


def transforms_away(style: Style, unknown: bool) -> bool:
    scale = [as_share(part) for part in style.get("scale", "").split()[:2]]
    if any(abs(size) < LEAST_SCALE for size in scale):
        return True
    moved = [pixels(part, 100.0) for part in style.get("translate", "").split()[:2]]
    if any(size is not None and size <= -2 * FAR for size in moved):
        return True
    value = style.get("transform", style.get("-webkit-transform", ""))
    return any(_flattens(name, inside) for name, inside in FUNCTION.findall(value))


def _flattens(name: str, inside: str) -> bool:
    """Whether a function of `transform` leaves nothing to see where anybody looks."""
    parts = [part.strip() for part in inside.split(",")]
    if name.startswith("scale"):
        return any(abs(as_share(part)) < LEAST_SCALE for part in parts[:2])
    if name.startswith("translate"):
        shown = parts[:1] if name in ("translatex", "translatey") else parts[:2]
        return any((size := pixels(part, 100.0)) is not None and size <= -2 * FAR for part in shown)
    if name == "matrix" and len(parts) == 6 and all(map(_NUMBER.fullmatch, parts)):
        a, b, c, d = (float(part) for part in parts[:4])
        return abs(a * d - b * c) < LEAST_SCALE**2
    if name in ("rotatex", "rotatey") and (turn := re.fullmatch(r"(-?[0-9.]+)deg", inside)):
        return abs(math.cos(math.radians(float(turn[1])))) < LEAST_SCALE
    return False
