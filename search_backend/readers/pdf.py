"""PDF through pypdfium2. https://pypdfium2.readthedocs.io/"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from ctypes import c_double
from dataclasses import replace
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.parts.scripts import Scripts
from searchloop.search_backend.readers._html.text import plain
from searchloop.search_backend.readers._html.whole import file_name
from searchloop.search_backend.text.clean import cleaned, one_line
from searchloop.search_backend.types import Page, Problem, failed_page

MOST_PAGES = 500
MOST_CHARACTERS = 2_000_000
_WITH_DIGIT = re.compile(r"(?<!\S)[^\s\d]*\d\S*|[&<>]")
_BROKEN_BEHIND = re.compile(r"(</su[bp]>)\r?\n(?= )")

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
    with closing(document[number]) as page, closing(page.get_textpage()) as text_page:
        text = str(text_page.get_text_bounded())
        places: Sequence[int] = range(len(text))
        if len(text) != text_page.count_chars():  # some of all signs are left out
            whole, at = text_page.get_text_range(), -1
            places = [at := max(whole.find(sign, at + 1), at + 1) for sign in text]
        marked = _WITH_DIGIT.sub(lambda word: _with_scripts(word, places, text_page), text)
    if "</su" not in marked:
        return text
    # Behind a raised sign and before a blank the library breaks the line.
    return plain(Scripts(_BROKEN_BEHIND.sub(r"\1", marked), "\n").written())


def _with_scripts(word: re.Match[str], places: Sequence[int], text_page: Any) -> str:
    """Puts what is smaller and higher or lower than the largest sign of a word between tags."""
    from pypdfium2 import raw

    box, x, y = raw.FS_RECTF(), c_double(), c_double()
    signs = list[tuple[float, float]]()  # the height of each, and of the line it stands on
    for at in places[word.start() : word.end()]:
        raw.FPDFText_GetLooseCharBox(text_page, at, box)
        raw.FPDFText_GetCharOrigin(text_page, at, x, y)
        signs.append((box.top - box.bottom, y.value))
    height, line = max(signs, key=itemgetter(0))
    kinds = []
    for own, its_line in signs:
        shift = (its_line - line) / height if 0 < own < 0.95 * height else 0
        kinds.append("sup" if shift > 0.1 else "sub" if shift < -0.06 else "")
    parts = ""
    for kind, run in groupby(zip(kinds, word[0], strict=True), key=itemgetter(0)):
        text = escape("".join(sign for _, sign in run), quote=False)
        parts += f"<{kind}>{text}</{kind}>" if kind else text
    return parts


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
