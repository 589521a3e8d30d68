"""Signs of declarations that may hide, so that all the others need not be taken apart.

Spec: https://www.w3.org/TR/CSS/
"""

from __future__ import annotations

import re

_ZERO = r"[+-]?0*(?:0(?!\.?\d)|\.0)"
_SMALL = rf"(?:{_ZERO}|[+-]?0?\.(?:[01]|\d*p)|1(?:\.\d*)?(?:p[xt]|q|%)|calc|min|clamp)"
_AWAY = r"[^;{}]*?(?:-\d{3}|-[\d.]+(?:r?em|v[wh]|%|[cm]m|in)|calc|var)"
_GONE = r"[^;{}]*?(?:[(,]\s{0,9}-?[.0]|-\d{3}|rotate[xy]|matrix)"
_CLEAR = (
    r"(?:transparent|currentcolor|var|[a-z]++\([^();{}]*[,/]\s*0?\.?0*%?\s*\)"
    r"|\#(?:[0-9a-f]{3}0|[0-9a-f]{6}0[0-4])(?![0-9a-f]))"
)
# What may hide, at the beginning of a declaration, in lower case. Most blocks have none and are not
# taken apart.
_SIGN = re.compile(
    rf"""[;{{]\s*+(?:
    display\s*:\s*(?:none|var)
    |visibility\s*:\s*(?:hidden|collapse|var)
    |content-visibility\s*:\s*(?:hidden|var)
    |opacity\s*:\s*(?:{_ZERO}|-|\d{{0,9}}\.?\d{{0,9}}e|calc|var|[01]%)
    |f(?:ilter\s*:[^;{{}}]*opacity\(|ont(?:-size\s*:\s*|\s*:\s*(?:[a-z-]++\s++)*+){_SMALL})
    |m(?:ax-(?:height|width|block-size|inline-size)\s*:\s*{_SMALL}|argin[a-z-]*+\s*:{_AWAY})
    |height\s*:\s*{_SMALL}
    |width\s*:\s*{_SMALL}
    |l(?:ine-height\s*:\s*{_ZERO}|eft\s*:(?:{_AWAY}|\s*\d{{3}}(?:v[wh]|%)))
    |t(?:ext-indent\s*:\s*(?:-|\d{{3}}|calc|var)|op\s*:(?:{_AWAY}|\s*\d{{3}}(?:v[wh]|%))
        |rans(?:form\s*:{_GONE}|late\s*:[^;{{}}]*?-\d{{3}}))
    |right\s*:{_AWAY}
    |b(?:ottom\s*:{_AWAY}|lock-size\s*:\s*{_SMALL}|ackground-color\s*:\s*currentcolor)
    |in(?:set[a-z-]*+\s*:(?:{_AWAY}|\s*\d{{3}}(?:v[wh]|%))|line-size\s*:\s*{_SMALL})
    |c(?:lip(?:-path)?\s*:\s*(?!auto|none|unset|inherit)|ontain\s*:|olor\s*:\s*{_CLEAR})
    |-webkit-(?:clip-path\s*:|filter\s*:[^;{{}}]*opacity\(|transform\s*:{_GONE}
        |text-fill-color\s*:\s*{_CLEAR})
    |scale\s*:\s*[0.]
    |zoom\s*:\s*[0.]
    )""",
    re.VERBOSE,
)
# Where pages keep a value for all that speak of it, the value is seen where it is put in.
_BY_NAME = re.compile(
    r"[;{]\s*+(?:font-size|font|(?:max-)?(?:height|width)|transform|scale)\s*:[^;{}]*?var\("
)
_TINY = re.compile(rf"--[\w-]+\s*:\s*(?:{_ZERO}|[01](?:\.\d*)?px)")


def clear_signs(text: str) -> list[int]:
    """Of `signs`, those that can be told from the declaration itself."""
    return [match.start() for match in _SIGN.finditer(text)]


def signs(text: str) -> list[int]:
    """Where declarations begin, behind the mark before them, that may hide; `text` in lower case,
    with a mark before each."""
    found = clear_signs(text)
    if "var(" in text and _TINY.search(text):
        found += [match.start() for match in _BY_NAME.finditer(text)]
    return found


def may_hide(style: str) -> bool:
    """Whether an inline style is worth being taken apart."""
    low = ";" + style.lower()
    if "\\" in low or "/*" in low or ("color" in low and "background" in low):
        return True
    return _SIGN.search(low) is not None or ("var(" in low and _BY_NAME.search(low) is not None)
