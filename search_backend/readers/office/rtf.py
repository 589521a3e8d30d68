"""Rich Text Format: its text, without control words. `striprtf` reads it."""

from __future__ import annotations

import re
from html import escape

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.parts.scripts import Scripts
from searchloop.search_backend.readers._html.text import plain
from searchloop.search_backend.readers._html.whole import file_name
from searchloop.search_backend.readers.office._archive import (
    BROKEN,
    MOST_MARKUP,
    NO_TEXT,
    TOO_LARGE,
)
from searchloop.search_backend.text.clean import cleaned
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page, failed_page

_HIDDEN = re.compile(r"\\(?:v|deleted)(?![a-z0-9-])([^{}]*+)(\}?)")
_SHIFTED = re.compile(
    r"\\(super|sub)(?![a-z0-9-])(?P<more>(?>(?:\\[a-z]{1,32}-?[0-9]{0,9}){0,9})) ?"
    r"(?P<held>(?>(?:[^{}\\]|\\'[0-9a-f]{2}|\\u-?[0-9]{1,6}){1,80}))\}"
)
# Signs that no text has stand for tags until the text is read.
_SIGNS = {"super": "\x02\x03", "sub": "\x04\x05"}
_TAGS = {2: "<sup>", 3: "</sup>", 4: "<sub>", 5: "</sub>"}


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """Returns the text; the cells of a table row stand between bars."""
    from striprtf.striprtf import rtf_to_text

    if len(body) > MOST_MARKUP:
        return failed_page(url, TOO_LARGE)
    try:
        markup = _HIDDEN.sub(
            lambda run: "}" if run[2] and "\\v0" not in run[1] else run[0], body.decode("latin-1")
        )
        marked = _SHIFTED.sub(
            lambda one: f"{one['more']} {one['held'].join(_SIGNS[one[1]])}}}".lstrip(), markup
        )
        words = rtf_to_text(marked, encoding="cp1252", errors="replace")  # type: ignore[no-untyped-call]
    except (ValueError, LookupError, IndexError, OverflowError, UnicodeError):
        return failed_page(url, BROKEN)
    shown = escape(words, quote=False).translate(_TAGS)
    text, unseen = cleaned(plain(Scripts(shown, "\n").written()))
    if not text.strip():
        return failed_page(url, NO_TEXT)
    title = title_of(text, file_name(url))
    return Page(url=url, final_url=url, title=title, text=text, invisible=unseen)


def knows(body: bytes) -> bool:
    """True for a text that begins as RTF does."""
    return body.startswith(b"{\\rtf")


READER = Reader(
    types=frozenset({"application/rtf", "text/rtf"}),
    suffixes=frozenset({".rtf"}),
    read=read,
    knows=knows,
)
