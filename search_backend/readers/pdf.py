"""PDF through pypdfium2. https://pypdfium2.readthedocs.io/"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.whole import file_name
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
        except pypdfium2.PdfiumError as error:
            return failed_page(url, _LOCKED if error.err_code == _PASSWORD else _BAD)
        try:
            texts, read, length = list[str](), 0, 0
            for number in range(min(len(document), MOST_PAGES)):
                texts.append("")
                # A page that is damaged, or a page tree that lies, is no reason to lose the others.
                with suppress(pypdfium2.PdfiumError):
                    texts[-1] = _page_text(document, number)
                    read, length = read + 1, length + len(texts[-1])
                if length > MOST_CHARACTERS:
                    break
            title = document.get_metadata_dict().get("Title", "")
            cut = read < len(document)
        finally:
            document.close()
    if not read:
        return failed_page(url, _BAD)
    pages = [cleaned(text.strip()) for text in texts]
    text, breaks = _joined([seen.strip() for seen, _ in pages])
    if not text:
        return replace(failed_page(url, _NO_TEXT), breaks=breaks)
    unseen = sum(count for _, count in pages)
    title = one_line(title or file_name(url))
    return Page(url, url, title, text, cut=cut, invisible=unseen, breaks=breaks)


def _joined(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Joins the pages; returns where each begins as well."""
    text, breaks = "", list[int]()
    for page in pages:
        text += "\n\n" if text and page else ""
        breaks.append(len(text))
        text += page
    return text, tuple(breaks)


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
_PASSWORD = 4  # FPDF_ERR_PASSWORD
_LOCKED = Problem("bad_pdf", "This PDF needs a password.", "Save a copy of it without a password.")
_BAD = Problem(
    "bad_pdf", "This PDF is damaged or needs a password.", "Look for another copy of it."
)


def knows(body: bytes) -> bool:
    """True for a file that begins as a PDF does."""
    return body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-")


READER = Reader(frozenset({"application/pdf"}), frozenset({".pdf"}), read, knows)
