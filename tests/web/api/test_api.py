"""The JSON API: what it takes, what it refuses and in which words, and what it gives away."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log import EventLog
from searchloop.web.api.openapi import document
from searchloop.web.app import STREAMED
from tests.web.house import (
    ANSWER,
    TOKEN,
    answer_events,
    frames,
    living,
    make_house,
    request,
    with_api,
)


async def test_a_session_from_its_start_to_its_end(tmp_path: Path) -> None:
    """Create, ask, follow, rename, find, delete: what a page does, in order."""
    async with with_api(tmp_path) as (ask, _):
        asked = {"mode": "plan", "search": "auto", "model": "m:x"}
        made = await ask("POST", "/api/sessions", asked)
        assert made.status == 201
        session = made.data
        assert re.fullmatch(r"[\w-]{22,}", session["id"])
        assert {name: session[name] for name in asked} == asked
        path = f"/api/sessions/{session['id']}"
        started = await ask("POST", f"{path}/messages", {"text": "Why?", "search": "local"})
        assert started.status == 202
        assert set(started.data) == {"run_id", "session_id", "seq"}
        place, ended = f"{path}/events?after={started.data['seq']}", b'"run_finished"'
        events = await ask("GET", place, enough=lambda body: ended in body)
        kinds = [event["type"] for event in frames(events.body)]
        assert (kinds[0], kinds[-1]) == ("user_message", "run_finished")
        renamed = await ask("PATCH", path, {"title": "  A \n title\x07 ", "model": "m:y"})
        assert (renamed.data["title"], renamed.data["search"]) == ("A title", "local")
        found = await ask("GET", "/api/sessions?q=Why")
        assert [s["id"] for s in found.data["sessions"]] == [session["id"]]
        [place] = found.data["sessions"][0]["found"]
        assert (place["turn"], place["part"]) == (started.data["seq"] + 1, "question")
        assert (place["snippet"], place["marks"], place["words"]) == ("Why?", [[0, 3]], ["Why"])
        assert (await ask("GET", "/api/sessions?q=nothing")).data == {"sessions": []}
        assert (await ask("GET", path)).data == renamed.data
        gone = await ask("DELETE", path)
        assert (gone.status, gone.body) == (204, b"")
        assert (await ask("GET", path)).status == 404


async def test_a_new_session_searches_nothing_unless_asked(tmp_path: Path) -> None:
    """The switch is off by default, and an empty body is enough."""
    async with with_api(tmp_path) as (ask, _):
        for body in (None, {}, {"workspace": None}):
            session = (await ask("POST", "/api/sessions", body)).data
            assert (session["search"], session["search_path"], session["mode"]) == (
                *("off", "off"),
                "ask",
            )


async def test_pins_and_temporary_sessions(tmp_path: Path) -> None:
    """A pin comes and goes; a temporary session can be used, is not listed, and goes with all."""
    async with with_api(tmp_path) as (ask, _):
        kept = (await ask("POST", "/api/sessions", {})).data
        passing = (await ask("POST", "/api/sessions", {"temporary": True})).data
        assert passing["settings"] == {"temporary": True}
        assert (await ask("GET", f"/api/sessions/{passing['id']}")).status == 200
        listed = (await ask("GET", "/api/sessions")).data["sessions"]
        assert [s["id"] for s in listed] == [kept["id"]]
        for pinned, settings in ((True, {"pinned": True}), (False, {})):
            changed = await ask("PATCH", f"/api/sessions/{kept['id']}", {"pinned": pinned})
            assert changed.data["settings"] == settings
        await ask("POST", "/api/sessions", {})
        listed = (await ask("GET", "/api/sessions?limit=1")).data["sessions"]
        assert len(listed) == 1
        assert (await ask("DELETE", "/api/sessions")).data == {"deleted": 3}


async def test_a_session_tells_whether_its_model_has_a_search_of_its_own(tmp_path: Path) -> None:
    """Also of a model that is in no list, and of one that nobody offers any more."""
    async with with_api(tmp_path) as (ask, house):
        made = (await ask("POST", "/api/sessions", {"model": "m:native"})).data
        path = f"/api/sessions/{made['id']}"
        assert made["native_search"] is (await ask("GET", path)).data["native_search"] is True
        changed = (await ask("PATCH", path, {"model": "m:plain"})).data
        assert changed["native_search"] is False
        house.log.update_session(made["id"], model="gone:x")
        [listed] = (await ask("GET", "/api/sessions")).data["sessions"]
        assert listed["native_search"] is None


async def test_one_answer_at_a_time(tmp_path: Path) -> None:
    """A second question is refused while the first is answered; stopping makes room. A chat that is
    deleted stops its answer first."""
    async with with_api(tmp_path) as (ask, house):
        session = house.log.create_session(model="m:x").id
        path = f"/api/sessions/{session}"
        assert (await ask("POST", f"{path}/messages", {"text": "wait"})).status == 202
        assert (await ask("GET", path)).data["running"] is True
        busy = await ask("POST", f"{path}/messages", {"text": "again"})
        assert (busy.status, busy.error["code"]) == (409, "busy")
        assert (await ask("POST", f"{path}/cancel")).data == {"cancelled": True}
        assert (await ask("POST", f"{path}/cancel", {})).data == {"cancelled": False}
        assert (await ask("POST", f"{path}/messages", {"text": "wait again"})).status == 202
        assert (await ask("DELETE", path)).status == 204
        assert not await house.runner.cancel(session)
        assert house.log.leases.held() == []


BAD = [
    ("POST", "/api/sessions", {"modle": "m:x"}, 400, "bad_request", "modle"),
    ("POST", "/api/sessions", {"mode": "chat"}, 400, "bad_request", "'ask', 'plan', 'agent'"),
    ("POST", "/api/sessions", {"search": True}, 400, "bad_request", "search must be a string"),
    ("POST", "/api/sessions", {"model": "nobody:x"}, 400, "unknown_provider", "nobody"),
    ("POST", "/api/sessions", {"model": "x"}, 400, "bad_model", "'x'"),
    ("POST", "/api/sessions", {"workspace": "relative"}, 400, "bad_workspace", "relative"),
    ("PATCH", "{s}", {"workspace": "/no/such"}, 400, "bad_workspace", "/no/such"),
    ("POST", "/api/sessions", [], 400, "bad_request", "must be an object, not an array"),
    ("POST", "/api/sessions", b"{", 400, "bad_json", "JSON"),
    ("POST", "/api/sessions", b'{"mode": NaN}', 400, "bad_json", "NaN"),
    ("POST", "/api/sessions", b'{"mode": "ask", "mode": "ask"}', 400, "bad_json", "twice"),
    ("POST", "/api/sessions", b'{"mode": "\\ud800"}', 400, "bad_json", "JSON"),
    ("POST", "/api/sessions", b"\x1f\x8b\x08\x00{}", 400, "bad_json", "compressed"),
    ("POST", "/api/sessions", b"[" * 50_000, 400, "bad_json", "deep"),
    ("POST", "/api/sessions", b"[" * 200 + b"]" * 200, 400, "bad_json", "deep"),
    ("POST", "{s}/messages", {}, 400, "bad_request", "'text' is missing"),
    ("POST", "{s}/messages", {"text": " \n"}, 400, "empty_question", "empty"),
    ("POST", "{s}/messages", {"text": 1}, 400, "bad_request", "text must be a string"),
    ("POST", "{s}/messages", {"text": "x", "web": True}, 400, "bad_request", "web"),
    ("POST", "/api/check", {"claim": "x" * 1_050_000}, 413, "too_large", "1 MiB"),
    ("POST", "/api/sessions/none/messages", {"text": "x"}, 404, "no_session", "none"),
    ("POST", "{s}/cancel", {"now": True}, 400, "bad_request", "now"),
    ("POST", "/api/sessions/none/cancel", {}, 404, "no_session", "none"),
    ("PATCH", "{s}", {"title": " \t"}, 400, "empty_title", "empty"),
    ("PATCH", "{s}", {"id": "x"}, 400, "bad_request", "id"),
    ("PATCH", "{s}", {"search": "on"}, 400, "bad_request", "'auto'"),
    ("PATCH", "/api/sessions/none", {"title": "x"}, 404, "no_session", "none"),
    ("DELETE", "/api/sessions/none", None, 404, "no_session", "none"),
    ("POST", "{s}/approvals/c1", {"decision": "yes"}, 400, "bad_request", "'once'"),
    ("POST", "{s}/approvals/c1", {"decision": "once"}, 409, "nothing_to_approve", "c1"),
    ("POST", "/api/sessions/none/approvals/c", {"decision": "deny"}, 404, "no_session", "none"),
    ("PATCH", "{s}/turns/1", {"removed": True}, 404, "no_turn", "question number 1"),
    ("PATCH", "{s}/turns/x", {"shown": True}, 404, "no_turn", "question"),
    ("PATCH", "{s}/turns/%C2%B2", {"shown": True}, 404, "no_turn", "question"),
    ("PATCH", "{s}/turns/" + "9" * 5000, {"shown": True}, 404, "no_turn", "question"),
    ("GET", "{s}/export?turn=%C2%B2", None, 404, "no_turn", "question"),
    ("PATCH", "{s}/turns/1", {}, 400, "bad_request", "either shown, removed or rated"),
    ("PATCH", "{s}/turns/1", {"shown": False}, 400, "bad_request", "shown"),
    ("PATCH", "/api/sessions/none/turns/1", {"shown": True}, 404, "no_session", "none"),
    ("GET", "{s}/export?format=pdf", None, 400, "bad_format", "pdf"),
    ("GET", "/api/sessions/none/export", None, 404, "no_session", "none"),
    ("GET", "/api/sessions?limit=0", None, 400, "bad_limit", "from 1"),
    ("GET", "/api/sessions?limit=-1", None, 400, "bad_limit", "from 1"),
    ("GET", "/api/sessions?limit=100001", None, 400, "bad_limit", "100,000"),
    ("GET", "/api/nothing", None, 404, "not_found", "nothing"),
    ("GET", "//api/sessions", None, 400, "bad_address", "not an address"),
    ("GET", "/static/../app.py", None, 404, "not_found", "nothing"),
    ("GET", "/static/..%2fapp.py", None, 404, "not_found", "nothing"),
    ("GET", "/static/app.py", None, 404, "not_found", "nothing"),
    ("GET", "/static/a\0.js", None, 400, "bad_address", "address"),
    ("GET", "/static/", None, 404, "not_found", "nothing"),
]


async def test_bad_input_is_one_clear_sentence(tmp_path: Path) -> None:
    """The right status, a code for programs, what is wrong by name, and what to do."""
    async with with_api(tmp_path) as (ask, house):
        session = house.log.create_session(model="m:x").id
        for method, target, body, status, code, words in BAD:
            answer = await ask(method, target.replace("{s}", f"/api/sessions/{session}"), body)
            said = (method, target[:80], answer.body[:200])
            assert (answer.status, answer.error["code"]) == (status, code), said
            assert words in answer.error["message"], said
            assert answer.error["remedy"], said
            assert set(answer.data) == {"error"}, said
            assert set(answer.error) == {"code", "message", "remedy"}, said
            assert b"Traceback" not in answer.body
            assert house.log.read(session) == [], said
            assert len(house.log.sessions()) == 1, said


async def test_a_store_that_can_only_be_read(tmp_path: Path) -> None:
    """Chats are listed, read and exported; each change says why it is not made."""
    with contextlib.closing(EventLog(tmp_path / "sessions.sqlite3")) as log:
        session = log.create_session(model="m:x").id
        log.append(session, [("user_message", {"text": "hi"})])
        log.create_session(model="m:x", settings={"temporary": True})
    with contextlib.closing(sqlite3.connect(tmp_path / "sessions.sqlite3")) as db:
        db.execute("UPDATE sessions SET updated = 0")  # old enough to be forgotten
        db.execute("PRAGMA user_version = 99")
        db.commit()
    async with with_api(tmp_path) as (ask, _):
        listed = await ask("GET", "/api/sessions")
        assert [one["id"] for one in listed.data["sessions"]] == [session]
        assert (await ask("GET", f"/api/sessions/{session}")).status == 200
        assert b"hi" in (await ask("GET", f"/api/sessions/{session}/export?format=md")).body
        for method, path, body in (
            ("POST", "/api/sessions", {}),
            ("POST", f"/api/sessions/{session}/messages", {"text": "and now?"}),
            ("PATCH", f"/api/sessions/{session}", {"title": "x"}),
            ("DELETE", f"/api/sessions/{session}", None),
        ):
            refused = await ask(method, path, body)
            assert (refused.status, refused.error["code"]) == (503, "newer_store")
            assert "Update searchloop" in refused.error["remedy"]


async def test_a_fault_of_ours_shows_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the traceback; the client has a sentence."""
    async with with_api(tmp_path) as (ask, house):

        async def broken(session_id: str) -> bool:
            raise RuntimeError("the secret is 42")

        house.runner.cancel = broken  # type: ignore[method-assign]
        session = house.log.create_session(model="m:x").id
        answer = await ask("POST", f"/api/sessions/{session}/cancel", {})
        assert (answer.status, answer.error["code"]) == (500, "internal")
        assert b"42" not in answer.body
        assert "the secret is 42" in caplog.text


KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}


async def test_the_page_and_its_files_are_served(tmp_path: Path) -> None:
    """Right types, no guessing; only an address of these very files is kept for long."""
    async with with_api(tmp_path) as (ask, _):
        page = await ask("GET", "/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        names = re.findall(rb'"(/static/[^"]+)"', page.body)
        assert names
        for name in names:
            answer = await ask("GET", name.decode())
            assert answer.status == 200, name
            assert answer.headers["content-type"] == KINDS[name.rpartition(b".")[2].decode()]
            assert "immutable" in answer.headers["cache-control"]
            own = re.sub("@[^/]*/", "", name.decode())
            for other in (own, own.replace("/static/", "/static/@older/"), f"{own}?v=1"):
                same = await ask("GET", other)
                assert (same.body, same.headers["cache-control"]) == (answer.body, "no-cache")
                assert same.headers["etag"]
        assert not re.search(rb"https?://(?!www\.w3\.org)", page.body)


async def test_the_description_lists_every_route(tmp_path: Path) -> None:
    """What is described is there, what is there is described, and names are resolved."""
    async with with_api(tmp_path) as (ask, _):
        described = (await ask("GET", "/api/openapi.json")).data
        assert described == json.loads(json.dumps(document()))
        listed = {(m.upper(), p) for p, methods in described["paths"].items() for m in methods}
        async with living(make_house(tmp_path / "b")) as app:
            there = {
                (method, re.sub(r"<(?:path:)?(\w+)>", r"{\1}", str(rule)))
                for rule in app.flask.url_map.iter_rules()
                for method in rule.methods - {"HEAD", "OPTIONS"}
            }
        assert listed == there | set(STREAMED)
        names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))
        assert names <= set(described["components"]["schemas"])


async def test_answers_have_the_described_shape(tmp_path: Path) -> None:
    """Required fields are there, and a session has no field that nobody described."""
    async with with_api(tmp_path) as (ask, _):
        schemas = document()["components"]["schemas"]
        made = (await ask("POST", "/api/sessions", {})).data
        assert set(made) == set(schemas["Session"]["properties"])
        assert set((await ask("GET", "/api/health")).data) == set(schemas["Health"]["properties"])
        models = (await ask("GET", "/api/models")).data
        assert set(models) == set(schemas["Models"]["properties"])
        assert set(models["models"][0]) == set(schemas["Model"]["properties"])
        assert models["modes"] == ["ask", "plan", "agent"]
        assert models["searches"] == ["auto", "native", "local", "offline", "off"]


async def test_a_chat_is_exported_as_text_and_as_data(tmp_path: Path) -> None:
    """A file with the chat's id in its name; all events, nothing of a provider's own, no secret."""
    async with with_api(tmp_path) as (ask, house):
        session = house.log.create_session(model="m:x").id
        house.log.append(session, [("user_message", {"text": "q"}), *answer_events()])
        path = f"/api/sessions/{session}/export"
        text, whole, trace = [
            await ask("GET", f"{path}?format={n}") for n in ("md", "json", "trace")
        ]
    assert text.headers["content-type"].startswith("text/markdown")
    named = f'attachment; filename="searchloop-{session[:8]}.md"'
    assert text.headers["content-disposition"] == named
    assert "is [^1]." in text.body.decode()
    assert set(whole.data) == {"session", "events"}
    lines = [json.loads(line)["seq"] for line in trace.body.decode().splitlines()]
    assert lines == [event["seq"] for event in whole.data["events"]]
    for body in (text.body, whole.body, trace.body):
        assert ANSWER.partition(" [")[0].encode() in body
        assert b"OPAQUE" not in body
        assert TOKEN.encode() not in body


async def test_an_unfinished_answer_is_exported_as_it_stands(tmp_path: Path) -> None:
    """What there is of an answer that is still being given is in the file, and no more."""
    async with with_api(tmp_path) as (ask, house):
        session = house.log.create_session(model="m:x").id
        house.log.append(session, [("user_message", {"text": "q"}), ("text_delta", {"text": "So"})])
        answer = await ask("GET", f"/api/sessions/{session}/export")
        assert "So\n\n*unfinished*" in answer.body.decode()
        anew = [("run_resumed", {"run_id": "r", "takeovers": 1}), ("text_delta", {"text": "Then"})]
        house.log.append(session, anew)
        answer = await ask("GET", f"/api/sessions/{session}/export")
        assert "## q\n\nThen\n\n*unfinished*" in answer.body.decode()
        house.log.append(session, [("user_message", {"text": "next"})])
        answer = await ask("GET", f"/api/sessions/{session}/export")
        assert answer.body.decode().endswith("## next\n\n\n\n*unfinished*\n")


async def test_turns_are_removed_brought_back_and_chosen(tmp_path: Path) -> None:
    """The chat that is shown is exported; the trace keeps everything; a busy chat is left alone."""
    async with with_api(tmp_path) as (ask, house):
        session = house.log.create_session(model="m:x").id
        path, turns = f"/api/sessions/{session}", list[int]()
        for more in ({"text": "Alpha"}, {"text": "Beta"}, {"text": "Gamma", "replaces": 1}):
            started = await ask("POST", f"{path}/messages", more)
            assert started.status == 202
            turns.append(started.data["seq"] + 1)
            await house.runner.wait(session)
        first, second, _ = turns

        async def exported(wanted: str = "md") -> str:
            text = (await ask("GET", f"{path}/export?format={wanted}")).body.decode()
            return "".join(re.findall(r'(?:## |"text": ")([ABG])(?:lpha|eta|amma)', text))

        assert await exported() == "G"
        one = await ask("GET", f"{path}/export?format=md&turn={second}")
        assert one.body.decode().startswith("It is ")
        wrong = await ask("GET", f"{path}/export?turn={second + 1}")
        assert wrong.error["code"] == "no_turn"
        shown = await ask("PATCH", f"{path}/turns/{first}", {"shown": True})
        assert shown.data == {"shown": [first, second]}
        assert await exported() == "AB"
        place = f"{path}/turns/{second}"
        assert (await ask("PATCH", place, {"removed": True})).data == {"shown": [first]}
        assert (await exported("json"), await exported("trace")) == ("A", "ABG")
        assert (await ask("PATCH", place, {"removed": False})).data["shown"] == [first, second]
        assert (await ask("POST", f"{path}/messages", {"text": "wait"})).status == 202
        busy = await ask("PATCH", place, {"removed": True})
        assert (busy.status, busy.error["code"]) == (409, "busy")


async def test_pages_that_stall_keep_nobody_else_waiting(tmp_path: Path) -> None:
    """Fifty are being read and none comes: another one and the API are answered all the same."""
    begun, release = threading.Semaphore(0), threading.Event()

    def reads(environ: Any, start_response: Any) -> Any:
        if b"stall" in environ["wsgi.input"].read():
            begun.release()
            release.wait(200)
        start_response("200 OK", [])
        return [b"{}"]

    house = make_house(tmp_path)
    house.search_app = reads  # type: ignore[assignment]
    page = {"url": "https://e.example/stall"}
    async with living(house) as app:
        ask = functools.partial(request, app, "POST", "/api/open-page")
        stalled = [asyncio.create_task(ask(body=page)) for _ in range(50)]
        try:
            for _ in stalled:
                assert await asyncio.to_thread(begun.acquire, timeout=90)
            async with asyncio.timeout(30):
                assert (await ask(body={"url": "https://e.example/a"})).status == 200
                assert (await request(app, "GET", "/api/sessions")).status == 200
            assert not any(task.done() for task in stalled)
        finally:
            release.set()
        assert {answer.status for answer in await asyncio.gather(*stalled)} == {200}
