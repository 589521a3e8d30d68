"""Host names to the one ASCII form that the resolver, TLS and the domain rules are given.

UTS #46 decides what a character means; on top of it, characters that only look like ASCII or cannot
be seen are refused instead of mapped away, because that mapping is where two programs come to
different hosts (fullwidth dots and slashes, circled digits, soft hyphens).

Spec: https://www.unicode.org/reports/tr46 (non-transitional; CheckHyphens, CheckBidi, CheckJoiners)
"""

from __future__ import annotations

import re
import unicodedata

# The underscore is no part of a host name by the book, yet public hosts use it.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PLAIN = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*\.?", re.IGNORECASE | re.ASCII)
_DOTS = frozenset("\u3002\uff0e\uff61")
_JOINERS = "\u200c\u200d"
# What UTS #46 was changed to read otherwise, most of them in revision 33 (2024): programs of today
# come to two hosts (the capital sharp s: "ss" or sharp s), or to one and none.
_UNSETTLED = re.compile(
    "[\u04c0\u10a0-\u10c5\u1806\u1e9e\u2132\u2183"
    "\U0002f868\U0002f874\U0002f91f\U0002f95f\U0002f9bf]"
)


def to_ascii(host: str) -> str | None:
    """The A-label form of a name, lower case, without one trailing dot; None if it is no name.

    "Bücher.example." -> "xn--bcher-kva.example". An address in dotted form passes as a name.
    """
    if len(host) > 254:
        return None
    if _PLAIN.fullmatch(host) and "xn--" not in (lower := host.lower()):
        name = lower.removesuffix(".")  # what nearly every result is, in a tenth of the time
        return name if len(name) <= 253 else None
    if any(_pretends(char) for char in host):
        return None
    labels = host.removesuffix(".").split(".")
    converted = [_label(label) for label in labels]
    if None in converted:
        return None
    name = ".".join(label for label in converted if label)
    return name if len(name) <= 253 else None


def _pretends(char: str) -> bool:
    """Whether a character stands for ASCII without being ASCII, or separates labels unseen."""
    if char.isascii():
        return False
    return char in _DOTS or any(c.isascii() for c in unicodedata.normalize("NFKC", char))


def _label(label: str) -> str | None:
    lower = label.lower() if label.isascii() else label
    if lower.isascii() and not lower.startswith("xn--"):
        return lower if _LABEL.fullmatch(lower) else None
    if not lower.isascii():
        return _encode(lower)
    try:
        decoded = lower[4:].encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError):
        return None
    # Only what encodes back to itself: an A-label made by hand may decode to anything.
    return lower if not decoded.isascii() and _encode(decoded) == lower else None


def _encode(label: str) -> str | None:
    """The A-label of one label with non-ASCII characters, None where UTS #46 has none."""
    # 9 ms and 2 MB that most hosts do not need.
    from idna import core

    if len(label) > 63 or _UNSETTLED.search(label) or any(_pretends(char) for char in label):
        return None
    try:
        if not all(core.uts46_remap(char) for char in label):
            return None  # characters that cannot be seen and would be dropped
        mapped = core.uts46_remap(label)
        core.check_hyphen_ok(mapped)
        core.check_initial_combiner(mapped)
        core.check_bidi(mapped)
        joined = [core.valid_contextj(mapped, at) for at, c in enumerate(mapped) if c in _JOINERS]
    except (core.IDNAError, ValueError):
        return None
    if not all(joined):
        return None
    encoded = "xn--" + mapped.encode("punycode").decode("ascii")
    return encoded if len(encoded) <= 63 else None
