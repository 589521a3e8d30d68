"""Engines of other people that do what none should: it is told, and the search goes on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.engines import Access, Engine, Wire
from searchloop.search_backend.library import Library
from searchloop.search_backend.plugin import get
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchAnswer, SearchResult
from tests.fakes import FakeServer, json_reply
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


def asked(home: Path, bad: Engine, query: str = "tea", **wishes: Any) -> SearchAnswer:
    """The answer of a chain with this engine before a good one."""
    good = Engine("good", "Good", lambda _query, _access: [GOOD])
    own = SearchSettings(home, ("bad", "good"), seconds=20.0)
    with closing(Chain(own, Library(home, dict), {"bad": bad, "good": good})) as chain:
        answer = chain.search(Query(query, **wishes))
    answer.as_json(explain=True)
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
    assert (answer.engine, first.status) == (
        "good",
        "error" if first.status != "blocked" else "blocked",
    )
    assert first.error is not None
    assert first.error.message.endswith(".")
    assert len(first.error.message) < 1_000


def wired(step: str, misbehave: Callable[[], Any]) -> Engine:
    """An engine over HTTP one of whose functions misbehaves."""
    steps: dict[str, Any] = {
        "request": lambda query, keys: get("http://127.0.0.1:9/", {}),
        "parse": lambda response, keys: [],
        "then": lambda response, keys: None,
    }
    return Engine("bad", "Bad", wire=Wire(**(steps | {step: lambda *_: misbehave()})))


@each_row("step", ["request", "then", "parse"])
@each_row("kind", [ValueError, SystemExit, KeyboardInterrupt, None])
def test_the_functions_of_a_wire_may_fail(step: str, kind: Any, tmp_path: Path) -> None:
    """In any way, also by leaving the program: the loop that all searches share goes on."""

    def misbehave() -> Any:
        if kind:
            raise kind
        return 7

    with FakeServer(lambda _: json_reply({})) as server:
        engine = wired(step, misbehave)
        if step != "request":
            assert engine.wire is not None
            url = server.url
            ask = Wire(lambda *_: get(url, {}), engine.wire.parse, engine.wire.then)
            engine = Engine("bad", "Bad", wire=ask)
        for _ in range(2):
            answer = asked(tmp_path, engine)
            assert (answer.engine, answer.attempts[0].status) == ("good", "error")


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
@pytest.mark.parametrize("query", ["news about tea", "tea"])
def test_a_date_that_cannot_be_is_none(published: str, query: str, tmp_path: Path) -> None:
    """What was published tomorrow is not news, and no date breaks the order."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    found = [result(url=f"{URL}{n}", published=day) for n, day in enumerate((published, yesterday))]
    for wishes in ({}, {"time_range": "d"}):
        answer = asked(tmp_path, Engine("bad", "Bad", gives(found)), query, **wishes)
        assert {one.url: one.published for one in answer.results} == {
            f"{URL}0": None,
            f"{URL}1": yesterday,
        }
    if "news" in query:
        assert answer.results[0].published == yesterday
