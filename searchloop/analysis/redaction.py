"""Takes known secrets out of a text: whole, cut anywhere, reversed, and in common encodings.

Eight characters in a row are a piece of the secret; a shorter one could be any word. What decodes
to such a piece from base64 (at any offset), hexadecimal digits, percent encoding or the escapes of
JSON and HTML, also one inside the other and backwards, goes as a whole.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

LEAST = 8
_DEPTH = 2  # nested encodings
_BEHIND = re.compile(r"[\w.~+/=-]*")
# What may be encoded: letters of base64 and of hexadecimal digits with signs between, or %XX.
_HEX = re.compile(r"(?:(?:\\x|0x|%)?[0-9a-fA-F]{2}[\s:,-]?){8,}")
_ESCAPED = re.compile(r"(?:(?<!\\)\\+u[0-9a-fA-F]{4}|&#(?:\d{2,5}|x[0-9a-fA-F]{2,5});|[\w.~-]){8,}")
_ESCAPE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_CODED = re.compile(r"[\w+/=%.~-]{11,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_NO_DIGIT = re.compile(r"\\x|0x|[^0-9a-fA-F]")


def redacted(text: str, secrets: Iterable[str], instead: str = "[secret]") -> str:
    """Returns the text with `instead` for each piece of a secret."""
    known = _pieces(frozenset(secrets))
    if not known:
        return text
    text = _plain(text, known, instead)
    for coded in (_HEX, _CODED, _ESCAPED):
        text = coded.sub(lambda found: instead if _holds(found[0], known) else found[0], text)
    return text


@lru_cache(maxsize=32)
def _pieces(secrets: frozenset[str]) -> frozenset[str]:
    folded = [secret.casefold() for secret in secrets if len(secret) >= LEAST]
    both = [*folded, *(secret[::-1] for secret in folded)]
    return frozenset(one[at : at + LEAST] for one in both for at in range(len(one) - LEAST + 1))


def _plain(text: str, known: frozenset[str], instead: str) -> str:
    low = text.casefold()
    if len(low) != len(text):  # folding is for keys, which are no such letters
        low = text
    parts: list[str] = []
    done = 0
    for at in [at for at in range(len(low) - LEAST + 1) if low[at : at + LEAST] in known]:
        if at >= done:
            parts += (text[done:at], instead)
            done = at
        done = max(done, at + LEAST)
        found = _BEHIND.match(text, done)
        done = found.end() if found else done
    return "".join((*parts, text[done:])) if parts else text


def _holds(token: str, known: frozenset[str]) -> bool:
    """Tells whether a token decodes to a piece of a secret."""
    forms = {token, token[::-1]}
    for _ in range(_DEPTH):
        forms |= {new for form in forms for new in _decoded(form)}
    return any(
        form[at : at + LEAST] in known
        for form in map(str.casefold, forms)
        for at in range(len(form) - LEAST + 1)
    )


def _decoded(text: str) -> Iterator[str]:
    if "&#" in text or "\\u" in text:
        yield html.unescape(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text))
    if "%" in text:
        yield unquote(text, errors="replace")
    for run in _HEX.findall(text):
        digits = _NO_DIGIT.sub("", run)
        for start in (0, 1):  # another digit may stand before
            yield bytes.fromhex(digits[start : len(digits) - (len(digits) - start) % 2]).decode(
                "latin-1"
            )
    for run in _BASE64.findall(text):
        plain = run.translate({ord("-"): "+", ord("_"): "/"})
        for piece in (plain[start:] for start in range(4)):  # letters of a path may stand before
            whole = piece[: len(piece) - (len(piece) % 4 == 1)]
            try:
                yield base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")
            except binascii.Error:
                continue
