"""Readers elsewhere, against fakes of their documented API, and who may be told an address."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.host_check import Rules, vet
from searchloop.search_backend.fetch.http import Fetched, FetchLimits
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.open_page import Pages
from searchloop.search_backend.pages.reading import Reading
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.readers import find_services
from searchloop.search_backend.types import (
    EngineError,
    FetchFailed,
    FetchRefused,
    NotReachable,
    PageView,
    SearchBackendError,
)
from tests.fakes import FakeServer, Reply, json_reply
from tests.tables import cut

DATA = Path(__file__).parents[1] / "data"
URL = "https://example.org/app"
TEXT = "# Tea\n\nGreen [tea](https://example.org/tea) is brewed in a kettle.\n\n![cup](x.png)"
KEY = "k-0123456789"
NAMES = ("crawl4ai", "firecrawl", "jina", "tavily")
EVERY = pytest.mark.parametrize("name", NAMES)
SHELL = Fetched(URL, URL, 200, "text/html", None, (DATA / "shell.html").read_bytes())


@dataclass(frozen=True)
class Case:
    """What a service answers: a page that was read, and one that it could not open."""

    settings: dict[str, str]
    path: str
    good: Any
    bad: Any


def case(name: str, url: str) -> Case:
    """The service of this name, with the fake at `url` in its place."""
    return {
        "jina": Case(
            {"JINA_READER_BASE_URL": url, "JINA_API_KEY": KEY},
            "/",
            {"data": {"title": "Tea", "url": URL, "content": TEXT}},
            {"data": {"warning": "Target URL returned error 404: Not Found", "url": URL}},
        ),
        "tavily": Case(
            {"TAVILY_BASE_URL": url, "TAVILY_API_KEY": KEY},
            "/extract",
            {"results": [{"url": URL, "raw_content": TEXT}], "failed_results": []},
            {"results": [], "failed_results": [{"url": URL, "error": "Failed to fetch url"}]},
        ),
        "firecrawl": Case(
            {"FIRECRAWL_BASE_URL": url, "FIRECRAWL_API_KEY": KEY},
            "/v2/scrape",
            {"data": {"markdown": TEXT, "metadata": {"title": "Tea", "sourceURL": URL}}},
            {"data": {"markdown": "Gone", "metadata": {"statusCode": 404}}},
        ),
        "crawl4ai": Case(
            {"CRAWL4AI_URL": url.replace("://", f"://:{KEY}@")},
            "/md",
            {"url": URL, "filter": "fit", "markdown": TEXT, "success": True},
            {"url": URL, "success": False, "error_message": "net::ERR_ABORTED"},
        ),
    }[name]


def resolve(host: str, _port: int) -> list[str]:
    """One public name, one private."""
    return {"example.org": ["93.184.215.14"], "inside.example": ["10.0.0.8"]}[host]


class FakeFetch:
    """One answer for every address; counts what was fetched."""

    def __init__(self, answer: Fetched | Exception = SHELL) -> None:
        self.answer = answer
        self.urls: list[str] = []

    def __call__(self, url: str, *, host_allowed: Callable[[str], bool] | None = None) -> Fetched:
        self.urls.append(url)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class House:
    """Pages over a fake fetch and one fake service."""

    def __init__(self, home: Path, name: str, server: FakeServer, **more: Any) -> None:
        self.fetch = more.pop("fetch", None) or FakeFetch()
        order = more.pop("order", ("local", name))
        keys = {**case(name, server.url).settings, **more.pop("keys", {})}
        calls = ServiceCalls(keys, more.pop("seconds", 5.0))
        guard = partial(vet, resolve=resolve, limits=FetchLimits(failure_step=0))
        reading = Reading(self.fetch, guard, find_services(), calls.read, order)
        self.pages = Pages(reading, Library(home, dict), **more)

    def open(self, url: str = URL, **more: Any) -> PageView:
        """The page, as POST /api/open-page gives it."""
        return self.pages.open_page(url, **more)


def test_every_service_is_tested_here() -> None:
    """A new reader elsewhere brings its case."""
    assert set(find_services()) == set(NAMES)


@EVERY
def test_a_shell_is_read_elsewhere_when_the_user_chose_so(tmp_path: Path, name: str) -> None:
    """Local first; then the service's page, with links, without images, and it is said."""
    with FakeServer([json_reply(case(name, "").good)]) as server:
        house = House(tmp_path, name, server)
        shape = house.open().as_json()
        (asked,) = server.requests
    assert (shape["status"], shape["reader"], shape["title"]) == ("ok", name, "Tea")
    assert shape["content"] == TEXT.replace("![cup](x.png)", "cup")
    assert shape["links"] == ["https://example.org/tea"]
    tried = [(a["reader"], a["status"]) for a in shape["attempts"]]
    assert tried == [("local", "needs_js"), (name, "ok")]
    assert house.fetch.urls == [URL]
    assert (asked.method, asked.path) == ("POST", case(name, "").path)
    assert URL in asked.body.decode()
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in asked.path + asked.body.decode()


@EVERY
def test_a_page_that_a_service_cannot_open(tmp_path: Path, name: str) -> None:
    """Its words are told, and are never taken for the page."""
    with FakeServer([json_reply(case(name, "").bad)]) as server:
        shape = House(tmp_path, name, server).open(reader=name).as_json()
    assert (shape["status"], shape["content"]) == ("error", "")
    assert shape["error"]["message"].endswith(".")
    assert shape["error"]["remedy"]


@EVERY
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (json_reply({"error": f"bad key {KEY}"}, 401), "reader_auth"),
        (json_reply({"error": "slow down"}, 429), "reader_rate"),
        (json_reply({"detail": "credits used up"}, 402), "reader_quota"),
        (json_reply({"error": "oops"}, 500), "reader_network"),
        (Reply([b"<html>proxy</html>"]), "reader_parse"),
        (json_reply([]), "reader_parse"),
        (json_reply({"data": 7, "results": {}, "x": 1}), "reader_parse"),
        (Reply(before="cut"), "reader_network"),
    ],
)
def test_a_service_in_trouble_is_told(tmp_path: Path, name: str, reply: Reply, code: str) -> None:
    """Each cause has its code, a sentence and a remedy; a key in its words does not travel on."""
    with FakeServer(lambda _received: reply) as server:
        shape = House(tmp_path, name, server).open(reader=name).as_json()
    assert (shape["status"], shape["error"]["code"]) == ("error", code)
    assert shape["error"]["remedy"].endswith(".")
    assert KEY not in json.dumps(shape)


def test_a_service_that_hangs_is_left(tmp_path: Path) -> None:
    """It costs its time and no more."""
    with FakeServer([Reply(before="stall")]) as server:
        view = House(tmp_path, "jina", server, seconds=0.2).open(reader="jina")
    assert view.page.error is not None
    assert "had not answered after 0.2 s" in view.page.error.message


@EVERY
def test_nobody_elsewhere_learns_an_address_unasked(tmp_path: Path, name: str) -> None:
    """A key alone is no choice: the page stays unread, and the advice says what could be done."""
    with FakeServer([]) as server:
        view = House(tmp_path, name, server, order=("local",)).open()
        assert server.requests == []
    assert view.page.status == "needs_js"
    assert view.page.error is not None
    assert "SEARCH_READERS" in view.page.error.remedy
    assert name in view.page.error.remedy


@EVERY
@pytest.mark.parametrize(
    ("url", "rules"),
    [
        ("http://127.0.0.1:8080/", Rules()),
        ("http://inside.example/", Rules()),
        ("https://user@example.org/", Rules()),
        (URL, Rules(allowed=("other.example",))),
        (URL, Rules(blocked=("org",))),
    ],
)
def test_the_guard_decides_before_a_service_is_told(
    tmp_path: Path, name: str, url: str, rules: Rules
) -> None:
    """Private names, odd addresses and other domains never leave, by whichever way in."""
    with FakeServer([]) as server:
        refused = FetchRefused("refused_domain", "No.", "Another.")
        house = House(tmp_path, name, server, fetch=FakeFetch(refused))
        for reader in (name, None):
            view = house.open(url, rules=rules, reader=reader)
            assert view.page.status == "error"
            assert view.page.error is not None
        assert server.requests == []


def test_opened_ranges_hold_for_names_and_for_no_written_address() -> None:
    """A stand-in address is an answer of one's own resolver; written out it means another host."""
    stand_in = partial(
        vet,
        resolve=lambda _host, _port: ["198.18.0.7"],
        allow_ranges=("198.18.0.0/15",),
        limits=FetchLimits(failure_step=0),
    )
    assert stand_in("https://Example.org:443/a?b#c") == "https://example.org/a?b"
    with pytest.raises(NotReachable):
        stand_in("http://198.18.0.7/")


def test_where_a_service_was_led_is_held_to_the_rules(tmp_path: Path) -> None:
    """A redirect that the service followed is a redirect all the same."""
    moved = {"url": "https://elsewhere.example/", "markdown": TEXT, "success": True}
    with FakeServer([json_reply(moved), json_reply(moved)]) as server:
        house = House(tmp_path, "crawl4ai", server)
        inside = house.open(reader="crawl4ai", rules=Rules(allowed=("example.org",)))
        free = house.open(reader="crawl4ai")
        kept = house.open(reader="crawl4ai", rules=Rules(blocked=("elsewhere.example",)))
    assert inside.page.error is not None
    assert (inside.page.error.code, inside.content) == ("refused_domain", "")
    assert (free.page.final_url, free.page.status) == ("https://elsewhere.example/", "ok")
    assert kept.page.error is not None
    assert kept.page.error.code == "refused_domain"


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (Fetched(URL, URL, 404, "text/plain", None, b"Lost."), 0),
        (Fetched(URL, URL, 401, "text/plain", None, b"Login."), 0),
        (Fetched(URL, URL, 403, "text/plain", None, b"No."), 1),
        (FetchFailed("timeout", "Too slow.", "Later."), 1),
        (NotReachable("no such host"), 0),
    ],
)
def test_only_what_another_reader_may_do_better_goes_on(
    tmp_path: Path, answer: Fetched | Exception, asked: int
) -> None:
    """A page that is not there is nowhere; a refusal to programs may be none to a browser."""
    with FakeServer([json_reply(case("jina", "").good)]) as server:
        House(tmp_path, "jina", server, fetch=FakeFetch(answer)).open()
        assert len(server.requests) == asked


def test_a_chosen_order_is_kept(tmp_path: Path) -> None:
    """Who wants the service first gets it first; here is the reserve."""
    plain = Fetched(URL, URL, 200, "text/plain", None, b"Read here.")
    with FakeServer([json_reply({"error": "x"}, 500)]) as server:
        house = House(tmp_path, "jina", server, fetch=FakeFetch(plain), order=("jina", "local"))
        shape = house.open().as_json()
    assert (shape["content"], shape["reader"]) == ("Read here.", "local")
    assert [a["reader"] for a in shape["attempts"]] == ["jina", "local"]
    assert shape["attempts"][0]["error"]["code"] == "reader_network"


def test_a_reader_without_its_setting_is_told(tmp_path: Path) -> None:
    """The sentence names what to set; nothing is sent."""
    with FakeServer([]) as server:
        view = House(tmp_path, "tavily", server, keys={"TAVILY_API_KEY": ""}).open(reader="tavily")
    assert view.page.error is not None
    assert (view.page.error.code, view.page.error.remedy) == ("missing_key", "Set TAVILY_API_KEY.")


def test_an_unknown_reader_is_an_error_and_offline_none_is_asked(tmp_path: Path) -> None:
    """The sentence names the readers there are; a name opens no way out."""
    with FakeServer([]) as server:
        house = House(tmp_path, "jina", server, offline=True)
        view = house.open(reader="jina")
        with pytest.raises(SearchBackendError) as unknown:
            house.open(reader="nope")
    assert (unknown.value.code, "local" in unknown.value.remedy) == ("unknown_reader", True)
    assert view.page.error is not None
    assert (view.page.error.code, server.requests) == ("offline", [])


FIELDS = cut(
    "data results failed_results success markdown metadata url content title error warning"
    " statusCode raw_content code"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@EVERY
@given(JSON, st.sampled_from([200, 204, 400, 404, 408, 500]))
def test_any_answer_is_a_page_or_a_failure(name: str, value: Any, status: int) -> None:
    """Whatever a service says: a page with text, a page with its error, or an engine's error."""
    response = HttpResponse(status, {}, json.dumps(value).encode())
    try:
        page = find_services()[name].parse(response, URL, {})
    except EngineError:
        return
    assert bool(page.text) == (page.status == "ok") == (page.error is None)
    assert page.final_url.startswith("http")


def test_what_a_service_sends_is_cleaned(tmp_path: Path) -> None:
    """Tags, bidi marks and controls go, pictures as well; links are found with their brackets."""
    text = (
        'Kettle\u202e\U000e0041 ![x](http://img.example/a_(b).png "t") '
        "[w](https://en.example/Tea_(drink)) [again](https://en.example/Tea_(drink))\x07"
    )
    good = {"url": "javascript:alert(1)", "markdown": text, "success": True}
    with FakeServer([json_reply(good)]) as server:
        page = House(tmp_path, "crawl4ai", server).open(reader="crawl4ai").page
    assert page.text.startswith("Kettle x [w]")
    assert page.links == ("https://en.example/Tea_(drink)",)
    assert page.final_url == URL
