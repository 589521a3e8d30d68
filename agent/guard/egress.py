"""Egress checks: compares each outgoing call (network, MCP) with what this session has read.

Our own keys never leave. The user decides about new addresses, private text, secret-looking
strings, and any call once private and untrusted text are both in context.
"""

from __future__ import annotations

import base64
import re
import string
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from html import unescape
from itertools import accumulate, pairwise
from threading import Lock
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, unquote_plus

from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.types import Message
from searchloop.analysis.characters import INVISIBLE

_LEAST = 8  # characters; a shorter secret looks like a word
_PIECE = 12  # characters of it in a row that count as the secret
_DEPTH = 3  # nested encodings
_LONG = 50_000  # characters; a longer text is not decoded
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/_=-]+")
_BASE32 = re.compile(r"[0-9a-v]{18,}")
_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")
_HEX_WORD = re.compile(r"(?<![0-9a-zA-Z])[0-9a-fA-F]{2,}(?![0-9a-zA-Z])")
_UNSEEN = bytes({*range(256)} - {*range(32, 127)})
_ABC = string.ascii_letters
_TURNED = [
    str.maketrans(_ABC, _ABC[n:26] + _ABC[:n] + _ABC[26 + n :] + _ABC[26 : 26 + n])
    for n in range(1, 26)
] + [str.maketrans(_ABC, _ABC[25::-1] + _ABC[:25:-1])]
_HEX = re.compile(r"[0-9a-fA-F]{12,}")
_CODE = re.compile(r"(?:0x|\\?u00|[\\=%]|&#)?x?([0-9a-fA-F]{2,8})(?![0-9a-zA-Z])", re.IGNORECASE)
_ESCAPE = re.compile(r"\\[ux]([0-9a-fA-F]{2,4})")
_MARKUP = re.compile(r"<[^<>]{0,200}>")
_COUNTED = re.compile(r"(?<![^\W_])\d{1,3}(?![^\W_])")  # the numbers of a list
_NOT_WORD = re.compile(r"[\W_]+")
_ALIKE = str.maketrans("асеорхуіјѕһкмтвнαβεικνορτυχ", "aceopxyijshkmtbhabeikvoptux")
# Invisible signs that stand for others: tags, and variation selectors as bytes.
_HIDDEN = {
    **{0xE0000 + code: code for code in range(32, 127)},
    **{(0xFE00 if byte < 16 else 0xE00F0) + byte: byte for byte in range(256)},
}
KEY_SHAPES = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[\w-]{10,900}\.eyJ[\w-]{10}|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
    r"|tvly-[\w-]{10,}|npm_\w{20,}"
)
_DENSE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")


def _even(text: str) -> str:
    """Returns the text in lower case, without accents, ligatures and invisible characters, with
    the Latin letter for one that looks alike, and digits of any script as those of ours."""
    if not text.isascii():
        signs = INVISIBLE.sub("", unicodedata.normalize("NFKD", text))
        seen = (sign for sign in signs if unicodedata.category(sign)[0] != "M")
        text = "".join(str(unicodedata.digit(sign, sign)) for sign in seen)
    return text.casefold().translate(_ALIKE)


def squeezed(text: str) -> str:
    """Returns letters and digits only, in lower case: spacing and punctuation hide nothing."""
    return _NOT_WORD.sub("", _even(text))


def forms(text: str) -> set[str]:
    """Returns everything that known words can be compared with."""
    return turned(decoded(text))


def turned(texts: set[str]) -> set[str]:
    """Adds the texts with their letters moved on in the alphabet by each number, as in rot13, and
    counted from its end, as in atbash.
    """
    longest = sorted(texts, key=len, reverse=True)
    few = longest[: sum(size <= _LONG for size in accumulate(map(len, longest)))]
    return texts | {text.translate(turn) for text in few for turn in _TURNED}


def decoded(text: str) -> set[str]:
    """Returns the text and everything that decodes out of it."""
    start = INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_HIDDEN)))
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
    yield from (unquote_plus(text), unescape(text), text[::-1], _MARKUP.sub("", text))
    yield _COUNTED.sub("", text)
    yield _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)
    codes = _CODE.findall(text)
    yield from ("".join(map(chr, _numbers(codes, base))) for base in (2, 8, 10, 16))
    for run in (unpacked for coded in _coded(text) for unpacked in _unpacked(coded)):
        said = run.replace(b"\0", b"")
        if len(said.translate(None, _UNSEEN)) * 3 > len(said) * 2:  # perhaps between other bytes
            yield said.decode("latin-1")


def _coded(text: str) -> Iterator[bytes]:
    """Yields the bytes of base16, base32 and base64, also in pieces and behind other letters."""
    joined = _NOT_BASE64.sub("", text)
    tokens = {*_BASE64.findall(text), *_BASE64.findall(joined)}
    plain = (token.translate({ord("-"): "+", ord("_"): "/"}) for token in tokens)
    runs = {int.from_bytes(base64.b64decode(f"{t}{'A' * (-len(t) % 4)}")): 2 for t in plain}
    runs |= {int(t, 32): 1 for t in _BASE32.findall(joined.lower().translate(_DIGITS))}
    hexes = [*_HEX.findall(text), "".join(_HEX_WORD.findall(text))]
    runs |= {int(f"0{run}", 16): 4 for run in hexes}
    for number, step in runs.items():
        for moved in (number >> bits for bits in range(0, 8, step)):
            yield moved.to_bytes((moved.bit_length() + 7) // 8)


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yields the bytes and what they are when unzipped."""
    yield data
    for kind in (47, -15):  # gzip and zlib, bare deflate
        with suppress(zlib.error):
            yield zlib.decompressobj(kind).decompress(data, _LONG)


def _numbers(codes: Iterable[str], base: int) -> Iterator[int]:
    """Yields those that are the codes of visible ASCII in this base."""
    for code in codes:
        with suppress(ValueError):
            if 32 <= (number := int(code, base)) < 127:
                yield number


class Secrets:
    """Texts that must not leave: any piece of those `known` by name, and squeezed `runs`."""

    def __init__(self, known: Mapping[str, str], runs: Iterable[str] = ()) -> None:
        self._begun = defaultdict[str, list[tuple[str, str]]](list)
        for name, value in known.items():
            plain = squeezed(value)
            if len(plain) >= _LEAST:
                for piece in _pieces(plain, min(len(plain), _PIECE)):
                    self._begun[piece[:_LEAST]].append((piece, name))
        for run in runs:
            self._begun[run[:_LEAST]].append((run, run))

    def found_in(self, texts: Iterable[str]) -> str | None:
        """Returns the name of one that occurs in one of these texts, or None."""
        found = (
            name
            for text in (squeezed(text) for text in texts if self._begun)
            for start in range(len(text))
            for piece, name in self._begun.get(text[start : start + _LEAST], ())
            if text.startswith(piece, start)
        )
        return next(found, None)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(len(text) - size + 1))


def suspicious(text: str, texts: Iterable[str] | None = None) -> list[str]:
    """Returns keys of known shapes in a text or in `texts`, which decode out of it, and
    random-looking strings of letters and digits."""
    found = {m[0] for form in texts or decoded(text) for m in KEY_SHAPES.finditer(form)}
    return [*found, *(token for token in _DENSE.findall(unquote(text)) if _random(token))]


def _random(token: str) -> bool:
    """Returns whether letters and digits, or cases, alternate as often as in random text."""
    kinds = [0 if ch.isdigit() else 1 + ch.isupper() for ch in token if ch.isalnum()]
    changes, digits = sum(a != b for a, b in pairwise(kinds)), kinds.count(0)
    often = digits == len(kinds) or changes > len(kinds) * (0.2 if digits >= 2 else 0.4)
    return len(kinds) >= 20 and often


Mixed = Literal["ask", "refuse", "allow"]
_WORD = re.compile(r"[^\W_]+")
_RUN = 5  # words of a private text in a row that count as a piece of it
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff]{9,}")
_SIGNS = 9  # of a script without spaces, or of a number, that count as much
_NUMBER = re.compile(  # eight digits and more, but no date, no years and nothing round
    r"(?<![\d./-])(?!(?:19|20)\d\d[ ./-]?\d\d[ ./-]?\d\d(?!\d)|\d\d[./-]\d\d[./-](?:19|20)\d\d)"
    r"\d(?:[ ()./-]{0,2}\d){7,}(?<!000)"
)
_ID = re.compile(r"\b(?=(?:[A-Z/-]{0,9}\d){4})[A-Z0-9]{1,9}(?:[-/][A-Z0-9]{1,9}){1,5}\b")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")


class Finding(NamedTuple):
    """The reason why a call may not go out unseen; with `refuse` not even the user is asked."""

    code: str
    why: str
    refuse: bool = False


@lru_cache(maxsize=1024)  # every run of a chat reads the questions before it again
def _secrets_typed(question: str) -> tuple[str, ...]:
    return tuple(suspicious(question))


class Exposure:
    """The texts of a growing transcript: private ones, the user's, and those from outside."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.messages = messages
        self._read = 0  # how many of them
        self.untrusted = self.attached = self._own = False
        self._private: list[str] = []
        self._open: list[str] = []  # what the user wrote, and what came from outside
        self._typed: set[str] = set()  # secret-looking pieces of what the user wrote
        self._pieces: tuple[int, Secrets] = (-1, Secrets({}))

    def catch_up(self, text_of: Callable[[str], str | None]) -> None:
        """Reads the messages that were added; `text_of` has the text of attached files."""
        added = self.messages[self._read :]
        self._read += len(added)
        for message in added:
            if "summary" in message.details:
                continue  # it repeats messages that are read themselves
            if message.role == "user":
                self._open.append(message.content)
                self._typed.update(_secrets_typed(message.content))
                self.untrusted = self.untrusted or "imported" in message.details
                self.attached = self.attached or bool(message.attachments)
                self._private += filter(None, (text_of(s.url) for s in message.sources))
            elif message.role == "tool":
                details = message.details
                if details.get("private"):
                    self._own = True
                    self._private.append(message.content)
                elif details.get("untrusted"):
                    self._open.append(message.content)
                self.untrusted = self.untrusted or bool(details.get("untrusted"))
            elif message.sources:
                self.untrusted = True

    @property
    def mixed(self) -> bool:
        """True if the user's own data is beside text of others; an attached file may be either."""
        return self._own + self.attached + self.untrusted > 1

    def typed_secret(self, texts: Iterable[str]) -> bool:
        """Returns whether a text holds something secret-looking that the user wrote."""
        return Secrets({token: token for token in self._typed}).found_in(texts) is not None

    def met(self, token: str) -> bool:
        """Returns whether a token came from the user or from outside."""
        return any(token in text for text in self._open)

    def private_piece(self, texts: Iterable[str]) -> bool:
        """Returns whether one of these forms of a text holds a piece of the user's own data."""
        if not self._private:
            return False
        if self._pieces[0] != len(self._private):
            own = {run for text in self._private for run in _runs(text)}
            known = {run for text in self._open for run in _runs(text)}
            names = {
                token
                for text in self._private
                for token in (*_named(text), *suspicious(text))
                if not self.met(token)
            }
            self._pieces = (len(self._private), Secrets({n: n for n in names}, own - known))
        return self._pieces[1].found_in(texts) is not None


def _named(text: str) -> list[str]:
    """Returns what names somebody or something: words of letters and digits, mail, long numbers."""
    words = {*re.findall(r"\w{6,}", text), *_ID.findall(text)}
    ids = [w for w in words if any(map(str.isalpha, w)) and any(map(str.isdigit, w))]
    numbers = (_NOT_WORD.sub("", number)[-_SIGNS:] for number in _NUMBER.findall(text))
    return [*ids, *numbers, *_MAIL.findall(text)]


def _runs(text: str) -> set[str]:
    """Returns the pieces of a text that count, squeezed."""
    words = _WORD.findall(_even(text))
    runs = {"".join(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}
    for signs in _UNSPACED.findall("".join(words)):
        runs.update(_pieces(signs, _SIGNS))
    return {run for run in runs if len(run) >= _LEAST}


class Egress:
    """Checks the outgoing calls of one run; `secrets` returns the keys that must never leave."""

    def __init__(
        self,
        secrets: Callable[[], Secrets],
        sources: SourceTable,
        exposure: Exposure,
        mixed: Mixed = "ask",
    ) -> None:
        self._secrets = secrets
        self._sources = sources
        self._mixed = mixed
        self._lock = Lock()
        self.exposure = exposure

    def look(self, tool: Tool, arguments: Mapping[str, Any]) -> Finding | None:
        """Returns the reason why this call may not go out; None if it may, or if it is local."""
        if tool.spec.effect != "network" and tool.origin != "mcp":
            return None
        with self._lock:  # the calls of one step are looked at on threads
            self.exposure.catch_up(self._sources.text)
        url = str(arguments.get(tool.opens, "")) if tool.opens else None
        met = url is not None and self._sources.met(url) is not None
        if finding := self._secret(arguments, met):
            return finding
        if url is not None and not met:
            why = f"{url[:300]} is neither in what you wrote nor in a result."
            return Finding("unseen_url", why)
        return self._mix()

    def _secret(self, arguments: Mapping[str, Any], met: bool) -> Finding | None:
        told = [*leaves(arguments)]
        said = [text for _, text in told if text]
        names = dict.fromkeys(key for key, _ in told)
        split = "".join(said) if len(said) > 1 else ""  # over arguments
        whole = " ".join([*said, split, *names])
        plain = decoded(whole)
        texts = turned(plain)
        if name := self._secrets().found_in(texts):
            return Finding("own_key", f"It would send your {name} out.", refuse=True)
        if met:  # the model did not write this address, so it hides nothing in it
            return None
        if len(whole) > _LONG:
            why = f"It has more than {_LONG:,} characters, too many to look for keys in all codes."
            return Finding("secret_like", why)
        if self.exposure.private_piece(texts):
            return Finding("private_text", "It would send out a piece of your own data.")
        others = self.exposure.untrusted or self.exposure.attached
        if others and self.exposure.typed_secret(texts):
            return Finding("secret_like", "It holds something you wrote that looks like a secret.")
        for token in suspicious(" ".join([*said, *names]), plain):
            if KEY_SHAPES.search(token) or not self.exposure.met(token):
                shown = token if len(token) <= 24 else f"{token[:20]}…"
                return Finding("secret_like", f"It holds {shown!r}, which looks like a secret.")
        return None

    def _mix(self) -> Finding | None:
        if self._mixed == "allow" or not self.exposure.mixed:
            return None
        why = (
            "Your own data and text from others are both in this conversation: "
            "what others wrote could be steering what is sent."
        )
        return Finding("private_and_untrusted", why, refuse=self._mixed == "refuse")


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields the texts and numbers of a JSON value, each with the key before it; keys as well."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name), ""
            yield from leaves(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, key)
    elif value is not None:
        yield key, str(value)
