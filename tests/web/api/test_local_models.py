"""Models of one's own server over the API: got with progress, unloaded, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchloop.web.api.schemas import SCHEMAS
from tests.fake_ollama import FakeOllama, Model, say
from tests.web.api.test_providers_api import served
from tests.web.house import Answer, Ask

SMALL, QWEN = Model("small:1b"), Model("qwen3:8b")
PULL = "/api/models/pull"


@asynccontextmanager
async def at_server(home: Path, server: FakeOllama, **env: str) -> AsyncIterator[Ask]:
    """Asks the whole application, which asks this server."""
    async with served(home, OLLAMA_HOST=server.url, **env) as ask:
        yield ask
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("pull ")]


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


async def test_a_model_is_got_used_unloaded_and_deleted(tmp_path: Path) -> None:
    """From its name to its end: each step is seen in the list of models."""
    with FakeOllama([SMALL], library=[QWEN]) as server:
        async with at_server(tmp_path, server) as ask:
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
            assert (await ask("DELETE", "/api/models?model=ollama:qwen3:8b")).status == 204
            assert ids(await ask("GET", "/api/models")) == ["ollama:small:1b"]
        unload = next(r.json for r in server.requests if r.path == "/api/chat")
        assert (unload["model"], unload["keep_alive"], unload["messages"]) == ("qwen3:8b", 0, [])


async def test_a_pull_can_be_cancelled(tmp_path: Path) -> None:
    """Progress is told while it goes on; cancelled, or when searchloop ends, the connection to the
    server is closed."""
    with FakeOllama([SMALL], library=[QWEN], stalls=True) as server:
        async with at_server(tmp_path, server) as ask:
            await ask("POST", PULL, {"model": "ollama:qwen3:8b"})
            half = await state_of(ask, "begun")
            assert (half["state"], half["done"] <= half["total"]) == ("running", True)
            again = await ask("POST", PULL, {"model": "ollama:qwen3:8b"})
            assert (again.status, again.data["state"]) == (202, "running")
            assert (await ask("DELETE", f"{PULL}?model=ollama:qwen3:8b")).status == 204
            assert (await state_of(ask, "cancelled"))["error"] is None
            missing = await ask("DELETE", f"{PULL}?model=ollama:qwen3:8b")
            assert (missing.status, missing.error["code"]) == (404, "no_pull")
            assert (await ask("POST", PULL, {"model": "ollama:qwen3:8b"})).status == 202
            await state_of(ask, "begun")
        assert all(r.gone.wait(90) for r in server.requests if r.path == "/api/pull")


async def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    """Foreign addresses, other providers and unknown names: a sentence, and nothing is changed."""
    with FakeOllama([SMALL]) as server:
        async with at_server(tmp_path, server) as ask:
            for method, target, body, status, code in (
                ("POST", PULL, {"model": "ollama:http://evil.example/m"}, 400, "bad_model_name"),
                ("POST", PULL, {"model": "ollama:evil.example/user/m"}, 400, "bad_model_name"),
                ("POST", PULL, {"model": "openai:gpt-6-luna"}, 400, "no_host"),
                ("POST", PULL, {"model": "qwen3"}, 400, "bad_model"),
                ("POST", PULL, {"model": "ollama:m", "url": "x"}, 400, "bad_request"),
                ("POST", PULL, {}, 400, "bad_request"),
                ("POST", "/api/models/unload", {"model": "ollama:none"}, 502, "unknown_model"),
                ("DELETE", "/api/models?model=ollama:none", None, 502, "unknown_model"),
                ("DELETE", "/api/models?model=builtin:extractive", None, 400, "no_host"),
                ("DELETE", "/api/models", None, 400, "no_model"),
                ("DELETE", PULL, None, 400, "no_model"),
            ):
                answer = await ask(method, target, body)
                assert (answer.status, answer.error["code"]) == (status, code), (target, body)
                assert answer.error["remedy"]
            assert ids(await ask("GET", "/api/models")) == ["ollama:small:1b"]
        assert not any(r.path == "/api/pull" for r in server.requests)


async def test_a_pull_that_fails_says_why(tmp_path: Path) -> None:
    """A name the library does not have ends in an error that can be shown; offline in another."""
    with FakeOllama([SMALL]) as server:
        async with at_server(tmp_path / "a", server) as ask:
            await ask("POST", PULL, {"model": "ollama:nope"})
            failed = await state_of(ask, "failed", "done")
            assert failed["error"]["code"] == "unknown_model"
        async with at_server(tmp_path / "b", server, SEARCHLOOP_OFFLINE="1") as ask:
            refused = await ask("POST", PULL, {"model": "ollama:nope"})
            assert (refused.status, refused.error["code"]) == (400, "offline")


async def test_a_new_chat_has_the_usual_model(tmp_path: Path) -> None:
    """The best that is installed, told with its reason; then the one that answered last."""
    models = [SMALL, replace(QWEN, disk=3_000_000), Model("mute", ("completion",), disk=9_000_000)]
    with FakeOllama(models, [say("Hello")]) as server:
        async with at_server(tmp_path, server) as ask:
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
