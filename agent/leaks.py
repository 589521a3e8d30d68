"""Whether a text that is about to leave holds something that must not leave.

A secret can be dressed: base64, hex, percent signs, backwards, rot13, spaced out, one in another.
So a text is looked at in every form that it can be undressed to, and a secret counts as found when
twelve of its characters stand there in a row. What nobody told us is a secret may still look like
one: long strings without the rhythm of a language, and the known shapes of keys.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from urllib.parse import unquote_plus

from agent.neutral import INVISIBLE

# Names under which people keep what must not leave.
SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE", re.IGNORECASE
)
_LEAST = 8  # characters of a secret that can be told from a word
_RUN = 12  # characters of it in a row that count as the secret
_DEPTH = 3  # how many dresses one over the other
_LONG = 200_000  # characters that are undressed; a longer text is looked at as it is
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,6}")
_BASE32 = re.compile(r"[A-Z2-7]+")
_SPARE = (0, 1, 0, 1, 0, 0, 1, 0)  # letters at the end that make no byte, by length
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:%x\\,-]{0,2}){6,}")
_NOT_WORD = re.compile(r"[\W_]+")
_SHAPES = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[\w-]{10,900}\.eyJ[\w-]{10}|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
    r"|tvly-[\w-]{10,}|npm_\w{20,}"
)
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_DENSE = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_SPELLED = re.compile(
    r"(?<![^\W_])(?:[^\W_]{1,4}[\W_]{1,3}){8,}[^\W_]{1,4}(?![^\W_])"
)  # letter by letter, in small groups
# For each letter those that often follow it in English, German and their neighbours.
_ROWS = (
    "aabcdeghilmnprstuvx babeijlru caehiklotuy ddeioru eacdefhilmnopqrstuvxy fefilorstu "
    "geghilrsuy haeilmnort iabcdefglmnorstuvx jaeu kaelorstu ladeilostuy mabeimopsuy "
    "nacdegiknostuy oabcdehlmnoprstuvwx paefiloprtuy qu racdegikmnorstyz sacehiopstuy "
    "taehiorstuyz uabcefghilmnprst vaeiou waehiou xcip yelmop zaeiuw"
)
_FOLLOWS = {row[0]: row[1:] for row in _ROWS.split(" ")}


def squeezed(text: str) -> str:
    """Letters and digits only, in one case: spacing and punctuation hide nothing."""
    return _NOT_WORD.sub("", text).casefold()


def forms(text: str, depth: int = _DEPTH) -> set[str]:
    """The text, and whatever can be decoded out of it; each form once."""
    start = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    found, fresh = {start}, {start}
    if len(text) > _LONG:
        return {start, unquote_plus(start)}
    for _ in range(depth):
        fresh = {new for form in fresh for new in _undressed(form)} - found
        found |= fresh
        if not fresh or sum(map(len, found)) > 20 * _LONG:
            break
    return found | {form[::-1] for form in found}


def _undressed(text: str) -> Iterator[str]:
    yield unquote_plus(text)
    yield text[::-1]
    yield codecs.encode(text, "rot13")
    for token in _TOKEN.findall(text):
        yield from _decoded(token)
    together = re.sub(r"\s+", "", text)
    if together != text and len(together) < 4_000:
        yield from _decoded(together)
    for run in _HEX.findall(text):
        yield from _text(bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", run)))


def _decoded(token: str) -> Iterator[str]:
    plain = token.replace("-", "+").replace("_", "/").rstrip("=")
    for start in range(4):
        piece = plain[start:]
        piece = piece[: len(piece) - (len(piece) % 4 == 1)]
        try:
            yield from _text(base64.b64decode(piece + "=" * (-len(piece) % 4)))
        except (binascii.Error, ValueError):
            continue
    upper = token.upper().rstrip("=")
    if not _BASE32.fullmatch(upper):
        return
    for start in range(8):
        piece = upper[start:]
        piece = piece[: len(piece) - _SPARE[len(piece) % 8]]
        yield from _text(base64.b32decode(piece + "=" * (-len(piece) % 8)))


def _text(data: bytes) -> Iterator[str]:
    """Bytes as text, where most of them are: a secret may stand between other bytes."""
    text = data.decode("latin-1")
    if sum(ch.isprintable() for ch in text) * 4 >= len(text) * 3:
        yield text


class Secrets:
    """Texts that must not leave, by name."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._runs: dict[str, str] = {}
        for name, value in known.items():
            plain = squeezed(value)
            if len(plain) >= _LEAST:
                size = min(len(plain), _RUN)
                for i in range(len(plain) - size + 1):
                    self._runs[plain[i : i + size]] = name
        self._sizes = sorted({len(run) for run in self._runs})

    def __bool__(self) -> bool:
        return bool(self._runs)

    def found_in(self, texts: Iterable[str]) -> str | None:
        """The name of a secret that stands in one of these forms of a text."""
        if not self._runs:
            return None
        for text in texts:
            plain = squeezed(text)
            for size in self._sizes:
                for i in range(len(plain) - size + 1):
                    name = self._runs.get(plain[i : i + size])
                    if name:
                        return name
        return None


def suspicious(text: str) -> list[str]:
    """Strings in the text that look like keys, ids or encoded data rather than like words."""
    text = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    spelled = _SPELLED.findall(text)
    text = " ".join([text, unquote_plus(text), *(_NOT_WORD.sub("", run) for run in spelled)])
    found = [match[0] for match in _SHAPES.finditer(text)]
    found += [match[0] for match in _UUID.finditer(text)]
    found += [token for token in _DENSE.findall(text) if _random(token)]
    return found


def is_key_shaped(text: str) -> bool:
    """Whether it has the form in which some vendor gives out keys."""
    return _SHAPES.search(text) is not None


def _random(token: str) -> bool:
    bare = re.sub(r"[^A-Za-z0-9]", "", token)
    if len(bare) < 16:
        return False
    digits = sum(ch.isdigit() for ch in bare)
    if digits == len(bare):
        return digits >= 20
    if re.fullmatch(r"[0-9a-fA-F]+", bare):
        return len(bare) >= 20 and digits >= 3
    words = re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", token)
    if sum(len(word) for word in words if _is_worded(word.lower())) * 2 >= len(bare):
        return False
    return len(bare) >= 18 and _entropy(bare) >= 3.3


def _is_worded(word: str) -> bool:
    """Whether most letters are followed by one that usually follows them."""
    usual = sum(b in _FOLLOWS.get(a, "") for a, b in pairwise(word))
    return usual >= 0.68 * (len(word) - 1)


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
