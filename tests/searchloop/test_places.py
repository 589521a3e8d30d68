"""The library where programs run: a web server, a notebook, other loops, threads, type checkers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent, AsyncAgent
from searchloop.testing import ScriptedModel, call, offline


def test_inside_fastapi(tmp_path: Path) -> None:
    """One agent for all requests: whole answers, streams, a failed model, and many at once."""
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse
    from fastapi.testclient import TestClient

    model = ScriptedModel("It is noon.", "It is one.", *[f"{n}." for n in range(8)])

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncAgent(offline(tmp_path), model=model) as agent:
            app.state.agent = agent
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/whole")
    async def whole(q: str) -> dict[str, str]:
        return {"answer": (await app.state.agent.ask(q)).text}

    @app.get("/plain")
    def plain(q: str) -> dict[str, str]:  # FastAPI runs it on a thread
        return {"answer": asyncio.run(app.state.agent.ask(q)).text}

    @app.get("/stream")
    async def stream(q: str) -> StreamingResponse:
        return StreamingResponse(app.state.agent.stream(q).text(), media_type="text/plain")

    with TestClient(app) as client:
        assert client.get("/whole", params={"q": "When?"}).json() == {"answer": "It is noon."}
        with client.stream("GET", "/stream", params={"q": "And?"}) as response:
            assert "".join(response.iter_text()) == "It is one."
        got: list[str] = []
        threads = [
            threading.Thread(
                target=lambda way: got.append(client.get(way, params={"q": "x"}).json()["answer"]),
                args=(way,),
            )
            for way in ("/whole", "/plain") * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(got) == [f"{n}." for n in range(8)]


def test_who_hangs_up_stops_the_answer(tmp_path: Path) -> None:
    """Starlette cancels the task of a client that is gone; the model is not asked further."""
    from starlette.responses import StreamingResponse

    reached, left = threading.Event(), threading.Event()

    async def wait() -> str:
        """Waits."""
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return ""

    async def main() -> None:
        model = ScriptedModel(["Half.", call("wait")])
        async with AsyncAgent(offline(tmp_path), model=model, tools=[wait]) as agent:
            response = StreamingResponse(agent.stream("hi").text())

            async def receive() -> dict[str, Any]:
                await asyncio.to_thread(reached.wait, 60)
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                pass

            scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
            await response(scope, receive, send)
            assert await asyncio.to_thread(left.wait, 60)

    asyncio.run(main())


CELLS = """
from searchloop import Agent, AsyncAgent
from searchloop.testing import ScriptedModel, offline
agent = Agent(offline({home!r}), model=ScriptedModel("**Yes** [1].", "One."))
answer = agent.ask("Is it so?")
"".join(agent.stream("And?").text())
other = AsyncAgent(offline({home!r}), model=ScriptedModel("Awaited.", "In pieces."))
(await other.ask("And now?")).text
"".join([piece async for piece in other.stream("Last?").text()])
answer
await other.aclose(); agent.close()
"""


def test_inside_a_notebook(tmp_path: Path) -> None:
    """A kernel runs a loop of its own: both faces work in its cells, and an answer shows itself."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    shown: list[dict[str, str]] = []
    try:
        for cell in CELLS.format(home=str(tmp_path)).strip().splitlines():

            def keep(message: Any) -> None:
                if message["msg_type"] == "execute_result":
                    shown.append(message["content"]["data"])

            reply = client.execute_interactive(cell, timeout=60, output_hook=keep)
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    one, awaited, pieces, answer = shown
    assert [each["text/plain"] for each in (one, awaited, pieces)] == [
        "'One.'",
        "'Awaited.'",
        "'In pieces.'",
    ]
    assert answer["text/html"].startswith("<p><strong>Yes</strong>")
    assert answer["text/markdown"].startswith("**Yes**")
    assert answer["text/plain"] == "<Answer '**Yes** [1].' stop, 0 cited>"


def test_on_uvloop(tmp_path: Path) -> None:
    """The program's loop may be another than the agent's."""
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not made for this system")

    async def main() -> list[str]:
        model = ScriptedModel("It is noon.", "It is one.")
        async with AsyncAgent(offline(tmp_path), model=model) as agent:
            whole = await agent.ask("When?")
            return [whole.text, "".join([t async for t in agent.stream("And?").text()])]

    assert uvloop.run(main()) == ["It is noon.", "It is one."]


def test_the_plain_face_works_inside_a_running_loop(tmp_path: Path) -> None:
    """It blocks that loop, as any plain call does, and never waits for it."""

    async def main() -> str:
        with Agent(offline(tmp_path), model=ScriptedModel("It is noon.")) as agent:
            return agent.ask("When?").text

    assert asyncio.run(main()) == "It is noon."


def test_a_context_variable_of_the_program_reaches_its_tools(tmp_path: Path) -> None:
    """As spans of telemetry do: the agent's loop runs in the context of the one that asks."""
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")

    async def name() -> str:
        """Who asks."""
        return who.get()

    model = ScriptedModel(call("name"), lambda request: request.messages[-1].content)
    with Agent(offline(tmp_path), model=model, tools=[name]) as agent:
        who.set("Ada")
        assert agent.ask("Who am I?").text == "Ada"
