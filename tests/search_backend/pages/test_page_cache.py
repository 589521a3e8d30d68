"""Pages are shown again for as long as HTTP allows, and asked for again by their version."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.cache.disk import Disk
from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.cache.pages import (
    LONGEST,
    READING_SECONDS,
    conditions,
    freshness,
)
from searchloop.search_backend.fetch.host_check import Rules
from searchloop.search_backend.fetch.http import Fetched, Known
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.open_page import Pages
from searchloop.search_backend.pages.reading import Reading
from searchloop.search_backend.types import FetchFailed
from tests.search_backend.fetch.test_fetch import Internet
from tests.search_backend.hostile import answer, serving
from tests.tables import each_row

URL = "https://example.org/a"
NOW = 1_800_000_000.0
TEXT = "A page about tea and kettles. " * 20


def at(seconds: float) -> str:
    """An HTTP date, so many seconds from now."""
    return formatdate(NOW + seconds, usegmt=True)


@each_row(
    ("headers", "seconds"),
    [
        ({}, 900),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "private, max-age=60, s-maxage=5"}, 60),
        ({"cache-control": 'Max-Age="60"'}, 60),
        ({"cache-control": "max-age=60, max-age=30"}, 30),
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60", "age": "70"}, 0),
        ({"cache-control": "max-age=60", "expires": at(-40)}, 60),
        ({"cache-control": "max-age=0"}, 0),
        ({"cache-control": "max-age=-1"}, 0),
        ({"cache-control": "max-age=soon"}, 0),
        ({"cache-control": "max-age"}, 0),
        ({"cache-control": "max-age=99999999999999999999"}, LONGEST),
        ({"cache-control": "no-cache, max-age=60"}, 0),
        ({"cache-control": 'no-cache="x"'}, 0),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"expires": at(30)}, 30),
        ({"expires": at(-30)}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "never"}, 0),
        ({"last-modified": at(-1_000)}, 900),
    ],
)
def test_how_long_a_page_is_fresh(headers: Mapping[str, str], seconds: float) -> None:
    """What the server says, else the usual; never over a day."""
    assert freshness(headers, NOW, 900).seconds == seconds


@given(
    st.dictionaries(
        st.sampled_from(["cache-control", "expires", "age", "date", "etag", "vary"]),
        st.text(max_size=40),
    )
)
def test_no_header_breaks_it(headers: dict[str, str]) -> None:
    """Anything a server sends gives a time within bounds and conditions that a head can carry."""
    known = freshness(headers, NOW, 900)
    assert 0 <= known.seconds <= LONGEST
    for value in conditions(known).values():
        assert value.isascii()
        assert value.isprintable()


@each_row(
    ("header", "sent"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ("a", False),
        ('"a\r\nX: y"', False),
        ('"ä"', False),
        ("", False),
    ],
)
def test_only_a_tag_that_is_one_goes_back(header: str, sent: bool) -> None:
    """A server cannot put a line of its own into our next request."""
    assert ("If-None-Match" in conditions(freshness({"etag": header}, NOW, 900))) is sent


class Web:
    """One page whose headers and text may change. `asked` are the conditions of each request."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.text = TEXT
        self.asked: list[Mapping[str, str] | None] = []
        self.down = False
        self.gate: threading.Event | None = None
        self.cut = ""

    def __call__(self, url: str, *, known: Known | None = None, **how: object) -> Fetched:
        """The page, or 304 for whoever knows its tag."""
        self.asked.append(known.conditions if known else None)
        if self.gate:
            assert self.gate.wait(60)
        if self.down:
            raise FetchFailed("timeout", "Too slow.", "Later.")
        if known and known.conditions.get("If-None-Match") == self.headers.get("etag"):
            return Fetched(url, url, 304, "", None, b"", headers=self.headers)
        body, cut = self.text.encode(), self.cut
        return Fetched(
            url, url, 200, "text/plain", None, body, bool(cut), headers=self.headers, cut=cut
        )


class House:
    """Pages over that web, with a clock and a disk."""

    def __init__(self, home: Path, web: Web, usual: float = 900.0, offline: bool = False) -> None:
        self.home, self.web, self.usual, self.offline = home, web, usual, offline
        self.passed = 0.0
        self.library = Library(home, dict)
        self.disk: Disk | None = None
        self.restart()

    def clock(self) -> float:
        """Seconds since the epoch."""
        return NOW + self.passed

    def restart(self) -> None:
        """Nothing is in memory any more."""
        if self.disk is not None:
            self.disk.close()
        self.disk = Disk(self.home, 2**20, clock=self.clock)
        self.pages = Pages(
            Reading(self.web, usual=self.usual),
            self.library,
            offline=self.offline,
            cache=Cache(self.disk, self.clock),
        )

    def open(self, **how: object) -> tuple[str, object, int]:
        """Origin, age and requests so far."""
        view = self.pages.open_page(URL, **how)  # type: ignore[arg-type]
        assert view.page.status == "ok"
        return view.origin, view.as_json().get("age"), len(self.web.asked)


def test_a_fresh_page_is_not_fetched_again(tmp_path: Path) -> None:
    """It says that it is kept and how old it is, also after a restart; then it is fetched."""
    house = House(tmp_path, Web(cache_control="max-age=60"))
    assert house.open() == ("web", None, 1)
    house.passed = 59
    assert house.open() == ("cache", 59, 1)
    house.restart()
    assert house.open() == ("cache", 59, 1)
    assert house.pages.open_page(URL).as_json()["cached"] is True
    house.passed = 60
    assert house.open() == ("web", None, 2)


def test_a_stale_page_is_asked_for_by_its_version(tmp_path: Path) -> None:
    """Unchanged, it is fresh again without being read again; changed, it is the new one."""
    web = Web(cache_control="max-age=60", etag='"one"', last_modified=at(-1_000))
    house = House(tmp_path, web)
    house.open()
    house.passed = 60
    house.restart()
    assert house.open() == ("cache", 0, 2)
    assert web.asked[1] == {"If-None-Match": '"one"', "If-Modified-Since": at(-1_000)}
    house.passed = 119
    assert house.open() == ("cache", 59, 2)
    web.headers["etag"], web.text = '"two"', "Another text. " * 20
    house.passed = 120
    view = house.pages.open_page(URL)
    assert (view.origin, view.content[:12]) == ("web", "Another text")
    house.passed = 180
    house.open()
    assert web.asked[-1] is not None
    assert web.asked[-1]["If-None-Match"] == '"two"'


def test_no_store_is_not_written_down(tmp_path: Path) -> None:
    """Neither on disk nor in the library; one may read on in it, and opening it fetches it."""
    house = House(tmp_path, Web(cache_control="no-store, max-age=600"))
    house.open()
    assert house.open(offset=10)[0] == "cache"
    assert house.open(find="kettles")[0] == "cache"
    assert house.open()[0::2] == ("web", 2)
    house.restart()
    assert house.open()[0::2] == ("web", 3)
    assert house.library.open(URL) is None
    assert not any(b"kettles" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("control", ["no-cache", "max-age=0", "no-store"])
def test_reading_on_stays_in_the_page_that_was_opened(tmp_path: Path, control: str) -> None:
    """Offsets mean one text: the slices come from it, however short its server wants it kept."""
    web = Web(cache_control=control)
    house = House(tmp_path, web)
    house.open()
    web.text = "Changed in between. " * 40
    house.passed = READING_SECONDS - 1
    view = house.pages.open_page(URL, offset=len("A page about "), max_length=3)
    assert (view.content, view.origin) == ("tea", "cache")
    house.passed += 1
    assert house.pages.open_page(URL, offset=0).content.startswith("Changed")


def test_a_page_that_broke_off_is_fetched_again(tmp_path: Path) -> None:
    """There may be more of it the next time; what was cut by our own bounds stays cut."""
    web = Web(cache_control="max-age=600")
    house = House(tmp_path, web)
    for cut, requests in (("connection", 1), ("deadline", 2), ("max_bytes", 3), ("", 3)):
        web.cut = cut
        assert house.open()[2] == requests


def test_a_stale_page_is_better_than_none(tmp_path: Path) -> None:
    """When its server does not answer, and when nothing may leave this machine."""
    web = Web(cache_control="max-age=60")
    house = House(tmp_path, web)
    house.open()
    house.passed, web.down = 100, True
    shape = house.pages.open_page(URL).as_json()
    assert (shape["origin"], shape["age"], len(web.asked)) == ("cache", 100, 2)
    assert shape["stale"]["message"]
    assert house.open(offline=True) == ("cache", 100, 2)
    house.offline = True
    house.restart()
    assert house.open() == ("cache", 100, 2)


def test_nothing_is_kept_when_that_is_set(tmp_path: Path) -> None:
    """With no time of our own a page that says nothing is fetched each time."""
    house = House(tmp_path, Web(), usual=0.0)
    assert [house.open()[2] for _ in range(3)] == [1, 2, 3]


def test_rules_hold_for_the_redirects_of_a_kept_page(tmp_path: Path) -> None:
    """A page that was reached over a host is not shown, from memory or disk, where that host is
    blocked or is not among the allowed."""
    way = ("http://tracker.example/x", "https://example.org/b")

    class Led(Web):
        def __call__(self, url: str, **how: object) -> Fetched:
            return replace(super().__call__(url), redirects=(URL, *way))

    house = House(tmp_path, Led(cache_control="max-age=600"))
    house.open()
    for rules in (Rules(blocked=("tracker.example",)), Rules(allowed=("example.org",))):
        for _ in range(2):
            view = house.pages.open_page(URL, rules=rules)
            assert (view.page.status, view.content) == ("error", "")
            assert view.page.error is not None
            assert view.page.error.code == "refused_domain"
            house.restart()
    assert house.open()[0::2] == ("cache", 1)


@pytest.mark.parametrize(
    ("place", "headers"),
    [
        ("https://evil.example/", {}),
        ("https://evil.example/", {"etag": '"one"'}),
        (URL, {"etag": '"two"'}),
        (URL, {"last-modified": at(-5)}),
    ],
)
def test_no_change_counts_for_the_version_that_was_asked_about(
    tmp_path: Path, place: str, headers: dict[str, str]
) -> None:
    """A 304 of another server or about another version says nothing: the page is fetched anew, as
    if it had never been read."""

    class Confused(Web):
        def __call__(self, url: str, *, known: Known | None = None, **how: object) -> Fetched:
            if known is None:
                return super().__call__(url)
            self.asked.append(known.conditions)
            return Fetched(url, place, 304, "", None, b"", headers=headers)

    tag, changed = '"one"', at(-1000)
    first = {"last_modified": changed} if "last-modified" in headers else {"etag": tag}
    web = Confused(cache_control="max-age=0", **first)
    house = House(tmp_path, web)
    house.open()
    web.text = "Changed in between. " * 40
    view = house.pages.open_page(URL)
    assert (view.origin, view.content[:7]) == ("web", "Changed")
    assert web.asked[1:] == [conditions(freshness(web.headers, NOW, 0)), None]


def test_equal_pages_at_once_are_fetched_once(tmp_path: Path) -> None:
    """Sixteen at the same moment cost one request, and all get the page."""
    web = Web(cache_control="max-age=600")
    web.gate = threading.Event()
    house = House(tmp_path, web)
    with ThreadPoolExecutor(16) as pool:
        opened = [pool.submit(house.pages.open_page, URL) for _ in range(16)]
        while not web.asked:
            threading.Event().wait(0.001)
        web.gate.set()
        assert {view.result().content for view in opened} == {TEXT.strip()}
    assert len(web.asked) == 1


def test_the_version_goes_only_to_the_server_that_gave_it() -> None:
    """Over the guarded fetch: after a redirect, only the last server is asked by version."""
    tag = '"v1"'
    same = b"HTTP/1.1 304 Not Modified\r\nETag: " + tag.encode() + b"\r\n\r\n"
    page = answer(b"text", "Content-Length: 4", f"ETag: {tag}", kind="text/plain")
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://other.example/b\r\nContent-Length: 0\r\n\r\n"
    with serving({"/a": moved, "/b": page}) as server:
        net = Internet(server.port)

        def get(known: Known | None) -> Fetched:
            return net.fetch("http://first.example/a", known=known)

        first = get(None)
        assert (first.final_url, first.headers["etag"]) == ("http://other.example/b", tag)
        server.routes["/b"] = same
        second = get(Known(first.final_url, {"If-None-Match": tag}))
        assert (second.status, second.body) == (304, b"")
    heads = [request.decode() for request in server.requests]
    assert [tag in head for head in heads] == [False, False, False, True]
