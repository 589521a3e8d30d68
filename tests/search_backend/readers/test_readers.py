"""Readers: main text without what is hidden, whatever the markup."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.readers import html, read, reader_for_name
from searchloop.search_backend.readers._html.bounds import DEEPEST, MOST_ELEMENTS, parsed
from searchloop.search_backend.types import Page
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data"


def read_html(markup: str | bytes) -> Page:
    """A page at https://example.org/tea/."""
    body = markup if isinstance(markup, bytes) else markup.encode()
    return read(body, url="https://example.org/tea/", content_type="text/html")


@pytest.fixture(scope="module")
def tea() -> Page:
    """The page with a hidden text of every kind."""
    return read_html((DATA / "hidden.html").read_bytes())


def test_what_is_hidden_is_not_read(tea: Page) -> None:
    """Attributes, styles, sheets, comments, scripts and templates hide nothing from a model."""
    assert "SECRET" not in tea.text
    assert "Shown on screens" in tea.text


def test_main_text_is_markdown_with_links_and_tables(tea: Page) -> None:
    """Headings, links and tables keep their shape; the furniture of the page goes."""
    assert tea.text.startswith("# Tea and biscuits")
    assert "[leaves](https://example.org/leaves?x=1#top)" in tea.text
    assert "| green | 2 |" in tea.text
    assert "All rights reserved" not in tea.text


def test_a_page_tells_about_itself(tea: Page) -> None:
    """Title and date; links are absolute, on the web, the main part's first."""
    assert tea.title == "Tea & biscuits"
    assert tea.published == "2026-03-04T05:06:07Z"
    assert tea.links == ("https://example.org/leaves?x=1", "https://example.org/home")


@each_row("body", [b"", b"<", b"<html", b"<!---", b"<p", b"\xff\xfe", b"<title>", b"\0" * 50])
def test_broken_markup_is_no_error(body: bytes) -> None:
    """Whatever comes, a page comes back."""
    assert isinstance(read(body, url="https://e.example/", content_type="text/html"), Page)


def test_a_bounded_page_keeps_its_text() -> None:
    """Levels beyond the bound go, what they hold stays; what is too long or too much is cut."""
    tree, cut = parsed("<div>" * 5_000 + "<p>core</p>" + "</div>" * 5_000)
    assert tree.body is not None
    assert ((tree.body.html or "").count("<div>"), cut) == (DEEPEST - 2, False)
    assert tree.body.text() == "core"
    tree, cut = parsed("<br>" * (MOST_ELEMENTS + 1))
    assert (len(tree.css("br")), cut) == (MOST_ELEMENTS, True)
    assert parsed("x" * 3_000_000)[1]


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/markdown"])
def test_what_was_taken_out_is_counted(kind: str) -> None:
    """A reader says how many characters were there that nobody sees; line ends are none."""
    words = "The tide is high at noon.\r\n" * 20
    for hidden, count in (("", 0), ("\u200b\U000e0041\u202e", 3)):
        page = read(f"<p>{hidden}{words}</p>".encode(), url="https://a.example/", content_type=kind)
        assert page.invisible == count
        assert "\u200b" not in page.text


RSS = """<?xml version="1.0"?><!-- SECRET --><rss version="2.0"><channel>
<title>Tea &amp; more</title>
<link>https://tea.example/</link><ttl>SECRET</ttl><item><title>First <!-- SECRET --> item</title>
<link>https://tea.example/1</link><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate>
<description><![CDATA[<p>Tea <b>is</b> good.</p><script>SECRET()</script><!-- SECRET -->
<div style="display:none">SECRET</div>]]></description></item>
<item><title><![CDATA[Second]]></title><description>&lt;p&gt;Kettles &lt;i&gt;are&lt;/i&gt; hot.
&lt;span hidden&gt;SECRET&lt;/span&gt;&lt;/p&gt;</description></item></channel></rss>"""
ATOM = """<a:feed xmlns:a="http://www.w3.org/2005/Atom">
<a:title type="html">&lt;b&gt;Tea &amp;amp; more
&lt;/b&gt;</a:title><a:id>SECRET</a:id><a:entry><a:title>First item</a:title>
<a:link rel="alternate" href='https://tea.example/1'/><a:content type="xhtml"><div><p>Tea <b>is</b>
good.</p><p hidden="">SECRET</p><script>SECRET</script></div></a:content></a:entry><a:entry>
<a:title>Second</a:title><a:summary>Kettles are hot.</a:summary></a:entry></a:feed>"""


@each_row("kind", ["application/rss+xml", "text/xml; charset=utf-8", "application/xml"])
@each_row("feed", [RSS, ATOM])
def test_a_feed_is_read_as_its_readers_show_it(kind: str, feed: str) -> None:
    """Titles, texts and links in order, and nothing that stands in it unseen."""
    page = read(feed.encode(), url="https://tea.example/feed", content_type=kind)
    assert (page.status, page.title) == ("ok", "Tea & more")
    assert "SECRET" not in page.text
    words = ["Tea & more", "First item", "Tea is good.", "Second", "hot."]
    places = [page.text.find(word) for word in words]
    assert -1 not in places
    assert places == sorted(places)
    assert "<" not in page.text
    assert "https://tea.example/1" in page.links


def test_other_xml_is_shown_as_it_is() -> None:
    """Its marks are what one came for; XHTML is read as HTML, whatever it is called."""
    body = b"<html><body><p>Seen.</p><p hidden='hidden'>SECRET</p></body></html>"
    assert read(body, url="https://e.example/", content_type="text/xml").text == "Seen."
    text = "<project><!-- why --><version>1.2</version></project>"
    page = read(text.encode(), url="https://e.example/pom.xml", content_type="application/xml")
    assert (page.title, page.text) == ("pom.xml", text)


FEED = "<rss>|<title>|</title>|<![CDATA[|]]>|<!--|-->|<|>|<link|/>|&lt;p&gt;|x| href='|'|<content>"


@given(st.lists(st.sampled_from([*FEED.split("|"), "</content>", "<?", "<!"])))
def test_no_feed_is_too_broken(parts: list[str]) -> None:
    """Whatever is open, closed or left out, it is a page."""
    page = read(
        "".join(["<rss>", *parts]).encode(), url="https://e.example/", content_type="text/xml"
    )
    assert page.status == "ok"


def test_markdown_gives_its_title() -> None:
    """The first heading, else the name of the file."""
    rows = ((b"in\n\n# The *thing*\n", "a.md", "The *thing*"), (b"x", "a%20b.txt", "a b.txt"))
    for body, name, title in rows:
        page = read(body, url=f"https://e.example/{name}", content_type="text/plain")
        assert page.title == title


def test_readers_are_found_by_file() -> None:
    """By the end of a name, whatever its letters."""
    assert [reader_for_name("A.HTML"), reader_for_name("a.exe")] == [html.READER, None]
