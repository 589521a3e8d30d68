"""Models of one's own server over the API: got with progress, unloaded, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.settings import Environment
from searchloop.compose import open_services
from searchloop.web.api.schemas import SCHEMAS
from tests.fake_ollama import FakeOllama, Model, say
from tests.web.house import Answer, Ask, asking

SMALL, QWEN = Model("small:1b"), Model("qwen3:8b")
PULL = "/api/models/pull"


def with_server(
    home: Path, server: FakeOllama, scenario: Callable[[Ask], Awaitable[None]], **env: str
) -> None:
    """Runs a scenario against the whole application, on this server."""
    flags = {"SEARCHLOOP_HOME": str(home), "OLLAMA_HOST": server.url, **env}
    house = open_services(Environment({"flag": flags}))

    async def run() -> None:
        async with asking(house) as ask:
            await scenario(ask)
        assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("pull ")]

    try:
        asyncio.run(run())
    finally:
        house.log.close()


async def state_of(ask: Ask, *wanted: str) -> dict[str, Any]:
    """The only pull, once it is in one of these states; each request is a turn of the loop."""
    async with asyncio.timeout(90):
        while True:
            (pull,) = (await ask("GET", PULL)).data["pulls"]
            if pull["state"] in wanted or (pull["total"] and "begun" in wanted):
                return dict(pull)


def ids(answer: Answer) -> list[str]:
    """The models of that server in a list."""
    return [m["id"] for m in answer.data["models"] if m["id"].startswith("ollama:")]


def test_a_model_is_got_used_unloaded_and_deleted(tmp_path: Path) -> None:
    """From its name to its end: each step is seen in the list of models."""

    async def scenario(ask: Ask) -> None:
        assert (await ask("GET", PULL)).data == {"pulls": []}
        begun = await ask("POST", PULL, {"model": "ollama:qwen3:8b"})
        assert (begun.status, begun.data["state"]) == (202, "running")
        done = await state_of(ask, "done", "failed")
        assert (done["state"], done["done"], done["total"]) == ("done", *[3_001_000_000] * 2)
        assert set(done) == set(SCHEMAS["Pull"]["properties"])
        listed = await ask("GET", "/api/models")
        assert ids(listed) == ["ollama:small:1b", "ollama:qwen3:8b"]
        (where,) = listed.data["servers"]
        assert set(where) == set(SCHEMAS["ModelServer"]["properties"])
        assert (where["address"], where["version"]) == (server.url, "0.33.0")
        unloaded = await ask("POST", "/api/models/unload", {"model": "ollama:qwen3:8b"})
        assert (unloaded.status, unloaded.body) == (204, b"")
        gone = await ask("DELETE", "/api/models?model=ollama:qwen3:8b")
        assert gone.status == 204
        assert ids(await ask("GET", "/api/models")) == ["ollama:small:1b"]

    with FakeOllama([SMALL], library=[QWEN]) as server:
        with_server(tmp_path, server, scenario)
    unload = next(r.json for r in server.requests if r.path == "/api/chat")
    assert (unload["model"], unload["keep_alive"], unload["messages"]) == ("qwen3:8b", 0, [])


def test_a_pull_can_be_cancelled(tmp_path: Path) -> None:
    """Progress is told while it goes on; cancelled, the connection to the server is closed."""

    async def scenario(ask: Ask) -> None:
        await ask("POST", PULL, {"model": "ollama:qwen3:8b"})
        half = await state_of(ask, "begun")
        assert (half["state"], half["done"] <= half["total"]) == ("running", True)
        again = await ask("POST", PULL, {"model": "ollama:qwen3:8b"})
        assert (again.status, again.data["state"]) == (202, "running")
        assert (await ask("DELETE", f"{PULL}?model=ollama:qwen3:8b")).status == 204
        assert (await state_of(ask, "cancelled"))["error"] is None
        missing = await ask("DELETE", f"{PULL}?model=ollama:qwen3:8b")
        assert (missing.status, missing.error["code"]) == (404, "no_pull")

    with FakeOllama([SMALL], library=[QWEN], stalls=True) as server:
        with_server(tmp_path, server, scenario)
        pulls = [r for r in server.requests if r.path == "/api/pull"]
        assert len(pulls) == 1
        assert pulls[0].gone.wait(90)


def test_a_server_that_stops_leaves_no_pull_behind(tmp_path: Path) -> None:
    """When searchloop ends, so does what it was getting."""

    async def scenario(ask: Ask) -> None:
        for name in ("a", "b", "c"):
            assert (await ask("POST", PULL, {"model": f"ollama:{name}"})).status == 202
        full = await ask("POST", PULL, {"model": "ollama:d"})
        assert (full.status, full.error["code"]) == (409, "too_many_pulls")

    names = [Model(name) for name in "abcd"]
    with FakeOllama([SMALL], library=names, stalls=True) as server:
        with_server(tmp_path, server, scenario)
        assert all(r.gone.wait(90) for r in server.requests if r.path == "/api/pull")


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "code"),
    [
        ("POST", PULL, {"model": "ollama:http://evil.example/m"}, 400, "bad_model_name"),
        ("POST", PULL, {"model": "ollama:evil.example/user/m"}, 400, "bad_model_name"),
        ("POST", PULL, {"model": "openai:gpt-6-luna"}, 400, "no_host"),
        ("POST", PULL, {"model": "qwen3"}, 400, "bad_model"),
        ("POST", PULL, {"model": "ollama:m", "url": "http://evil.example"}, 400, "bad_request"),
        ("POST", PULL, {}, 400, "bad_request"),
        ("POST", "/api/models/unload", {"model": "ollama:none"}, 502, "unknown_model"),
        ("DELETE", "/api/models?model=ollama:none", None, 502, "unknown_model"),
        ("DELETE", "/api/models?model=builtin:extractive", None, 400, "no_host"),
        ("DELETE", "/api/models", None, 400, "no_model"),
        ("DELETE", PULL, None, 400, "no_model"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, method: str, target: str, body: Any, status: int, code: str
) -> None:
    """Foreign addresses, other providers and unknown names: a sentence, and nothing is changed."""

    async def scenario(ask: Ask) -> None:
        answer = await ask(method, target, body)
        assert (answer.status, answer.error["code"]) == (status, code)
        assert answer.error["remedy"]
        assert ids(await ask("GET", "/api/models")) == ["ollama:small:1b"]

    with FakeOllama([SMALL]) as server:
        with_server(tmp_path, server, scenario)
    assert not any(r.path == "/api/pull" for r in server.requests)


def test_a_pull_that_fails_says_why(tmp_path: Path) -> None:
    """A name the library does not have ends in an error that can be shown; offline in another."""

    async def scenario(ask: Ask) -> None:
        await ask("POST", PULL, {"model": "ollama:nope"})
        failed = await state_of(ask, "failed", "done")
        assert failed["error"]["code"] == "unknown_model"

    async def offline(ask: Ask) -> None:
        refused = await ask("POST", PULL, {"model": "ollama:nope"})
        assert (refused.status, refused.error["code"]) == (400, "offline")

    with FakeOllama([SMALL]) as server:
        with_server(tmp_path / "a", server, scenario)
        with_server(tmp_path / "b", server, offline, SEARCHLOOP_OFFLINE="1")


def test_a_new_chat_has_the_usual_model(tmp_path: Path) -> None:
    """The best that is installed, told with its reason; then the one that answered last."""
    models = [SMALL, replace(QWEN, disk=3_000_000), Model("mute", ("completion",), disk=9_000_000)]

    async def scenario(ask: Ask) -> None:
        listed = (await ask("GET", "/api/models")).data
        assert (listed["default"], listed["default_why"]["by"]) == ("ollama:qwen3:8b", "best")
        assert listed["default_why"]["why"].startswith("the largest of 2 that call tools")
        assert set(listed) <= set(SCHEMAS["Models"]["properties"])
        assert (await ask("POST", "/api/sessions", {})).data["model"] == "ollama:qwen3:8b"
        session = (await ask("POST", "/api/sessions", {"model": "ollama:small:1b"})).data["id"]
        await ask("POST", f"/api/sessions/{session}/messages", {"text": "Hi"})
        async with asyncio.timeout(90):
            while (await ask("GET", f"/api/sessions/{session}")).data["running"]:
                pass
        listed = (await ask("GET", "/api/models")).data
        assert (listed["default"], listed["default_why"]["by"]) == ("ollama:small:1b", "last")
        assert (await ask("POST", "/api/sessions", {})).data["model"] == "ollama:small:1b"

    with FakeOllama(models, [say("Hello")]) as server:
        with_server(tmp_path, server, scenario)
