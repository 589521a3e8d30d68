"""The switch in a run: one path, told truthfully, and kept below the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.types import Capabilities, Request
from tests.agent.scripted import (
    Scripted,
    SearchApp,
    call,
    calls,
    found,
    native,
    open_house,
    says,
    settings,
)

SEARCHER = Capabilities(native_search=True, tools_with_native_search=True)
REFUSED = NativeSearchRejected("native_search", "This model refuses its search tool.")


def holds(request: Request) -> tuple[bool, bool]:
    """Whether a request asks for the provider's search, and whether it offers ours."""
    return request.native_search is not None, "web_search" in {t.name for t in request.tools}


async def test_off_means_off(tmp_path: Path) -> None:
    """No search of any kind is offered, and naming web_search does not run it."""
    script = [calls(call("web_search", query="x")), says("I cannot search.")]
    async with open_house(tmp_path, model := Scripted(script, SEARCHER)) as house:
        finished = await house.ask("hi")
        assert [holds(r) for r in model.requests] == [(False, False)] * 2
        assert model.requests[1].messages[-1].is_error
        assert "no tool called 'web_search'" in model.requests[1].messages[-1].content
        assert house.app.requests == []
        assert finished.data["search_path"] == house.log.session(house.session).search_path
        assert finished.data["search_path"] == "off"
        assert finished.data["usage"]["searches"] == 0


@pytest.mark.parametrize(
    ("search", "can", "expected", "path"),
    [
        ("auto", SEARCHER, (True, False), "native:scripted"),
        ("native", SEARCHER, (True, False), "native:scripted"),
        ("local", SEARCHER, (False, True), "local:tin"),
        ("offline", SEARCHER, (False, True), "offline"),
        ("auto", Capabilities(), (False, True), "local:tin"),
    ],
)
async def test_exactly_one_search_is_offered(
    tmp_path: Path, search: str, can: Capabilities, expected: tuple[bool, bool], path: str
) -> None:
    """Native and local are never in one request, and the path taken is stored."""
    async with open_house(tmp_path, model := Scripted([says("Hm.")], can)) as house:
        finished = await house.ask("hi", search=search)
        assert holds(model.requests[0]) == expected
        assert finished.data["search_path"] == path
        session = house.log.session(house.session)
        assert (session.search, session.search_path) == (search, path)


async def test_a_refused_native_search_falls_back_once_and_says_so(tmp_path: Path) -> None:
    """With auto, local search takes over in the same turn, and a notice is in the log."""
    app = SearchApp({"/api/web-search": found("https://a.example/")})
    script = [[REFUSED], calls(call("web_search", query="x")), says("Wet [1].")]
    async with open_house(tmp_path, model := Scripted(script, SEARCHER), app=app) as house:
        finished = await house.ask("hi", search="auto")
        assert [holds(r) for r in model.requests] == [(True, False), (False, True), (False, True)]
        assert (finished.data["reason"], finished.data["search_path"]) == ("stop", "local:tin")
        notices = [e.data for e in house.log.read(house.session) if e.type == "notice"]
        assert [n["code"] for n in notices] == ["native_search_rejected"]
        assert "local search" in notices[0]["message"]
        assert house.log.session(house.session).search_path == "local:tin"


async def test_a_refusal_is_paid_once(tmp_path: Path) -> None:
    """With auto, which is kept for the session, the next turn goes straight to local search; new
    settings give another try, and so does an hour in which the model may have learnt to search."""
    sea = native("c", "https://tide.example/")
    script = [[REFUSED], says("a"), says("b"), [REFUSED], says("c"), sea]
    async with open_house(tmp_path, model := Scripted(script, SEARCHER)) as house:
        await house.ask("one", search="auto")
        await house.ask("two")
        assert [holds(r)[0] for r in model.requests] == [True, False, False]
        house.runner.use(settings(tmp_path))
        await house.ask("three")
        assert [holds(r)[0] for r in model.requests[3:]] == [True, False]
        house.runner._rejecting[house.log.session(house.session).model] -= 3600.0
        await house.ask("four")
        assert holds(model.requests[-1]) == (True, False)


@pytest.mark.parametrize(("search", "asked"), [("native", 1), ("auto", 2)])
async def test_native_only_never_falls_back(tmp_path: Path, search: str, asked: int) -> None:
    """With native the refusal is the end; with auto a second refusal is."""
    async with open_house(tmp_path, model := Scripted([[REFUSED]] * 2, SEARCHER)) as house:
        data = (await house.ask("hi", search=search)).data
        assert (data["reason"], data["error"]["code"]) == ("error", "native_search")
        assert len(model.requests) == asked
        assert "/api/web-search" not in [path for path, _ in house.app.requests]


async def test_native_search_is_counted_and_named(tmp_path: Path) -> None:
    """The provider's searches and pages are in the log under its path, and in the usage."""
    script = [native("At noon.", "https://tide.example/")]
    async with open_house(tmp_path, Scripted(script, SEARCHER)) as house:
        data = (await house.ask("hi", search="auto")).data
        assert (data["usage"]["searches"], data["usage"]["pages"]) == (1, 1)
        unknown = dict.fromkeys(("quote", "passage", "by", "verified"))
        mark = {**unknown, "span": [0, 8], "verdict": "unread"}
        cited = {"n": 1, "url": "https://tide.example/", "title": "A page", "spans": [[0, 8]]}
        assert data["citations"] == [{**cited, "quote": None, "verified": None, "marks": [mark]}]
        states = {s["url"]: s["state"] for s in data["sources"]}
        assert states == {"https://tide.example/": "cited", "https://other.example/": "found"}
        events = {e.type: e.data for e in house.log.read(house.session)}
        assert events["search_started"]["by"] == "native:scripted"
        assert events["search_finished"]["results"] == 2
        assert events["page_opened"]["url"] == "https://tide.example/"


@pytest.mark.parametrize(
    ("search", "expected"), [("auto", (False, True)), ("native", None), ("off", (False, False))]
)
async def test_offline_has_no_native_search(tmp_path: Path, search: str, expected: Any) -> None:
    """SEARCHLOOP_OFFLINE: auto is local, native is refused before anything is sent. An offline turn
    tells the search backend that nothing may leave this machine."""
    model = Scripted([calls(call("web_search", query="x")), says("Hm.")], SEARCHER)
    async with open_house(tmp_path, model, SEARCHLOOP_OFFLINE="1") as house:
        if expected is None:
            with pytest.raises(Exception, match="SEARCHLOOP_OFFLINE"):
                await house.ask("hi", search=search)
            assert model.requests == []
        else:
            await house.ask("hi", search=search)
            assert holds(model.requests[0]) == expected
    model = Scripted([calls(call("web_search", query="x")), says("Hm.")])
    async with open_house(tmp_path, model) as house:
        await house.ask("hi", search="offline")
        asked = [body for path, body in house.app.requests if path == "/api/web-search"]
        assert [body["offline"] for body in asked] == [True]


@pytest.mark.parametrize("engines", [{"engines": []}, {"engines": None}, {"hello": 1}, []])
async def test_a_backend_that_names_no_engine(tmp_path: Path, engines: Any) -> None:
    """Whatever it answers, the turn begins; the path is just `local`."""
    app = SearchApp({"/api/engines": engines})
    async with open_house(tmp_path, Scripted([says("Hm.")]), app=app) as house:
        finished = await house.ask("hi", search="local")
        assert finished.data["search_path"] == "local"
