"""Readers: main text without what is hidden, whatever the markup."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.plugin.answers import judge
from searchloop.search_backend.readers import find_readers, read, reader_for_name
from searchloop.search_backend.readers._html.bounds import DEEPEST, bounded
from searchloop.search_backend.text.clean import clean, decode
from searchloop.search_backend.types import Page
from tests.tables import each_row
from tests.waiting import at_cost

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
    """Title, author, date and language; links are absolute, on the web, the main part's first."""
    assert (tea.title, tea.byline, tea.language) == ("Tea & biscuits", "Ada Example", "en-GB")
    assert tea.published == "2026-03-04T05:06:07Z"
    assert tea.links == ("https://example.org/leaves?x=1", "https://example.org/home")


@each_row(
    ("style", "hidden"),
    [
        ("display:none", True),
        ("DISPLAY : NONE !important", True),
        ("display/**/:/*x*/none", True),
        ("color:red;visibility:hidden", True),
        ("font-size: 0px", True),
        ("font-size: 0.9em", False),
        ("opacity: 0.0", True),
        ("opacity: 0.05", False),
        ("opacity: .5", False),
        ("left:-9999px", True),
        ("left:-10px", False),
        ("max-height:0", True),
        ("height:0.5em", False),
        ("display:block", False),
        ("background:url(display:none.png)", False),
        (r"d\69splay:n\00006f ne", True),
        ("font-size:0cm", True),
        ("color:rgba(0, 0, 0, 0.0)", True),
        ("color:rgb(0 0 0 / 0%)", True),
        ("color:#0000", True),
        ("color:#12345600", True),
        ("color:rgba(0,0,0,.9)", False),
        ("color:#000", False),
        ("color:#123450", False),
        ("background-color:#0000", False),
        ("clip:rect(1px, 1px, 1px, 1px)", True),
        ("clip-path:circle(0)", True),
        ("clip-path:circle(0.5px)", False),
        ("transform:scaleX(0)", True),
        ("transform:translateX(-9999px)", True),
        ("transform:translateX(-50%)", False),
        ("left:-999em", True),
        ("filter:opacity(0.5)", False),
    ],
)
def test_styles_that_hide(style: str, hidden: bool) -> None:
    """Only what cannot be seen counts as hidden; beside a sheet elsewhere what may be."""
    head = "<link rel=stylesheet href=/all.css>"
    words = "Some ordinary words that stand on the page. " * 8
    page = read_html(f"{head}<p>{words}</p><p style='{style}'>SECRET</p>")
    assert ("SECRET" not in page.text) is hidden


@pytest.mark.parametrize(
    "markup",
    [
        "<noembed>SECRET</noembed>",
        "<noframes>SECRET</noframes>",
        "<title>SECRET</title>",
        "<math><semantics><mi>x</mi><annotation>SECRET</annotation></semantics></math>",
    ],
)
def test_elements_that_no_browser_shows(markup: str) -> None:
    """Their text is in the tree, and nowhere on the screen."""
    page = read_html(
        f"<!doctype html><title>t</title><p>Some words to read.</p>{markup}<p>More.</p>"
    )
    assert "Some words" in page.text
    assert "SECRET" not in page.text


def test_a_page_hidden_until_a_script_runs_is_read() -> None:
    """A sheet that hides nearly everything is no trick but a loading screen."""
    words = "Ordinary words that are shown once a script has run. " * 20
    page = read_html(f"<style>.app{{display:none}}</style><div class=app><p>{words}</p></div>")
    assert "Ordinary words" in page.text


def test_text_inside_noscript_is_read_when_it_is_the_page() -> None:
    """Some forums keep their posts there."""
    post = "A post of some length about the matter at hand. " * 30
    page = read_html(f"<body><div>x</div><noscript><article><p>{post}</p></article></noscript>")
    assert "A post of some length" in page.text


def test_an_empty_shell_needs_scripts() -> None:
    """An application without text is told apart from a page, with advice."""
    page = read_html((DATA / "shell.html").read_bytes())
    assert (page.status, page.text) == ("needs_js", "")
    assert page.error is not None
    assert page.error.remedy


@each_row("body", [b"", b"<", b"<html", b"<!---", b"<p", b"\xff\xfe", b"<title>", b"\0" * 50])
def test_broken_markup_is_no_error(body: bytes) -> None:
    """Whatever comes, a page comes back."""
    assert isinstance(read(body, url="https://e.example/", content_type="text/html"), Page)


@given(
    st.lists(
        st.sampled_from(
            [
                "<div>",
                "</div>",
                "<p hidden>",
                "<b>",
                "</b>",
                "<table>",
                "<td>",
                "<!--",
                "-->",
                "x ",
                "<style>.a{display:none}</style>",
                "<a href='/x' class=a>",
                "<noscript>",
                '"',
                "'",
                "<",
            ]
        ),
        max_size=60,
    ).map("".join)
)
def test_any_markup_can_be_read(markup: str) -> None:
    """Generated nonsense is read without an exception."""
    assert read_html(markup).url


HOSTILE = {
    "deep blocks": "<div>" * 100_000 + "hello " * 50 + "</div>" * 100_000,
    "deep blocks, closed in comments": "<div><!--</div>-->" * 50_000 + "hello " * 50,
    "deep blocks, closed in quotes": "<div><p title='</div>'>" * 50_000 + "hello",
    "deep custom elements": "<x-y>" * 100_000 + "hello",
    "deep tables": "<table><tr><td>" * 30_000 + "hello",
    "repeated formatting": "<p>" + "".join(f"<b id={n}>" for n in range(5_000)) + "<p>x" * 20_000,
    "one tag of many attributes": "<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">hello",
    "attributes with signs in quotes": "<p " + " ".join(f"a{n}='>'" for n in range(90_000)) + ">x",
    "many paragraphs": "<p>x" * 100_000,
    "open comments": "<!--" * 200_000,
    "only signs": "<" * 500_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_costs_little(name: str) -> None:
    """Markup made to blow up a parser is read in time, and without touching Python's stack."""
    limit = sys.getrecursionlimit()
    page = at_cost(lambda: read_html("<html><body>" + HOSTILE[name]), 6)
    assert page.status in ("ok", "needs_js")
    assert sys.getrecursionlimit() == limit


def test_ordinary_markup_is_left_alone() -> None:
    """Only large or strange pages are written anew."""
    markup = (DATA / "hidden.html").read_text("utf-8")
    assert bounded(markup) == (markup, False)


def test_a_bounded_page_keeps_its_text() -> None:
    """Levels beyond the bound go, what they hold stays."""
    deep = "<div>" * 5_000 + "<p class='a>b' onclick='x'>core &amp; more</p>" + "</div>" * 5_000
    markup, cut = bounded(deep)
    assert markup.count("<div>") == DEEPEST
    assert '<p class="a>b">core &amp; more</p>' in markup
    assert not cut
    assert bounded("x" * 3_000_000)[1]


def test_invisible_characters_go() -> None:
    """Tags, bidi controls, zero-width characters and controls are stripped; text is not."""
    dirty = "a\u200bb\u202ec\U000e0041d\U000e0100e\x00f\ufeffg\r\nh\tï 漢 😀 \u0301"
    assert clean(dirty) == "abcdefg\nh\tï 漢 😀 \u0301"


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/markdown"])
def test_what_was_taken_out_is_counted(kind: str) -> None:
    """A reader says how many characters were there that nobody sees; line ends are none."""
    words = "The tide is high at noon.\r\n" * 20
    for hidden, count in (("", 0), ("\u200b\U000e0041\u202e", 3)):
        page = read(f"<p>{hidden}{words}</p>".encode(), url="https://a.example/", content_type=kind)
        assert page.invisible == count
        assert "\u200b" not in page.text


@given(st.text())
def test_clean_text_can_be_encoded_and_stays_clean(text: str) -> None:
    """Cleaning twice is cleaning once."""
    once = clean(text)
    assert clean(once) == once
    assert once.encode().decode() == once


@each_row(
    ("body", "declared", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode("latin-1"), None, "é"),
        ("é".encode("latin-1"), "ISO-8859-1", "é"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        (b'<meta charset="windows-1251">' + "да".encode("cp1251"), None, "да"),
        (b"\xef\xbb\xbf" + "é".encode(), "latin-1", "é"),
        ("é".encode("utf-16"), None, "é"),
        ("é".encode(), "utf-7", "é"),
        ("é".encode(), "rot13", "é"),
        ("é".encode(), "no-such-thing", "é"),
        ("éaé".encode()[:-1], None, "éa"),
    ],
)
def test_bytes_are_decoded_as_browsers_do(body: bytes, declared: str | None, text: str) -> None:
    """Mark, header, the page's own word, UTF-8; dangerous codecs are not a page's to choose."""
    assert decode(body, declared).endswith(text)


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain", b"Plain\r\ntext", "Plain\ntext"),
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/feed+json", b"[1]", "[1]"),
        ("application/octet-stream", b"<!DOCTYPE html><p>Hello there</p>", "Hello there"),
        ("", b"just words", "just words"),
    ],
)
def test_kinds_of_documents(content_type: str, body: bytes, text: str) -> None:
    """The header names the kind; where it says nothing the first bytes do."""
    page = read(body, url="https://e.example/notes.txt", content_type=content_type)
    assert (page.status, page.text) == ("ok", text)


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


@given(
    st.lists(
        st.sampled_from(
            [
                "<rss>",
                "<title>",
                "</title>",
                "<![CDATA[",
                "]]>",
                "<!--",
                "-->",
                "<",
                ">",
                "<link",
                "/>",
                "&lt;p&gt;",
                "x",
                " href='",
                "'",
                "<content>",
                "</content>",
                "<?",
                "<!",
            ]
        )
    )
)
def test_no_feed_is_too_broken(parts: list[str]) -> None:
    """Whatever is open, closed or left out, it is a page."""
    page = read(
        "".join(["<rss>", *parts]).encode(), url="https://e.example/", content_type="text/xml"
    )
    assert page.status == "ok"


@each_row(
    "piece", ["<title>", "<!--", "<![CDATA[", "<", "a.", "<link href='", "<content>&lt;p&gt;"]
)
def test_a_feed_that_repeats_itself_is_not_slow(piece: str) -> None:
    """Four times as much costs about four times as much."""

    def cost(length: int) -> float:
        body = ("<rss><" + piece * (length // len(piece))).encode()
        started = time.thread_time()
        read(body, url="https://e.example/", content_type="text/xml")
        return time.thread_time() - started

    assert min(cost(80_000) for _ in range(3)) < 0.1 + 8 * min(cost(20_000) for _ in range(3))


def test_what_cannot_be_read_is_told() -> None:
    """A picture is no page, and no text either that stands in one."""
    drawn = b"<svg><desc>hidden</desc></svg>"
    assert read(drawn, url="https://e.example/a", content_type="image/svg+xml").status == "error"
    page = read(b"\x89PNG\r\n\x00\x00", url="https://e.example/a.png", content_type="image/png")
    assert page.status == "error"
    assert page.error is not None
    assert (page.error.code, "image/png" in page.error.message) == ("unsupported_type", True)


def test_markdown_gives_its_title() -> None:
    """The first heading, else the name of the file."""
    page = read(
        b"intro\n\n# The *thing*\n", url="https://e.example/a.md", content_type="text/markdown"
    )
    assert page.title == "The *thing*"
    assert (
        read(b"x", url="https://e.example/a%20b.txt", content_type="text/plain").title == "a b.txt"
    )


def test_pdf_is_read_or_its_remedy_named() -> None:
    """Without the optional package the answer says what to install."""
    page = read(b"%PDF-1.4 damaged", url="https://e.example/a.pdf", content_type="text/html")
    assert page.status == "error"
    assert page.error is not None
    assert page.error.code in ("pdf_not_installed", "bad_pdf")
    assert page.error.remedy


def test_readers_are_found_by_file() -> None:
    """Files in readers/ are readers, private modules are not."""
    assert len(find_readers()) >= 3
    html = reader_for_name("A.HTML")
    assert html is not None
    assert "text/html" in html.types
    assert reader_for_name("a.exe") is None


@each_row(
    ("status", "challenged", "expected"),
    [
        (200, False, "ok"),
        *((status, True, "blocked") for status in (200, 202, 403, 405, 429, 503)),
        *((status, False, "blocked") for status in (403, 429, 451, 503)),
        *((status, False, "error") for status in (401, 404, 407, 410, 418, 500)),
    ],
)
def test_refusals_and_faults_are_no_pages(status: int, challenged: bool, expected: str) -> None:
    """Statuses and challenge pages give a status of ours with advice, never content."""
    judged, problem = judge(status, challenged)
    assert judged == expected
    assert (problem is None) is (expected == "ok")
    assert problem is None or problem.remedy
