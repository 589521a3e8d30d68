"""HTML to the main text as Markdown, without what the page hides.

Bound the markup, take out what a visitor cannot see, cut the page into blocks of text, and keep the
blocks that are likely to be main text.
"""

from __future__ import annotations

import re
from dataclasses import replace

from searchloop.search_backend.plugin.challenge_pages import ASKS_FOR_SCRIPTS
from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html import about as _about
from searchloop.search_backend.readers._html.blocks import Box, Layout, layout, written
from searchloop.search_backend.readers._html.bounds import MOST_BYTES, parsed
from searchloop.search_backend.readers._html.choose import About, chosen
from searchloop.search_backend.readers._html.features import within
from searchloop.search_backend.readers._html.markdown import markdown
from searchloop.search_backend.readers._html.parts import NAMES
from searchloop.search_backend.readers._html.parts.complete import NOTES, with_corrections
from searchloop.search_backend.readers._html.parts.told import told
from searchloop.search_backend.readers._html.parts.visible import show
from searchloop.search_backend.readers._html.whole import whole_page
from searchloop.search_backend.text.clean import cleaned, decode
from searchloop.search_backend.types import Page, Problem

# Of so short a page everything is kept that is no furniture.
SHORT_PAGE = 120
# A page in more pieces is a table or a register; sorting them would take seconds.
MOST_BLOCKS = 6_000
# Few words from this much markup: the text is made by scripts.
SHELL_MARKUP = 15_000
SHELL_WORDS = 20
# Fewer words in the data of a page that shows none are its slogan.
LEAST_TOLD = 8

_FURNITURE = frozenset(("nav", "header", "footer", "aside", "form", "button"))
# In these such an element belongs to the text: a question to open, who said what is quoted.
_WITH_PARTS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "blockquote"))
_NOTES = NOTES | {".quote", ".note", ".tip", ".callout", "r=note", ".starlight"}
_COOKIES = NAMES["cookies"]
_BANNERS = NAMES["banners"]
_APP_ROOT = "#root:empty,#app:empty,#__next:empty,#__nuxt:empty,app-root:empty,#___gatsby:empty"
# All that some pages say until their scripts have run.
_WAITS = re.compile(
    r"\W*(?:(?:loading|please wait|laden|lädt|wird geladen|bitte warten|chargement|cargando"
    r"|caricamento|carregando|загрузка|正在加载|加载中|読み込み中|로딩 중|जारी है)\W*){1,3}",
    re.IGNORECASE,
)
# Three words and a full stop, or as much in a script without blanks. "Loading, wait." is none.
_SENTENCE = re.compile(
    r"(?<!\S)(?!(?i:loading|please)\b)(?:[^\s.!?]+ +){2,40}[^\s.!?]+[.!?…۔।]"
    r"|[^。！？\n]{0,60}[\u0e00-\u0eff\u1000-\u17ff\u3040-\u30ff\u3400-\u9fff]{5}[^。！？\n]{0,60}"
)


def read(body: bytes, url: str, charset: str | None) -> Page:
    """Returns the page with title, date and links; needs_js for an empty shell."""
    tree, cut = parsed(decode(body[:MOST_BYTES], charset))
    # Read before scripts go: some pages tell their date only there.
    metadata = _about.metadata(tree, url)
    page = Page(
        url=url,
        final_url=url,
        title=_about.title(tree),
        text="",
        published=_about.published(tree, metadata, url),
        cut=cut or len(body) > MOST_BYTES,
    )
    show(tree)
    written_body = written(tree)
    links = _about.links(metadata, tree, url)
    del tree  # which is as large as the page
    text, unseen = _main(layout(written_body), About(_about.kind(metadata), url), metadata.base)
    page = replace(page, text=text, links=links, invisible=unseen)
    if len(text.split(None, SHELL_WORDS)) >= SHELL_WORDS:
        return page
    # So few pages come here that parsing these again is cheaper than asking all what follows.
    return _unless_shell(page, decode(body[:MOST_BYTES], charset))


def _unless_shell(page: Page, markup: str) -> Page:
    """Returns a page of few words, or needs_js in its place if scripts would bring the others."""
    tree, _ = parsed(markup)
    if tree.css_first("script") is None:
        return page
    is_app = tree.css_first(_APP_ROOT) is not None or _WAITS.fullmatch(page.text) is not None
    said = [page.text[:2000], *(node.text(deep=True) or "" for node in tree.css("noscript"))]
    asks = any(map(ASKS_FOR_SCRIPTS.search, said))
    if not (is_app or asks or (len(page.text.split()) < 8 and len(markup) > SHELL_MARKUP)):
        return page
    # A short page may ask for scripts as well and yet say what it has to say.
    sentences = (found[0] for found in _SENTENCE.finditer(said[0]))
    if not is_app and not all(map(ASKS_FOR_SCRIPTS.search, sentences)):
        return page
    unscripted = [
        n.inner_html for n in tree.css("noscript") if not ASKS_FOR_SCRIPTS.search(n.text())
    ]
    data = whole_page(told(tree) or "".join(filter(None, unscripted)), page.url)
    if len(data.text.split()) >= LEAST_TOLD or not data.text.isascii():
        return replace(page, text=data.text, invisible=data.invisible)
    problem = Problem(
        "needs_js",
        "This page is an empty shell that fills itself by JavaScript; there is no text to read.",
        "Use another source, or a plain version of the page (print view, feed, API).",
    )
    return replace(page, text="", status="needs_js", error=problem)


def _main(page: Layout, about: About, base: str) -> tuple[str, int]:
    """Returns the main text, and the number of invisible characters removed from it."""
    kept = chosen(page, about) if len(page.blocks) <= MOST_BLOCKS else []
    words = sum(page.blocks[index].words for index in kept)
    is_short = sum(block.words for block in page.blocks) < SHORT_PAGE or not words
    if is_short:
        kept = list(range(len(page.blocks)))
    if is_short or not _COOKIES.isdisjoint(page.names):
        beside = _beside(page, is_short)
        own = [at for at in kept if not beside[page.blocks[at].box]]
        kept = own if is_short else own or kept
    return cleaned(markdown(page, with_corrections(page, kept), base))


def _beside(page: Layout, is_short: bool) -> list[bool]:
    """Tells for each box whether it lies in a cookie banner. On a short page, of which all text is
    kept, navigation, header, footer, sidebar, form and button count as well."""
    boxes = page.boxes
    # What holds a title, a main part or most words is no banner, whatever it is called.
    starts = [box.parent for box in boxes if box.tag in ("h1", "main", "article")]
    heads = within(page, [float(boxes[block.box].tag == "th") for block in page.blocks])
    if is_short and not starts:
        words = within(page, [block.words * (1 - block.linked) for block in page.blocks])
        starts += [at for at, box in enumerate(boxes) if 2 * words[at] > words[0]]
    around = {-1}
    for up in starts:
        while up not in around:
            around.add(up)
            up = boxes[up].parent
    found: list[bool] = []
    for at, box in enumerate(boxes):
        furnished = is_short and not (box.tag in _FURNITURE and _is_of_text(boxes, box))
        is_around = at in around or (box.tag == "form" and heads[at] > 0)
        own = _is_beside(box.tag, box.names, furnished, is_around)
        found.append(own or (box.parent >= 0 and found[box.parent]))
    return found


def _is_of_text(boxes: list[Box], box: Box) -> bool:
    """Tells whether a part that is furniture by its tag belongs to a text, as its heading does."""
    up = box.parent
    while box.tag == "header" and up >= 0 and boxes[up].tag not in ("main", "article"):
        up = boxes[up].parent
    return up >= 0 and (box.tag == "header" or boxes[up].tag in _WITH_PARTS)


def _is_beside(tag: str, names: tuple[str, ...], is_short: bool, is_around: bool) -> bool:
    is_banner = not (_COOKIES.isdisjoint(names) or _BANNERS.isdisjoint(names))
    if not is_around and (is_banner or (is_short and ".sidebar" in names)):
        return True
    if not is_short or (is_around and tag == "form") or not _NOTES.isdisjoint(names):
        return False
    return tag in _FURNITURE


READER = Reader(
    types=frozenset({"text/html", "application/xhtml+xml"}),
    suffixes=frozenset({".html", ".htm", ".xhtml"}),
    read=read,
)
