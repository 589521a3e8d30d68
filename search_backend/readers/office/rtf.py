"""Rich Text Format: its text, without control words. `striprtf` reads it."""

from __future__ import annotations

from searchloop.search_backend.readers import Reader
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


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """Returns the text; the cells of a table row stand between bars."""
    from striprtf.striprtf import rtf_to_text

    if len(body) > MOST_MARKUP:
        return failed_page(url, TOO_LARGE)
    try:
        words = rtf_to_text(body.decode("latin-1"), encoding="cp1252", errors="replace")  # type: ignore[no-untyped-call]
    except (ValueError, LookupError, IndexError, OverflowError, UnicodeError):
        return failed_page(url, BROKEN)
    text, unseen = cleaned(words)
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
