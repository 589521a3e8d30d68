"""Pages are shown again for as long as HTTP allows."""

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

from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.cache.pages import LONGEST, READING_SECONDS, freshness
from searchloop.search_backend.fetch.host_check import Rules
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.open_page import Pages
from searchloop.search_backend.pages.reading import Reading
from searchloop.search_backend.types import FetchFailed
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
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60", "age": "70"}, 0),
        ({"cache-control": "max-age=60", "expires": at(-40)}, 60),
        ({"cache-control": "max-age=0"}, 0),
        ({"cache-control": "max-age=soon"}, 0),
        ({"cache-control": "max-age=99999999999999999999"}, LONGEST),
        ({"cache-control": "no-cache, max-age=60"}, 0),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"expires": at(30)}, 30),
        ({"expires": "0"}, 0),
        ({"expires": "never"}, 0),
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
    """Anything a server sends gives a time within bounds."""
    assert 0 <= freshness(headers, NOW, 900).seconds <= LONGEST


class Web:
    """One page whose headers and text may change; `asked` counts the requests."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.text = TEXT
        self.asked = 0
        self.down = False
        self.gate: threading.Event | None = None
        self.cut = ""

    def __call__(self, url: str, **how: object) -> Fetched:
        """The page."""
        self.asked += 1
        if self.gate:
            assert self.gate.wait(60)
        if self.down:
            raise FetchFailed("timeout", "Too slow.", "Later.")
        body, cut = self.text.encode(), self.cut
        return Fetched(
            url, url, 200, "text/plain", None, body, bool(cut), headers=self.headers, cut=cut
        )


class House:
    """Pages over that web, with a clock."""

    def __init__(self, home: Path, web: Web, usual: float = 900.0, offline: bool = False) -> None:
        self.home, self.web, self.usual, self.offline = home, web, usual, offline
        self.passed = 0.0
        self.library = Library(home, dict)
        self.restart()

    def clock(self) -> float:
        """Seconds since the epoch."""
        return NOW + self.passed

    def restart(self) -> None:
        """Nothing is in memory any more."""
        self.pages = Pages(
            Reading(self.web, usual=self.usual),
            self.library,
            offline=self.offline,
            cache=Cache(self.clock),
        )

    def open(self, **how: object) -> tuple[str, object, int]:
        """Origin, age and requests so far."""
        view = self.pages.open_page(URL, **how)  # type: ignore[arg-type]
        assert view.page.status == "ok"
        return view.origin, view.as_json().get("age"), self.web.asked


def test_a_fresh_page_is_not_fetched_again(tmp_path: Path) -> None:
    """It says that it is kept and how old it is; then it is fetched."""
    house = House(tmp_path, Web(cache_control="max-age=60"))
    assert house.open() == ("web", None, 1)
    house.passed = 59
    assert house.open() == ("cache", 59, 1)
    assert house.pages.open_page(URL).as_json()["cached"] is True
    house.passed = 60
    assert house.open() == ("web", None, 2)


def test_no_store_is_not_written_down(tmp_path: Path) -> None:
    """Not in the library either; one may read on in it, and opening it fetches it."""
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
    assert (shape["origin"], shape["age"], web.asked) == ("cache", 100, 2)
    assert shape["stale"]["message"]
    assert house.open(offline=True) == ("cache", 100, 2)


def test_nothing_is_kept_when_that_is_set(tmp_path: Path) -> None:
    """With no time of our own a page that says nothing is fetched each time."""
    house = House(tmp_path, Web(), usual=0.0)
    assert [house.open()[2] for _ in range(3)] == [1, 2, 3]


def test_rules_hold_for_the_redirects_of_a_kept_page(tmp_path: Path) -> None:
    """A page that was reached over a host is not shown where that host is
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
    assert house.open()[0::2] == ("cache", 1)


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
    assert web.asked == 1
