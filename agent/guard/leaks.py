"""Finds known secrets and vendors' keys in a text, and in what it decodes to, three deep."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from urllib.parse import unquote, unquote_plus

from searchloop.analysis.characters import INVISIBLE

_LEAST = 8  # characters; a shorter secret looks like a word
_RUN = 12  # characters of it in a row that count as the secret
_DEPTH = 3  # nested encodings
_LONG = 200_000  # characters; a longer text is not decoded
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:%x\\,-]{0,2}){6,}")
_NOT_WORD = re.compile(r"[\W_]+")
KEY_SHAPES = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[\w-]{10,900}\.eyJ[\w-]{10}|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
    r"|tvly-[\w-]{10,}|npm_\w{20,}"
)
_DENSE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")


def squeezed(text: str) -> str:
    """Returns letters and digits only, in lower case: spacing and punctuation hide nothing."""
    return _NOT_WORD.sub("", text).casefold()


def forms(text: str) -> set[str]:
    """Returns the text and everything that decodes out of it."""
    start = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if len(text) > _LONG:
        return {start, unquote_plus(start)}
    found, fresh = {start}, {start}
    for _ in range(_DEPTH):
        fresh = {new for form in fresh for new in _decoded(form)} - found
        found |= fresh
        if sum(map(len, found)) > 20 * _LONG:
            break
    return found | {form[::-1] for form in found}


def _decoded(text: str) -> Iterator[str]:
    yield from (unquote_plus(text), text[::-1])
    runs = [bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", run)) for run in _HEX.findall(text)]
    for token in _BASE64.findall(text):
        plain = token.translate({ord("-"): "+", ord("_"): "/"})
        for piece in (plain[start:] for start in range(4)):  # letters of a path may stand before
            whole = piece[: len(piece) - (len(piece) % 4 == 1)]
            try:
                runs.append(base64.b64decode(whole + "=" * (-len(whole) % 4)))
            except binascii.Error:
                continue
    for text in (run.decode("latin-1") for run in runs):
        if sum(map(str.isprintable, text)) * 4 >= len(text) * 3:  # a secret between other bytes
            yield text


class Secrets:
    """Texts that must not leave; `known` maps their names to them."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._runs: dict[str, str] = {}
        for name, value in known.items():
            plain = squeezed(value)
            if len(plain) >= _LEAST:
                self._runs |= dict.fromkeys(_pieces(plain, min(len(plain), _RUN)), name)
        self._sizes = {len(run) for run in self._runs}

    def found_in(self, texts: Iterable[str]) -> str | None:
        """Returns the name of a secret that occurs in one of these texts, or None."""
        plain = [squeezed(text) for text in texts if self._runs]
        pieces = (piece for text in plain for size in self._sizes for piece in _pieces(text, size))
        return next((self._runs[piece] for piece in pieces if piece in self._runs), None)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(len(text) - size + 1))


def suspicious(text: str) -> list[str]:
    """Returns keys of known shapes, and random-looking strings of letters and digits."""
    found = {match[0] for form in forms(text) for match in KEY_SHAPES.finditer(form)}
    return [*found, *(token for token in _DENSE.findall(unquote(text)) if _random(token))]


def _random(token: str) -> bool:
    """Returns whether letters and digits, or cases, alternate as often as in random text."""
    kinds = [0 if ch.isdigit() else 1 + ch.isupper() for ch in token if ch.isalnum()]
    changes, digits = sum(a != b for a, b in pairwise(kinds)), kinds.count(0)
    often = digits == len(kinds) or changes > len(kinds) * (0.2 if digits >= 2 else 0.4)
    return len(kinds) >= 20 and often
