"""Plain text, Markdown, JSON, XML, CSV: cleaned, otherwise unchanged."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.text.clean import decode, invisible, one_line, tidy
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page

MOST_CHARACTERS = 4_000_000


def read(body: bytes, url: str, charset: str | None) -> Page:
    """Returns the whole text; the title is the first Markdown heading, else the file's name."""
    text = decode(body, charset)
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    kept = tidy(text[:MOST_CHARACTERS])
    title = one_line(title_of(kept, name or url))
    return Page(
        url=url,
        final_url=url,
        title=title,
        text=kept,
        cut=len(text) > MOST_CHARACTERS,
        invisible=invisible(text[:MOST_CHARACTERS]),
    )


READER = Reader(
    types=frozenset(
        {
            *("text/plain", "text/markdown", "text/x-markdown", "text/csv", "text/x-rst"),
            *("text/tab-separated-values", "text/xml", "text/css", "text/javascript"),
            *("application/json", "application/xml", "application/x-ndjson", "application/yaml"),
            *("application/javascript", "text/x-python", "text/x-script.python"),
        }
    ),
    suffixes=frozenset({".txt", ".md", ".markdown", ".rst", ".text", ".org"}),
    read=read,
)
