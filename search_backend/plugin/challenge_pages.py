"""Tells a page that asks for proof of a person from a page about such things.

A wall in front of a site answers with a header, an element or a script of its own, and with little
text. Words never decide about a page: "Forbidden City", a list of HTTP errors and the manual of a
wall hold the same ones. They count as a second sign, and where there is no markup to look at.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

_SHORT_TEXT = 2_000
_FEW_WORDS = 600
_MOST_MARKUP = 512 * 1024
# Scripts with their content, and single tags: what a page quotes from others is escaped. Links and
# policies name what a visitor may meet elsewhere.
_PIECE = re.compile(
    rb"<script\b[^<>]*+>.*?(?:</script|\Z)|<!--.*?(?:-->|\Z)"
    rb"|<(?!a\s|link\s|meta\s[^<>]*content-security)[a-z][^<>]*+>",
    re.IGNORECASE | re.DOTALL,
)
_KNOWN = tomllib.loads(Path(__file__).with_name("challenge_pages.toml").read_text("utf-8"))
_SIGN, _TITLED, _WIDGET, _FIELD = (
    re.compile("|".join(_KNOWN[kind]).encode(), re.IGNORECASE)
    for kind in ("markup", "titled", "widgets", "fields")
)
_TITLE = re.compile(f"(?:{'|'.join(_KNOWN['titles'])})[\\W_]*", re.IGNORECASE)
_WORDS, ASKS_FOR_SCRIPTS = (
    re.compile("|".join(_KNOWN[kind]), re.IGNORECASE) for kind in ("words", "scripts")
)


def is_named(headers: Mapping[str, str]) -> bool:
    """Returns whether the headers of an answer say that a wall sent it."""
    return any(headers.get(name, "").lower() in said for name, said in _KNOWN["headers"].items())


def is_challenge(body: bytes, title: str, text: str) -> bool:
    """Returns whether markup is the page of a wall; `title` and `text` are what it shows.

    The markup may be anything: this belongs into a process that may be killed.
    """
    if len(text) > _SHORT_TEXT:
        return False
    markup = body[:_MOST_MARKUP]
    pieces = [piece for piece in _PIECE.findall(markup) if not piece.startswith(b"<!--")]
    if any(_SIGN.search(piece) for piece in pieces):
        return True
    if len(text) > _FEW_WORDS:
        return False
    widgets = (piece for piece in pieces if _WIDGET.search(piece))
    if any(b"invisible" not in piece for piece in widgets) and not any(map(_FIELD.match, pieces)):
        return not text or signs_in_words(title, text) > 0
    if not text and not title and b"_Incapsula_Resource" in markup:
        return True  # a script and nothing else
    return _TITLE.fullmatch(title.strip()) is not None and _TITLED.search(markup) is not None


def signs_in_words(title: str, text: str) -> int:
    """Returns 1 for a usual title of challenges, 1 for usual words in a short text, or 2."""
    asks = len(text) <= _FEW_WORDS and _WORDS.search(text) is not None
    return asks + (_TITLE.fullmatch(title.strip()) is not None)
