"""PDF through pypdfium2, when it is installed (extra `pdf`). https://pypdfium2.readthedocs.io/"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from search_backend.clean import invisible, one_line, tidy
from search_backend.readers import Reader
from search_backend.types import Page, Problem

MOST_PAGES = 500
MOST_CHARACTERS = 2_000_000

# The library under pypdfium2 is not safe to use from two threads at once.
_ONE_AT_A_TIME = threading.Lock()


def read(body: bytes, url: str, _charset: str | None) -> Page:
    """The text of all pages, one after the other, with the document's own title if it has one."""
    try:
        import pypdfium2  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return _failed(
            url,
            Problem(
                "pdf_not_installed",
                "This is a PDF, and reading PDF is not installed.",
                "Install it: pip install 'searchloop[pdf]'. Or look for the content as a web page.",
            ),
        )
    with _ONE_AT_A_TIME:
        try:
            document = pypdfium2.PdfDocument(body)
        except pypdfium2.PdfiumError:
            return _failed(url, _BAD)
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
    text = tidy(whole := "\n\n".join(texts))
    if not texts:
        return _failed(url, _BAD)
    if not text:
        return _failed(
            url,
            Problem(
                "no_text", "This PDF holds pictures and no text.", "Look for a version with text."
            ),
        )
    return Page(url, url, one_line(title or name), text, cut=cut, invisible=invisible(whole))


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


_BAD = Problem(
    "bad_pdf", "This PDF is damaged or needs a password.", "Look for another copy of it."
)


def _failed(url: str, problem: Problem) -> Page:
    return Page(url=url, final_url=url, title="", text="", status="error", error=problem)


READER = Reader(frozenset({"application/pdf"}), frozenset({".pdf"}), read)
