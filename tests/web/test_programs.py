"""Programs with a key of their own: what each may, what it may use, and what it cannot reach."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup
from searchloop.agent.types import Limits, Usage
from searchloop.protocols.programs import Program, Programs, Purse
from tests.fakes import Received, Reply, json_reply
from tests.web.faces import (
    DONE,
    FACES,
    MODEL,
    SWITCH,
    Desk,
    Face,
    called,
    desk,
    each_face,
    listing,
    said,
    sse,
    user,
)
from tests.web.test_faces_offline import KEY, call
from tests.web.test_gateway import OVER
from tests.web.test_sign_in import ask as sign_in
from tests.web.test_sign_in import form

DENIED = (openai.PermissionDeniedError, anthropic.PermissionDeniedError)
TOOK = sse({"choices": [], "usage": {"prompt_tokens": 60, "completion_tokens": 40}})
LIBRARY = "library://docs/search-switch.md"


def counted(asked: Received) -> Reply:
    """A model that says hello, and that it took 100 tokens."""
    if models := listing(asked):
        return models
    return Reply([*said("Hello.").pieces[:-1], TOOK, DONE])


def added(at: Desk, name: str, **rights: Any) -> str:
    """Adds a program on the page; the clients of the desk send its key from now on."""
    status, told = at.running.ask("POST", "/api/programs", {"name": name, **rights})
    assert status == 201, told
    at.openai.api_key = at.anthropic.api_key = told["key"]
    return str(told["key"])


def shown(at: Desk, name: str) -> dict[str, Any]:
    """A program as the page shows it."""
    programs = at.running.ask("GET", "/api/programs")[1]["programs"]
    return next(each for each in programs if each["name"] == name)


@each_face
def test_a_budget_ends_in_the_protocols_error(tmp_path: Path, face: Face) -> None:
    """The program is named, its client does not ask again, and others go on. What was used stands
    beside the program, and its name in the server's log."""
    with desk(tmp_path, counted) as at:
        added(at, "editor", models=["*"], tokens=150)
        for _ in range(2):  # the second begins below the limit and ends above it
            assert face.ask(at, user("Hi"), stream=False).text == "Hello."
        before = len(at.server.requests)
        for stream in (False, True):
            with pytest.raises(OVER, match="editor has used its 150 tokens of this day") as failed:
                face.ask(at, user("Hi"), stream=stream)
        assert failed.value.response.headers["x-should-retry"] == "false"
        assert len(at.server.requests) == before
        used = shown(at, "editor")["used"]
        assert (used["answers"], used["tokens"], used["cost_usd"]) == (2, 200, 0)
        asked = {"question": "Hi", "model": MODEL, "search": "off"}
        told = call(at, "ask", **asked)["ask"]
        assert not told.is_error  # the user's own token
        at.running.ask("PATCH", "/api/programs/editor", {"tokens": 1000})
        assert face.ask(at, user("Hi"), stream=True).text == "Hello."


def test_what_a_program_searches_and_opens_over_mcp_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stands beside the program with what its answers searched, and in the server's log; what is
    over is refused by name, in an audit page by page; an answer that does not search goes on."""
    caplog.set_level(logging.INFO)
    with desk(tmp_path, counted, SEARCH_ENGINES="library") as at:
        key = added(at, "editor", models=["*"], searches=2, pages=1)
        assert not call(at, "web_search", key=key)["web_search"].is_error
        assert not call(at, "open_page", key=key, url=LIBRARY)["open_page"].is_error
        used = shown(at, "editor")["used"]
        assert (used["searches"], used["pages"], used["answers"], used["unpriced"]) == (1, 1, 0, 0)
        lines = [vars(each)["fields"] for each in caplog.records if each.message == "client_called"]
        assert [(line["client"], line["tool"]) for line in lines] == [
            ("editor", "web_search"),
            ("editor", "open_page"),
        ]
        assert not call(at, "web_search", key=key)["web_search"].is_error
        told = call(at, "web_search", "open_page", "audit", key=key)
        for name, words in (("web_search", "search limit of 2"), ("open_page", "page limit of 1")):
            assert told[name].structured_content["error"]["code"] == "program_budget"
            assert f"editor has used its {words}" in told[name].content[0].text
        assert "page limit of 1" in told["audit"].content[0].text
        text = "".join(f"It costs {n} euros ([{n}]({LIBRARY}?{n})).\n" for n in range(5))
        at.running.ask("PATCH", "/api/programs/editor", {"pages": 3})
        audit = call(at, "audit", key=key, text=text)["audit"]
        assert shown(at, "editor")["used"]["pages"] == 3
        assert audit.content[0].text.count("has used its page limit of 3") == 3
        assert not call(at, "web_search", key=KEY)["web_search"].is_error  # the user's own token
        with pytest.raises(OVER, match="search limit of 2 of this day"):
            FACES["chat"].ask(at, user("Hi"), stream=False, search="web")
        assert FACES["chat"].ask(at, user("Hi"), stream=False).text == "Hello."


def test_what_starts_together_shares_the_budget_of_searches_and_pages(tmp_path: Path) -> None:
    """Calls over MCP, audits and answers that search: together no more than one after the other."""
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        key = added(at, "editor", models=["*"], searches=2, pages=3)
        text = "".join(f"It costs {n} euros ([{n}]({LIBRARY}?{n})).\n" for n in range(2))

        def ask(what: str) -> None:
            if what == "ask":
                call(at, "ask", key=key, question=SWITCH, model=MODEL, search="offline")
            elif what == "chat":
                with suppress(*OVER):
                    FACES["chat"].ask(at, user(SWITCH), stream=False, search="web")
            else:
                call(at, what, key=key, **({"text": text} if what == "audit" else {}))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, ("audit", "chat", "web_search", "ask") * 2))
        used = shown(at, "editor")["used"]
        assert (used["searches"], used["pages"]) == (2, 3)


@each_face
def test_an_answer_that_breaks_off_is_counted(tmp_path: Path, face: Face) -> None:
    """What its steps took before the model failed, or before its client left, is used up."""

    def fails(asked: Received) -> Reply:
        if models := listing(asked):
            return models
        if asked.json["messages"][-1]["role"] != "tool":
            return Reply([*called("web_search", query="switch").pieces[:-1], TOOK, DONE])
        return json_reply({"error": {"message": "broken"}}, status=400)

    with desk(tmp_path, fails, SEARCH_ENGINES="library") as at:
        added(at, "editor", models=["*"], tokens=150)
        search = "offline" if face.name == "responses" else "web"
        with pytest.raises((openai.APIError, anthropic.APIError)):
            face.ask(at, user(SWITCH), stream=False, search=search)
        used = shown(at, "editor")["used"]
        assert (used["tokens"], used["searches"]) == (100, 1)


@each_face
def test_a_program_asks_only_the_models_it_may(tmp_path: Path, face: Face) -> None:
    """At first none; the list of models holds no other."""
    with desk(tmp_path, counted) as at:
        added(at, "reader")
        with pytest.raises(DENIED, match=f"reader may not ask {MODEL}"):
            face.ask(at, user("Hi"), stream=False)
        assert {m.id for m in at.openai.models.list()} == {
            *("default", "default+web", "default+offline")
        }
        at.running.ask("PATCH", "/api/programs/reader", {"models": ["openai-chat:*"]})
        assert face.ask(at, user("Hi"), stream=False).text == "Hello."
        assert MODEL in {m.id for m in at.openai.models.list()}
        assert at.server.requests[-2].json["model"] == "tin"


@each_face
def test_a_program_searches_as_its_own_switch_says(tmp_path: Path, face: Face) -> None:
    """It narrows the switch of all programs, and never widens it."""
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        added(at, "quiet", models=["*"], search="off")
        with pytest.raises(DENIED, match="switched off"):
            face.ask(at, user(SWITCH), stream=False, search="web")
        at.running.ask("PATCH", "/api/programs/quiet", {"search": "offline"})
        assert face.ask(at, user(SWITCH), stream=False, search="offline").cited
        at.running.ask("PATCH", "/api/programs/quiet", {"search": "auto"})
        changes = {"settings": {"SEARCHLOOP_CLIENT_SEARCH": "off"}}
        at.running.ask("PATCH", "/api/settings", changes)
        with pytest.raises(DENIED, match="switched off"):
            face.ask(at, user(SWITCH), stream=False, search="web")


def test_a_key_opens_nothing_but_what_is_for_programs(tmp_path: Path) -> None:
    """No chat, no setting, no page, no cookie; and once taken back it opens nothing at all."""
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        key = added(at, "small", search="off")
        headers = {"Authorization": f"Bearer {key}"}
        for method, path in (
            *(("GET", "/api/sessions"), ("GET", "/"), ("POST", "/api/programs")),
            *(("GET", "/api/programs"), ("GET", "/api/settings"), ("POST", "/api/web-search")),
            *(("GET", "/static/app.js"), ("GET", "/api/sessions/x/events"), ("GET", "/metrics")),
        ):
            body = {} if method == "POST" else None
            assert at.running.ask(method, path, body, **headers)[0] == 404, path
        assert at.running.ask("HEAD", "/", **headers)[0] == 200
        access = at.running.serving.access
        head = {**form(key)["headers"], "host": f"127.0.0.1:{access.port}"}
        head["origin"] = f"http://{head['host']}"
        assert sign_in(access, "POST", "/sign-in", head, body=form(key)["body"]).status == 401
        assert sign_in(access, "GET", f"/?token={key}", head).status == 401
        told = call(at, "web_search", "ask", key=key)
        assert all("off" in each.content[0].text or each.is_error for each in told.values())
        assert told["web_search"].is_error
        assert at.running.ask("GET", "/v1/models", **headers)[0] == 200
        assert at.running.ask("DELETE", "/api/programs/small")[0] == 204
        assert at.running.ask("GET", "/v1/models", **headers)[0] == 401
        assert at.running.ask("DELETE", "/api/programs/small")[0] == 404
        assert not [p for p in tmp_path.glob("*") if p.is_file() and key.encode() in p.read_bytes()]


def test_a_program_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """A name that is taken or is none, rights that are none."""
    with desk(tmp_path) as at:
        added(at, "one")
        for body in (
            *({"name": "one"}, {"name": ""}, {"name": "a\nb"}, {"name": "x" * 41}, {}),
            *({"name": "b", "tokens": -1}, {"name": "b", "search": "native"}),
            *(
                {"name": "b", "models": "*"},
                {"name": "b", "per": "hour"},
                {"name": "b", "key": "x"},
            ),
        ):
            status, told = at.running.ask("POST", "/api/programs", body)
            assert (status, bool(told["error"]["remedy"])) == (400, True), body
        assert at.running.ask("PATCH", "/api/programs/two", {})[0] == 404


def rows(*days: tuple[str, int, float]) -> Iterator[dict[str, Any]]:
    """What was used on some days."""
    for day, tokens, cost in days:
        counts = {"input_tokens": tokens, "output_tokens": 0, "cost_usd": cost}
        counts |= {"searches": 1, "pages": 2}
        yield {"day": day, "answers": 1, "unpriced": 0, **counts}


def test_what_is_left_bounds_the_next_answer() -> None:
    """The smaller of the rest and the user's own limit, by day or by month."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    other_day = f"{today[:8]}{'02' if today.endswith('01') else '01'}"
    used = list(rows((today, 100, 0.25), (other_day, 50, 0.5), ("2020-01-01", 999, 9.0)))

    def left(program: Program, limits: Limits) -> Limits:
        return program.within(program.spent(used), limits)

    daily = Program("a", tokens=150, cost_usd=1.0)
    rest = left(daily, Limits(tokens=20))
    assert (rest.tokens, rest.cost_usd, rest.steps) == (20, 0.75, 12)
    rest = left(daily._replace(per="month", tokens=151, pages=9), Limits())
    assert (rest.tokens, rest.pages) == (1, 5)
    month = daily._replace(per="month", cost_usd=0.75)
    for over in (daily._replace(tokens=100), daily._replace(searches=1), month):
        with pytest.raises(ConfigError, match="has used its") as failed:
            left(over, Limits())
        assert failed.value.code == "program_budget"
    assert left(Program("a"), Limits()) == Limits()


def test_answers_that_start_together_share_a_budget(tmp_path: Path) -> None:
    """However many there are, the model is asked as often as one after the other would."""
    with desk(tmp_path, counted) as at:
        added(at, "editor", models=["*"], tokens=250)

        def ask(_: int) -> str:
            try:
                return FACES["chat"].ask(at, user("Hi"), stream=False).text
            except OVER as error:
                return str(error.response.json()["error"]["code"])

        with ThreadPoolExecutor(8) as pool:
            told = Counter(pool.map(ask, range(8)))
        assert told == {"Hello.": 3, "program_budget": 5}
        assert shown(at, "editor")["used"]["tokens"] == 300


async def test_a_step_of_one_answer_ends_the_others() -> None:
    """Each knows at its next step what all have used; one that is dropped holds nobody up."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    purse = Purse(Program("a", tokens=150), rows((today, 40, 0)))
    async with purse.answer(lambda usage: None) as one, purse.answer(lambda usage: None) as two:
        assert purse.reached() is None
        for price in (one, two):
            price(Usage(50, 10))
        assert purse.reached() == "a's 150 tokens"
    other = Purse(Program("a", tokens=150), [])
    async with other.answer(lambda usage: None):
        waiting = asyncio.create_task(other.answer(lambda usage: None).__aenter__())
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    assert other.reached() is None


async def test_people_have_programs_of_their_own(tmp_path: Path, store: Path | str) -> None:
    """A name may be there twice; a key is for its owner's things; use is counted for both, and the
    list of people has no program in it. Another server on the store knows the keys, and so does
    a copy of it."""
    log, beside = EventLog(store), EventLog(store)
    programs, other = Programs(log), Programs(beside)
    keys = {who: programs.add(who, "editor", tokens=9)[1] for who in ("anna", "bob", "")}
    for who, key in keys.items():
        found = await other.with_key(key.encode())
        assert found is not None
        assert (found.owner, found.name, found.tokens) == (who, "editor", 9)
    other.change("bob", "editor", tokens=5)
    assert [(each.owner, each.tokens) for each in programs.all()] == [
        *(("", 9), ("anna", 9), ("bob", 5))
    ]
    other.remove("bob", "editor")
    assert [await programs.with_key(key.encode()) for key in ("sl-no", keys["bob"])] == [None] * 2
    with pytest.raises(ConfigError, match="a program editor already"):
        other.add("anna", "editor")
    ending = {"usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}}
    anna, bob = log.of_person("anna"), log.of_person("bob")
    anna.count(ending, "editor")
    anna.count(ending)
    assert [row["input_tokens"] for row in anna.used(program="editor")] == [3]
    assert bob.used(program="editor") == log.used(program="editor") == []
    assert [(row["person"], row["input_tokens"]) for row in log.used()] == [("anna", 6)]
    backup(store, tmp_path / "copy.sqlite3")
    with closing(EventLog(tmp_path / "copy.sqlite3")) as copy:
        assert await Programs(copy).with_key(keys["anna"].encode())
    log.count(ending, "editor")  # of the holder of the token, who is not counted
    assert (len(log.used(program="editor")), len(log.used())) == (1, 1)
    log.close()
    beside.close()
