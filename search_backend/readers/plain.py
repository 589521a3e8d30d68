"""Plain text, Markdown, JSON, XML, CSV, program text: cleaned, otherwise unchanged."""

from __future__ import annotations

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.whole import file_name
from searchloop.search_backend.text.clean import COLOURS, cleaned, decode, one_line
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page

MOST_CHARACTERS = 4_000_000


def read(body: bytes, url: str, charset: str | None) -> Page:
    """Returns the whole text; the title is the first Markdown heading, else the file's name."""
    text = COLOURS.sub("", decode(body, charset))
    seen, unseen = cleaned(text[:MOST_CHARACTERS])
    # Blanks and empty lines mean something in program text, tables and patches.
    kept = seen.rstrip()
    kept = kept[kept.rfind("\n", 0, len(kept) - len(kept.lstrip())) + 1 :]
    title = one_line(title_of(kept, file_name(url) or url))
    return Page(url, url, title, kept, cut=len(text) > MOST_CHARACTERS, invisible=unseen)


READER = Reader(
    types=frozenset({"text/plain"}),  # which `readers.read` takes all kinds of text for
    suffixes=frozenset({".txt", ".md", ".markdown", ".rst", ".text", ".org"}),
    read=read,
)
