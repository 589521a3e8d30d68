"""Lengths in pixels and queries about the screen: a wide one with a mouse, light, in landscape.

Spec: https://www.w3.org/TR/css-values-4/, https://www.w3.org/TR/mediaqueries-4/
"""

from __future__ import annotations

import re
from functools import lru_cache

# The screen that pages are made for, in CSS pixels.
WIDTH, HEIGHT = 1280.0, 800.0
LONGEST_QUERY = 300
_FEATURE = re.compile(r"\(\s*([a-z-]+)\s*(?:(:|[<>]=?|=)\s*([^()<>]+?)\s*)?\)")
_LENGTH = re.compile(r"([+-]?(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++)(?:e[+-]?[0-9]{1,3})?)([a-z%]*)")
_ASKED = re.compile(r"\(\s*([a-z-]+)\s*:")
# What sheets ask for.
_USED = frozenset(
    re.split(
        " ",
        "align-items all animation animation-timeline appearance aspect-ratio backdrop-filter"
        " background background-clip background-image block-size border-radius bottom break-inside"
        " clip-path color column-count contain container-type content content-visibility display"
        " filter flex flex-wrap float font-family font-size font-variation-settings gap grid"
        " grid-area grid-template-areas grid-template-columns grid-template-rows height"
        " hyphens inline-size inset justify-content left line-clamp margin margin-inline-start"
        " mask mask-image max-height max-width min-height min-width mix-blend-mode object-fit"
        " opacity overflow overflow-wrap overscroll-behavior padding padding-bottom position"
        " resize right rotate scale scroll-behavior scroll-snap-type scrollbar-gutter shape-outside"
        " text-decoration text-wrap top touch-action transform transform-style transition translate"
        " user-select vertical-align visibility white-space width will-change word-break"
        " writing-mode z-index",
    )
)
# In CSS pixels, seen from text of the usual size on the usual screen.
_UNITS = {
    "px": 1.0,
    "": 1.0,
    "em": 16.0,
    "rem": 16.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "in": 96.0,
    "cm": 37.8,
    "mm": 3.78,
    "q": 0.945,
    "ch": 8.0,
    "ex": 8.0,
    "lh": 19.0,
    "rlh": 19.0,
    "vw": WIDTH / 100,
    "vh": HEIGHT / 100,
    "vmin": HEIGHT / 100,
    "vmax": WIDTH / 100,
    "vi": WIDTH / 100,
    "vb": HEIGHT / 100,
    "dvh": HEIGHT / 100,
    "svh": HEIGHT / 100,
}


@lru_cache(maxsize=256)
def holds_on_screen(media: str) -> bool:
    """Whether a list of media queries holds on a wide screen."""
    if len(media) > LONGEST_QUERY:
        return False
    return not media.strip() or any(map(_query_holds, media.lower().split(",")))


@lru_cache(maxsize=256)
def is_supported(condition: str) -> bool:
    """Whether a browser of today has what `@supports` asks for: all that pages use, and nothing
    that is not a property at all."""
    if len(condition) > LONGEST_QUERY:
        return False
    known = all(
        name.startswith(("--", "-webkit-", "-moz-", "-ms-")) or name in _USED
        for name in _ASKED.findall(condition)
    )
    return known != condition.startswith("not ")


def _query_holds(query: str) -> bool:
    query = query.strip()
    negated = query.startswith("not ")
    words = set(_FEATURE.sub(" ", query).replace("(", " ").replace(")", " ").split())
    kinds = words - {"not", "only", "and", "or", "screen", "all"}
    holds = not kinds and all(_feature_holds(*f) for f in _FEATURE.findall(query))
    return holds != negated


def _feature_holds(name: str, sign: str, value: str) -> bool:
    side = name.removeprefix("min-").removeprefix("max-")
    if side in ("width", "height"):
        own = WIDTH if side == "width" else HEIGHT
        size = pixels(value, own)
        if size is None:
            return not sign
        if name.startswith("min-") or sign[:1] == ">":
            return own >= size
        return own <= size if name.startswith("max-") or sign[:1] == "<" else own == size
    known = {
        "orientation": "landscape",
        "prefers-color-scheme": "light",
        "hover": "hover",
        "any-hover": "hover",
        "pointer": "fine",
        "any-pointer": "fine",
        "scripting": "enabled",
        "prefers-reduced-motion": "no-preference",
        "update": "fast",
    }
    return known.get(name) == value if value else name in ("color", "hover", "pointer")


def share(value: str) -> float | None:
    """A number, or a percentage as one; None for anything else."""
    value = value.strip()
    found = _LENGTH.fullmatch(value)
    if found is not None and found[2] not in ("", "%"):
        return None
    return pixels(value, 1.0)


def pixels(value: str, whole: float = 0.0) -> float | None:
    """A length in CSS pixels, a share as one of `whole`; None for what is no length."""
    value = value.strip()
    if value.startswith("calc(") and value.endswith(")"):
        return _calculated(value[5:-1], whole)
    found = _LENGTH.fullmatch(value)
    if found is None:
        return None
    size = float(found[1])
    if found[2] == "%":
        return size * whole / 100
    return size * _UNITS[found[2]] if found[2] in _UNITS else None


def _calculated(sum_: str, whole: float) -> float | None:
    """Of the sums that pages write: one length, or two with a sign between."""
    sign = re.search(r"(?<=[\w%)]) *([*/]) *(?=[\w.(+-])|(?<=[\w%)]) ([+-]) (?=[\w.(+-])", sum_)
    if sign is None:
        return pixels(sum_, whole)
    left, right = pixels(sum_[: sign.start()], whole), pixels(sum_[sign.end() :], whole)
    if left is None or right is None:
        return None
    match sign[1] or sign[2]:
        case "*":
            return left * right
        case "/":
            return left / right if right else None
        case "+":
            return left + right
    return left - right
