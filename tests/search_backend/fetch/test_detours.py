"""Ways to a page besides a plain answer: refreshes, cookie walls, encodings named wrongly."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping

import brotli
import pytest

from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.types import FetchFailed, FetchRefused, NotReachable
from tests.search_backend.hostile import (
    PUBLIC,
    HostileServer,
    Internet,
    Script,
    answer,
    redirect,
    serving,
)
from tests.tables import each_row

STORY = "<p>" + "A story of many words that people come to read. " * 20


def load(routes: Mapping[str, bytes | Script], path: str = "/") -> tuple[Fetched, HostileServer]:
    """The page at `path` of example.com, and the server that was asked."""
    with serving(routes) as server:
        net = Internet(server.port, {"example.com": [PUBLIC], "inside.example": ["10.0.0.1"]})
        page = net.fetch(f"http://example.com{path}")
    return page, server


def cookies(server: HostileServer) -> list[str]:
    """The Cookie header of each request, "" for none."""
    heads = [request.decode("latin-1").split("\r\n") for request in server.requests]
    found = [[line[8:] for line in head if line.startswith("Cookie: ")] for head in heads]
    return ["; ".join(lines) for lines in found]


def refreshing(content: str, body: str = "", before: str = "") -> bytes:
    """A page with such a refresh in its head."""
    tag = f'<meta http-equiv="Refresh" content="{content}">'
    return answer(f"<!doctype html><html><head>{before}{tag}</head><body>{body}".encode())


END = answer(b"<p>the end")


@each_row(
    "content",
    [
        "0;URL='/next'",
        " 1 , /next",
        "3; url=http://example.com/next",
        "5;/next",
        "10; url=next",
    ],
)
def test_a_refresh_is_followed_like_a_redirect(content: str) -> None:
    """From the tag, and from the header of the same name."""
    page, server = load({"/": refreshing(content), "/next": END})
    assert (page.final_url, page.redirects) == ("http://example.com/next", ("http://example.com/",))
    assert len(server.requests) == 2
    page, _ = load({"/": answer(b"Moved", f"Refresh: {content}"), "/next": END})
    assert (page.final_url, page.body) == ("http://example.com/next", b"<p>the end")


def test_a_refresh_starts_from_the_address_that_a_page_names() -> None:
    """As its links do."""
    for base, end in (("/deep/", "/deep/next"), ("http://example.com/b/c", "/b/next")):
        first = refreshing("0; url=next", before=f"<base href='{base}'>")
        assert load({"/": first, end: END})[0].final_url == f"http://example.com{end}"


@each_row(
    "first",
    [
        refreshing("300; url=/next"),
        refreshing("0", "Scores"),
        refreshing("5; url=/next", STORY),
        refreshing("0; url=data:text/html,x"),
        refreshing("soon; url=/next"),
        refreshing("30; url=/"),
        refreshing("0; url=/#top"),
        answer(b'<p>Write &lt;meta http-equiv="refresh" content="0;url=/next"&gt;'),
        answer(b'<!-- <meta http-equiv="refresh" content="0;url=/next"> --><p>x'),
        answer(b'<script>"<meta http-equiv=refresh content=0;url=/next>"</script><p>x'),
        answer(b'<template><meta http-equiv=refresh content="0;/next"></template><p>x'),
        answer(
            b'<noscript><meta http-equiv=refresh content="0;/next"></noscript>' + STORY.encode()
        ),
        answer(b'<meta http-equiv=refresh content="0;/next">', kind="text/plain"),
        answer(b"gone", "Refresh: 0; url=/next", status="404 Not Found"),
    ],
)
def test_other_pages_stay_where_they_are(first: bytes) -> None:
    """Slow ones, those of a story, of scripts, of examples, and a page that reloads itself."""
    page, server = load({"/": first, "/next": END})
    assert (page.final_url, page.redirects) == ("http://example.com/", ())
    assert len(server.requests) == 1


def test_a_shell_sends_readers_without_scripts_on() -> None:
    """What stands in noscript is for us when there is nothing else."""
    tag = '<noscript><meta http-equiv="refresh" content="0; url=/plain"></noscript>'
    page, _ = load({"/": answer(tag.encode() + b"<div id=app></div>"), "/plain": END})
    assert page.final_url == "http://example.com/plain"


@each_row(
    ("target", "error"),
    [
        ("http://inside.example/", NotReachable),
        ("//10.0.0.1/", NotReachable),
        ("http://2130706433/", FetchRefused),
    ],
)
def test_the_guard_judges_each_refresh(target: str, error: type[Exception]) -> None:
    """A page leads nowhere that could not have been asked for."""
    with serving({"/": refreshing(f"0; url={target}")}) as server:
        net = Internet(server.port, {"example.com": [PUBLIC], "inside.example": ["10.0.0.1"]})
        with pytest.raises(error):
            net.fetch("http://example.com/")
    assert net.connected == [(PUBLIC, 80)]


def test_refreshes_end() -> None:
    """A circle ends with the page that closes it, a chain with the sixth page."""
    page, server = load({"/": refreshing("0; url=/b"), "/b": refreshing("0; url=/", "B")})
    assert (page.final_url, len(server.requests)) == ("http://example.com/b", 2)
    chain = {f"/{n}": refreshing(f"0; url=/{n + 1}") for n in range(9)}
    page, server = load(chain, "/0")
    assert (page.final_url, len(server.requests)) == ("http://example.com/5", 6)


def wall(cookie: str, to: str = "/") -> Script:
    """Redirects to `to` with a cookie; the second time the page is there."""
    served = iter([redirect(to)[:-2] + f"Set-Cookie: {cookie}\r\n\r\n".encode()])
    return lambda: iter([next(served, END)])


@pytest.mark.parametrize(
    ("cookie", "sent"),
    [
        ("consent=1", "consent=1"),
        ("consent=1; Path=/; HttpOnly; SameSite=Lax", "consent=1"),
        ("id=a:b/c==; Domain=example.com; Max-Age=600", "id=a:b/c=="),
        ("id=1; Domain=other.example", ""),
        ("id=1; Secure", ""),
    ],
)
def test_a_cookie_wall_gets_its_cookie_back(cookie: str, sent: str) -> None:
    """A redirect to the same address is no circle once a cookie came; others' cookies are none."""
    if sent:
        page, server = load({"/": wall(cookie)})
        assert (page.body, cookies(server)) == (b"<p>the end", ["", sent])
        assert page.redirects == ("http://example.com/",)
    else:
        with pytest.raises(FetchFailed, match="circle"):
            load({"/": wall(cookie)})


def test_cookies_end_with_the_fetch_and_stay_on_their_site() -> None:
    """The next fetch has none, and another host is sent none."""
    first = redirect("http://other.example/x")[:-2] + b"Set-Cookie: id=1\r\n\r\n"
    with serving({"/": first, "/x": END}) as server:
        net = Internet(server.port)
        for _ in range(2):
            net.fetch("http://example.com/")
    assert cookies(server) == [""] * 4


def test_a_wall_that_changes_its_cookie_without_end_is_left() -> None:
    """The number of redirects is bounded all the same."""
    numbers = iter(range(99))

    def endless() -> Iterator[object]:
        yield redirect("/")[:-2] + f"Set-Cookie: n={next(numbers)}\r\n\r\n".encode()

    with pytest.raises(FetchFailed, match="too many times"):
        load({"/": endless})


TEXT = "Grün und weiß. ".encode() * 50
ZIPPED = gzip.compress(TEXT, mtime=0)
RAW = zlib.compressobj(6, zlib.DEFLATED, -15)
DEFLATED = RAW.compress(TEXT) + RAW.flush()


@each_row(
    ("body", "encoding"),
    [
        *((TEXT, name) for name in ("UTF-8", "utf8", "none", "identity", "Binary", "", "8bit")),
        (TEXT, "text/html; charset=utf-8"),
        (ZIPPED, ""),
        (ZIPPED, "utf-8"),
        (ZIPPED, "x-gzip"),
        (ZIPPED + b"\0" * 99, ""),
        (zlib.compress(TEXT), "deflate"),
        (DEFLATED, "deflate"),
        (brotli.compress(TEXT), "br"),
    ],
)
def test_a_body_is_unpacked_as_what_it_is(body: bytes, encoding: str) -> None:
    """A charset is no encoding, and a forgotten header hides no gzip."""
    page, _ = load({"/": answer(body, *([f"Content-Encoding: {encoding}"] if encoding else []))})
    assert (page.body, page.cut) == (TEXT, "")
