"""Text and links of blocks, and what each block is told about them."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.blocks import Layout, layout, written
from searchloop.search_backend.readers._html.markdown import markdown
from searchloop.search_backend.readers._html.text import TAG, bare, normal, plain, runs
from searchloop.search_backend.readers.html import read
from tests.tables import each_row

_TAGS = (
    "<p>,</p>,<div>,</div>,<li class=i>,<a href=/x>,<a href='/y?a=1&amp;b'>,</a>,<b>,</b>,<a>,"
    "<abbr>,</abbr>,<br>,<td>,<table><tr>,</table>,<pre>,<!-- c -->,<i-x,>,"
    "<s<a href=/z>,&nbsp;,&lt;a&gt;"
)
_WORDS = "word|  two  words | |\n|\t|\u3000|\xa0|[x]|é|\x01|\x02\x03|\x04|\ufdd0|😀"
_PIECES = (*_TAGS.split(","), *_WORDS.split("|"))
_MARKUP = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)


def laid_out(markup: str) -> Layout:
    """The blocks of a page."""
    return layout(written(LexborHTMLParser(markup)))


@settings(max_examples=120, deadline=None)
@given(_MARKUP)
@example("<i-x<!-- c --><a href=/x><!-- c -->")
@example("<i-x<p><a href=/x><table><tr><s<a href=/z>")
def test_blocks_have_the_text_and_links_that_each_has_alone(markup: str) -> None:
    """Whatever stands around a block, its text and the share of it in links are its own."""
    for block in laid_out(markup).blocks:
        assert block.text == normal(bare(block.html))
        assert block.words == len(block.text.split())
        parts = [
            part
            for run, target in runs(block.html, [] if block.link is None else [block.link])
            if target is not None
            for part in TAG.split(run)
        ]
        linked = sum(len(normal(plain(part))) for part in parts) / len(block.text)
        assert block.linked == linked


def test_links_of_a_page_in_markdown() -> None:
    """A link over two blocks, one with tags inside, and one that leads nowhere."""
    page = laid_out(
        "<p>See <a href=/x><b>the</b>  [first] </a>one<p><a href='#top'>up</a>"
        "<a href=/card><div>A card</div><div>of two</div></a>"
    )
    assert markdown(page, range(4), "https://example.org/") == (
        "See [the [first]](https://example.org/x) one\n\nup\n\n"
        "[A card](https://example.org/card)\n\n[of two](https://example.org/card)"
    )


@each_row(
    ("base", "target"),
    [
        ("<base href=/v2/>", "https://e.example/v2/a"),
        ("<base target=_top><base href=https://o.example><base href=/v3/>", "https://o.example/a"),
        ("<base href='javascript:x'>", "https://e.example/docs/a"),
    ],
)
def test_links_start_from_the_address_that_a_page_names(base: str, target: str) -> None:
    """In its text as in the list of its links."""
    page = read(f"<head>{base}<p>A <a href=a>way</a>".encode(), "https://e.example/docs/b", None)
    assert (page.text, page.links) == (f"A [way]({target})", (target,))
