"""The page that a service read, held to the same rules as one that we read."""

from __future__ import annotations

import re

from search_backend.answers import iso_date
from search_backend.clean import invisible, one_line, tidy
from search_backend.passages import title_of
from search_backend.types import Page, Problem

MOST_CHARACTERS = 4_000_000
MOST_LINKS = 500
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\]\(\s*<?(https?://[^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*)")


def served(
    url: str, text: object, *, final_url: object = None, title: object = None, date: object = None
) -> Page:
    """A page of Markdown, without what cannot be seen and without images. One without text has
    status error."""
    markdown = text if isinstance(text, str) else ""
    plain = tidy(_IMAGE.sub(lambda image: image[1], markdown[:MOST_CHARACTERS]))
    came_from = final_url if isinstance(final_url, str) and _is_web(final_url) else url
    page = Page(
        url=url,
        final_url=came_from,
        title=one_line(title if isinstance(title, str) and title else title_of(plain, "")),
        text=plain,
        links=tuple(dict.fromkeys(_LINK.findall(plain)))[:MOST_LINKS],
        published=iso_date(date),
        cut=len(markdown) > MOST_CHARACTERS,
        invisible=invisible(markdown[:MOST_CHARACTERS]),
    )
    return page if plain else failed(url, "no_text", "The reader found no text on this page.")


def failed(url: str, code: str, message: str) -> Page:
    """What a service could not read."""
    problem = Problem(code, message, "Use another source, or another reader.")
    return Page(url=url, final_url=url, title="", text="", status="error", error=problem)


def said(value: object) -> str:
    """A service's own words for a failure, on one line and short."""
    return one_line(value, 160).rstrip(".") if isinstance(value, str) else "no reason given"


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))
