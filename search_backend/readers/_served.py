"""Pages that a service read, under the same rules as those that we read."""

from __future__ import annotations

import re

from searchloop.analysis.dates import iso_date
from searchloop.search_backend.text.clean import cleaned, one_line
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page, Problem, failed_page

MOST_CHARACTERS = 4_000_000
MOST_LINKS = 500
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\]\(\s*<?(https?://[^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*)")


def served(
    url: str, text: object, *, final_url: object = None, title: object = None, date: object = None
) -> Page:
    """Returns a page of Markdown without invisible characters and images; status error without
    text.

    `text`, `final_url`, `title` and `date` are as the service sent them.
    """
    markdown = text if isinstance(text, str) else ""
    seen, unseen = cleaned(_IMAGE.sub(lambda image: image[1], markdown[:MOST_CHARACTERS]))
    plain = seen.strip()
    is_web = isinstance(final_url, str) and final_url.startswith(("http://", "https://"))
    page = Page(
        url=url,
        final_url=str(final_url) if is_web else url,
        title=one_line(title if isinstance(title, str) and title else title_of(plain, "")),
        text=plain,
        links=tuple(dict.fromkeys(_LINK.findall(plain)))[:MOST_LINKS],
        published=iso_date(date),
        cut=len(markdown) > MOST_CHARACTERS,
        invisible=unseen,
    )
    return page if plain else failed(url, "no_text", "The reader found no text on this page.")


def failed(url: str, code: str, message: str) -> Page:
    """Returns a page that a service could not read.

    `code` and `message` say why.
    """
    return failed_page(url, Problem(code, message, "Use another source, or another reader."))


def said(value: object) -> str:
    """Returns a service's own words for a failure, on one short line."""
    return one_line(value, 160).rstrip(".") if isinstance(value, str) else "no reason given"
