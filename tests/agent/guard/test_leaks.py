"""Secrets are found in whatever they are dressed in; ordinary words are not."""

from __future__ import annotations

import base64
import codecs
import gzip
import re
import secrets
import string
import zlib
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.guard.egress import KEY_SHAPES, Secrets, forms
from tests.tables import each_row

ABC = string.ascii_lowercase
DRESSES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper": str.upper,
    "spaced": lambda s: " ".join(s),
    "dashed": lambda s: "-".join(s),
    "lines": lambda s: "\n".join(s[i : i + 4] for i in range(0, len(s), 4)),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 without padding": lambda s: base64.b64encode(s.encode()).decode().rstrip("="),
    "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 shifted": lambda s: base64.b64encode(b"xy" + s.encode() + b"z").decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "hex with colons": lambda s: s.encode().hex(":"),
    "percent": lambda s: quote(s, safe=""),
    "every byte percent": lambda s: "".join(f"%{b:02x}" for b in s.encode()),
    "percent twice": lambda s: quote("".join(f"%{b:02x}" for b in s.encode()), safe=""),
    "backwards": lambda s: s[::-1],
    "wide": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s),
    "zero width": lambda s: "\u200b".join(s),
    "base64 in pieces": lambda s: re.sub("(.{9})", r"\1 ", base64.b64encode(s.encode()).decode()),
    "hex as in C": lambda s: " ".join(f"0x{b:02x}" for b in s.encode()),
    "hex of two bytes": lambda s: s.encode("utf-16-be").hex(),
    "escapes": lambda s: "".join(f"\\u{b:04x}" for b in s.encode()),
    "octal": lambda s: "".join(f"\\{b:03o}" for b in s.encode()),
    "codes": lambda s: ", ".join(str(b) for b in s.encode()),
    "bits": lambda s: " ".join(f"{b:08b}" for b in s.encode()),
    "entities": lambda s: "".join(f"&#{b};" for b in s.encode()),
    "quoted-printable": lambda s: "".join(f"={b:02X}" for b in s.encode()),
    "accents": lambda s: "\u0301".join(s),
    "look-alikes": lambda s: s.translate(str.maketrans("aceBk", "асеВк")),
    "tags": lambda s: "".join(chr(0xE0000 + b) for b in s.encode()),
    "selectors": lambda s: "😀" + "".join(chr(0xE00F0 + b) for b in s.encode()),
    "marked up": lambda s: "".join(f"<b>{sign}</b>" for sign in s),
    "hex in a word": lambda s: f"id{s.encode().hex()}z",
    "digits of others": lambda s: s.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    "rot13": lambda s: codecs.encode(s, "rot13"),
    "letters moved by five": lambda s: s.translate(str.maketrans(ABC, ABC[5:] + ABC[:5])),
    "atbash": lambda s: s.translate(str.maketrans(ABC, ABC[::-1])),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base32 as a host": lambda s: ".".join(
        re.findall(".{1,20}", base64.b32encode(s.encode()).decode().rstrip("=").lower())
    ),
    "base32 shifted": lambda s: base64.b32encode(b"xyz" + s.encode()).decode(),
    "gzip": lambda s: base64.b64encode(gzip.compress(s.encode())).decode(),
    "zlib": lambda s: base64.urlsafe_b64encode(zlib.compress(s.encode())).decode(),
    "deflate": lambda s: base64.b64encode(zlib.compress(s.encode(), wbits=-15)).decode(),
    "gzip in hex": lambda s: gzip.compress(s.encode()).hex(),
    "hex in pieces": lambda s: " and then ".join(re.findall(".{1,7}", s.encode().hex())),
    "hex backwards": lambda s: s.encode().hex()[::-1],
    "tail cut": lambda s: s[: len(s) * 3 // 4],
    "head cut": lambda s: s[len(s) // 4 :],
}


@each_row("dress", DRESSES)
@each_row("around", ["{}", "tides {} today", "https://a.example/?q={}&x=1"])
def test_a_secret_is_found_in_any_dress(dress: str, around: str) -> None:
    """A random key in this dress, alone and in a query or a URL."""
    key = f"sk-{secrets.token_hex(16)}"
    text = around.format(DRESSES[dress](key))
    assert Secrets({"OPENAI_API_KEY": key}).found_in(forms(text)) == "OPENAI_API_KEY", text


LOSSY = {"tail cut", "head cut", "spaced", "dashed", "lines", "zero width", "wide", "upper"}
LOSSY |= {"accents", "look-alikes", "tags", "selectors", "hex in a word", "digits of others"}
BELOW = {
    "rot13",
    "letters moved by five",
    "atbash",
}  # known over nothing but what a text says by itself
ZIPPED, SHIFTED = {"gzip", "zlib", "deflate"}, {"base64 shifted", "base32 shifted"}


@given(st.lists(st.sampled_from(sorted({*DRESSES} - LOSSY)), min_size=2, max_size=2))
def test_a_dress_over_a_dress(names: list[str]) -> None:
    """Two encodings one over the other hide nothing either."""
    if names[1] in BELOW or (names[1] in SHIFTED and names[0] in ZIPPED):
        return
    key = secrets.token_hex(16)
    text = DRESSES[names[1]](DRESSES[names[0]](key))
    assert Secrets({"key": key}).found_in(forms(f"look up {text}")) == "key"


def test_shapes_of_keys_are_known() -> None:
    """A vendor's key is one whoever wrote it."""
    assert KEY_SHAPES.search("sk-proj-" + "x" * 20)
    assert not KEY_SHAPES.search("skeleton key")


def test_a_long_text_costs_little() -> None:
    """A megabyte goes through without being undressed."""
    text = "word " * 200_000
    assert len(forms(text)) <= 2
