"""HTML to the main text as Markdown, without what the page hides.

Three passes: bound the markup and take out what a visitor cannot see; let trafilatura find the main
text; where it finds too little, take the text by structure. https://trafilatura.readthedocs.io/
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser

from search_backend.charset import decode
from search_backend.clean import clean, tidy
from search_backend.readers import Reader, _about
from search_backend.readers._bounds import bounded
from search_backend.readers._hidden import remove_hidden
from search_backend.readers._main_text import main_text
from search_backend.types import Page, Problem

_log = logging.getLogger(__name__)

THIN = 250
# By this factor more text by structure than by extraction: the extraction missed the point.
FAR_MORE = 4
# Beyond this the extractor takes seconds, and structure alone serves as well.
MOST_FOR_EXTRACTION = 500_000
MOST_TAGS_FOR_EXTRACTION = 30_000
# Few words from this much markup: the text is made by scripts.
SHELL_MARKUP = 15_000
SHELL_WORDS = 40

_APP_ROOT = "#root:empty,#app:empty,#__next:empty,#__nuxt:empty,app-root:empty,#___gatsby:empty"
_ASKS_FOR_SCRIPTS = re.compile(
    r"(enable|activate|turn on|requires?|need|without) (java ?script)"
    r"|java ?script (is|must be|to be) (disabled|enabled|required|turned on)",
    re.IGNORECASE,
)


def read(body: bytes, url: str, charset: str | None) -> Page:
    """The page with its title, author, date, language, links. An empty shell is needs_js."""
    markup, cut = bounded(decode(body, charset))
    tree = LexborHTMLParser(markup)
    # Read before scripts go: some pages tell their date only there.
    page = Page(
        url=url,
        final_url=url,
        title=_about.title(tree),
        text="",
        byline=_about.byline(tree),
        published=_about.published(tree),
        language=_about.language(tree),
        cut=cut,
    )
    is_app = tree.css_first(_APP_ROOT) is not None and tree.css_first("script") is not None
    asks = any(
        _ASKS_FOR_SCRIPTS.search(node.text(deep=True) or "") for node in tree.css("noscript")
    )
    remove_hidden(tree)
    links = _about.links(tree, url)
    text = _main(tree, url)
    page = replace(page, text=text, links=links)
    words = len(text.split())
    asks = asks or _ASKS_FOR_SCRIPTS.search(text[:2000]) is not None
    if words < SHELL_WORDS and (asks or is_app or (words < 8 and len(markup) > SHELL_MARKUP)):
        return _shell(page)
    return page


def _shell(page: Page) -> Page:
    problem = Problem(
        "needs_js",
        "This page is an empty shell that fills itself by JavaScript; there is no text to read.",
        "Use another source, or a plain version of the page (print view, feed, API).",
    )
    return replace(page, text="", status="needs_js", error=problem)


def _main(tree: LexborHTMLParser, url: str) -> str:
    markup = clean(tree.html or "")
    small = len(markup) <= MOST_FOR_EXTRACTION and markup.count("<") <= MOST_TAGS_FOR_EXTRACTION
    extracted = tidy(_extract(markup, url)) if small else ""
    if len(extracted) >= THIN * FAR_MORE:
        return extracted
    by_structure = tidy(main_text(tree))
    few = len(extracted) < THIN
    if len(by_structure) > len(extracted) * (1 if few else FAR_MORE):
        return by_structure
    return extracted


def _extract(markup: str, url: str) -> str:
    from trafilatura import extract

    # It warns about every page in which it finds nothing; that is our business, not the terminal's.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        found = extract(
            markup,
            url=url,
            fast=True,
            output_format="markdown",
            include_links=True,
            include_tables=True,
            include_comments=False,
            with_metadata=False,
        )
    except Exception:
        # Strange markup may be too much for it; the page still has its structure.
        _log.warning("extraction failed, reading by structure", exc_info=True)
        return ""
    return found or ""


READER = Reader(
    types=frozenset({"text/html", "application/xhtml+xml"}),
    suffixes=frozenset({".html", ".htm", ".xhtml"}),
    read=read,
)
