"""Engines of other people that do what none should: it is told, and the search goes on."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.engines import Access, Engine, Wire, find_shelves
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.plugin import Setting, get
from searchloop.search_backend.readers import Service
from searchloop.search_backend.search.schedule import MOST_STUCK
from searchloop.search_backend.types import (
    EngineError,
    Query,
    SearchAnswer,
    SearchBackendError,
    SearchResult,
    failed_page,
)
from tests.fakes import FakeServer, json_reply
from tests.search_backend.chains import chain_of
from tests.tables import each_row

GOOD = SearchResult("Good", "https://good.example/", "x", "good")
URL = "https://bad.example/"
Search = Callable[[Query, Access], Any]


def fails(error: BaseException) -> Search:
    """A search that raises this."""

    def search(_query: Query, _access: Access) -> Any:
        raise error

    return search


def gives(value: Any) -> Search:
    """A search that returns this."""
    return lambda _query, _access: value


def result(**changes: Any) -> SearchResult:
    """A result with fields of any type."""
    usual: dict[str, Any] = {"title": "T", "url": URL, "snippet": "s", "source": "bad"}
    return SearchResult(**(usual | changes))


def asked(
    home: Path, bad: Engine, query: str = "tea", seconds: float = 20.0, **wishes: Any
) -> SearchAnswer:
    """The answer of a chain with this engine before a good one, which is asked in any case."""
    good = Engine("good", "Good", lambda _query, _access: [GOOD], remote=False)
    engines = {"bad": bad, "good": good}
    with closing(chain_of(home, engines, time.monotonic, seconds=seconds)) as chain:
        answer = chain.search(Query(query, **wishes))
    answer.as_json()
    return answer


@each_row(
    "search",
    [
        *(fails(error) for error in (KeyError("x"), RecursionError(), MemoryError(), SystemExit())),
        *(fails(error) for error in (KeyboardInterrupt(), GeneratorExit(), StopIteration())),
        fails(EngineError("no such kind", "", "", float("nan"))),
        fails(EngineError("rate", "x" * 10**6, "y" * 10**6, -1e300)),
        *map(gives, (None, 5, "text", b"bytes", {}, {"results": []}, object(), [None], [{}], [[]])),
        gives(itertools.repeat(result())),
        gives(result() for _ in itertools.count()),
        *(gives([result(url=url)]) for url in (None, 5, b"https://a.example/", "", "x" * 10**6)),
        *(gives([result(title=title)]) for title in (None, 5, b"x", ["x"])),
        gives([result(snippet={})]),
        gives([result(published=datetime.now(UTC))]),
        gives([result(invisible="many")]),
        gives([result(source=None)]),
        gives([result(url="file:///etc/passwd")]),
        gives([result(url="javascript:alert(1)"), result(url="http://127.0.0.1/")]),
    ],
)
def test_what_no_engine_should_do_is_told(search: Search, tmp_path: Path) -> None:
    """The engine has an error of one sentence, and the next one answers."""
    answer = asked(tmp_path, Engine("bad", "Bad", search))
    first = answer.attempts[0]
    assert answer.engine == "good"
    assert first.status in ("error", "blocked")
    assert first.error is not None
    assert first.error.message.endswith(".")
    assert len(first.error.message) < 1_000


def wired(step: str, url: str, misbehave: Callable[[], Any]) -> Engine:
    """An engine over HTTP one of whose functions misbehaves."""
    steps: dict[str, Any] = {
        "request": lambda query, keys: get(url, {}),
        "parse": lambda response, keys: [GOOD],
        "then": lambda response, keys: None,
        "cannot": lambda query: frozenset(),
    }
    steps[step] = lambda *_: misbehave()
    wire = Wire(*(steps[name] for name in ("request", "parse", "then")))
    return Engine("bad", "Bad", wire=wire, cannot=steps["cannot"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server that answers with an empty object."""
    with FakeServer(lambda _: json_reply({})) as server:
        yield server.url


STEPS = ("request", "then", "parse", "cannot")


@each_row("step", STEPS)
@each_row("kind", [ValueError, SystemExit, KeyboardInterrupt, None])
def test_functions_of_an_engine_may_fail(step: str, kind: Any, tmp_path: Path, url: str) -> None:
    """In any way, also by leaving the program: the loop that all searches share goes on."""

    def misbehave() -> Any:
        if kind:
            raise kind
        return 7

    for _ in range(2):
        answer = asked(tmp_path, wired(step, url, misbehave))
        first = answer.attempts[0]
        assert (answer.engine, first.status) == ("good", "error")


@contextmanager
def endless() -> Iterator[tuple[Callable[[], Any], ThreadPoolExecutor]]:
    """A function that does not end, and threads that may be waiting for it; then it ends."""
    over = threading.Event()
    with ThreadPoolExecutor(16) as pool:
        try:
            yield over.wait, pool
        finally:
            over.set()


def test_what_never_ends_holds_no_search(tmp_path: Path, url: str) -> None:
    """Whichever function it is: the engine is given up with a sentence, and the next one answers,
    while other searches go on."""
    with endless() as (hang, pool):
        engines = {step: wired(step, url, hang) for step in STEPS}
        engines["search"] = Engine("bad", "Bad", lambda *_: hang())
        held = {
            step: pool.submit(asked, tmp_path, engine, seconds=0.3)
            for step, engine in engines.items()
        }
        for step, one in held.items():
            answer = one.result(60)
            first = answer.attempts[0]
            assert (answer.engine, first.status) == ("good", "error"), step
            assert first.error is not None
            assert first.error.message.startswith("Bad had not answered after 0."), step


def test_an_engine_that_ends_nothing_is_asked_no_more(tmp_path: Path) -> None:
    """Its threads cannot be stopped, so there are a few of them and no more, until they end."""
    begun = list[Query]()
    with endless() as (hang, pool):

        def search(query: Query, _access: Access) -> list[SearchResult]:
            begun.append(query)
            hang()
            return [GOOD]

        with closing(chain_of(tmp_path, {"bad": search}, time.monotonic, seconds=0.01)) as chain:
            told = [
                pool.submit(chain.search, Query(f"tea {n}"), "bad").result(60).attempts[0]
                for n in range(MOST_STUCK + 2)
            ]
    assert len(begun) == MOST_STUCK
    assert [one.status for one in told] == ["error"] * MOST_STUCK + ["skipped"] * 2
    assert told[-1].error is not None
    busy = f"Bad is still busy with {MOST_STUCK} searches that were given up."
    assert told[-1].error.message == busy


def test_opening_that_never_ends_is_given_up(tmp_path: Path, url: str) -> None:
    """An address of an engine, and a page that a service reads."""
    access = Access({}, Library(tmp_path, dict))
    with endless() as (hang, pool):
        shelf = Engine("bad", "Bad", lambda *_: [], scheme="bad", open=lambda *_: hang())
        (opened,) = find_shelves(access, [shelf], seconds=0.2).values()
        failed = pool.submit(opened, "bad://x/y").exception(60)
        assert isinstance(failed, SearchBackendError)
        assert failed.code == "timeout"
        assert failed.message == "Bad had not opened bad://x/y after 0.2 s."
        asks: dict[str, Any] = {
            "request": lambda _url, _keys: get(url, {}),
            "parse": lambda *_: failed_page(URL, None),
        }
        for step in asks:
            service = Service("bad", "Bad", **(asks | {step: lambda *_: hang()}))
            page = pool.submit(ServiceCalls({}, seconds=0.3).read, service, URL).result(60)
            assert page.error is not None
            assert page.error.message == "Bad had not answered after 0.3 s."


@each_row("name", ["HERON_KEY", "HERON_SECRET", "HERON_LOGIN", "HERON_PASSWORD"])
def test_no_words_of_an_engine_quote_a_secret(tmp_path: Path, name: str) -> None:
    """Whatever its setting is called: not when it searches, opens an address or reads a page."""
    key = "s3cret-0f-her0n"
    settings = (Setting(name, "How Heron knows you", secret=True),)
    errors = (EngineError("auth", f"No {key}.", f"Change {key}."), KeyError(f"https://x/?p={key}"))
    for error in (*errors, SearchBackendError("gone", f"No {key}.", f"Change {key}.")):
        broken: Any = fails(error)
        bad = Engine("bad", "Bad", broken, settings=settings, scheme="bad", open=broken)
        with closing(chain_of(tmp_path, {"bad": bad}, keys={name: key})) as chain:
            told = [str(chain.search(Query("tea")).as_json())]
        (opened,) = find_shelves(Access({name: key}, Library(tmp_path, dict)), [bad]).values()
        with pytest.raises(SearchBackendError) as caught:
            opened("bad://x/y")
        told.append(caught.value.message + caught.value.remedy)
        service = Service("bad", "Bad", broken, lambda *_: failed_page(URL, None), (), settings)
        told.append(repr(ServiceCalls({name: key}).read(service, URL)))
        assert not any(key in each for each in told), told


def test_more_than_anybody_reads_is_cut(tmp_path: Path) -> None:
    """Half a million results, and texts of megabytes."""
    many = [result(url=f"{URL}{n}") for n in range(500_000)]
    answer = asked(tmp_path, Engine("bad", "Bad", gives(many)))
    assert (answer.engine, len(answer.results)) == ("bad", 8)
    large = result(title="t\u202e" * 10**6, snippet="s" * 10**7)
    (shown,) = asked(tmp_path, Engine("bad", "Bad", gives([large]))).results
    assert len(shown.title) <= 301
    assert len(shown.snippet) <= 2_001


@each_row("published", ["2999-01-01", "soon", "2026-13-45", "", "9" * 100, "2026-1-1", "-"])
def test_a_date_that_cannot_be_is_none(published: str, tmp_path: Path) -> None:
    """Nothing was published after tomorrow, and no date breaks the order."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    found = [result(url=f"{URL}{n}", published=day) for n, day in enumerate((published, yesterday))]
    for wishes in ({}, {"time_range": "d"}):
        answer = asked(tmp_path, Engine("bad", "Bad", gives(found)), **wishes)
        shown = {one.url: one.published for one in answer.results}
        assert shown == {f"{URL}0": None, f"{URL}1": yesterday}
