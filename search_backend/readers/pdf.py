"""PDF through pypdfium2. https://pypdfium2.readthedocs.io/"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.text.clean import cleaned, one_line
from searchloop.search_backend.types import Page, Problem, failed_page

MOST_PAGES = 500
MOST_CHARACTERS = 2_000_000

# The library under pypdfium2 is not safe to use from two threads at once.
_ONE_AT_A_TIME = threading.Lock()


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """Returns the text of all pages in order, with the document's own title if it has one."""
    import pypdfium2  # type: ignore[import-untyped,unused-ignore]

    with _ONE_AT_A_TIME:
        try:
            document = pypdfium2.PdfDocument(body)
        except pypdfium2.PdfiumError:
            return failed_page(url, _BAD)
        try:
            texts, length = list[str](), 0
            for number in range(min(len(document), MOST_PAGES)):
                # A page that is damaged, or a page tree that lies, is no reason to lose the others.
                with suppress(pypdfium2.PdfiumError):
                    texts.append(_page_text(document, number))
                    length += len(texts[-1])
                if length > MOST_CHARACTERS:
                    break
            title = document.get_metadata_dict().get("Title", "")
            cut = len(texts) < len(document)
        finally:
            document.close()
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    text, unseen = cleaned("\n\n".join(map(str.strip, texts)))
    text = text.strip()
    if not texts:
        return failed_page(url, _BAD)
    if not text:
        return failed_page(url, _NO_TEXT)
    return Page(url, url, one_line(title or name), text, cut=cut, invisible=unseen)


def _page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            return str(text_page.get_text_bounded())
        finally:
            text_page.close()
    finally:
        page.close()


_NO_TEXT = Problem(
    "no_text", "This PDF holds pictures and no text.", "Look for a version with text."
)
_BAD = Problem(
    "bad_pdf", "This PDF is damaged or needs a password.", "Look for another copy of it."
)


def knows(body: bytes) -> bool:
    """True for a file that begins as a PDF does."""
    return body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-")


READER = Reader(frozenset({"application/pdf"}), frozenset({".pdf"}), read, knows)
