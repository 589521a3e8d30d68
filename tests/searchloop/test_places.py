"""The library where programs run: a web server, a notebook, other loops, threads, type checkers."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import uvloop

from searchloop import Agent, AsyncAgent
from searchloop.testing import ScriptedModel, call, offline


async def test_who_hangs_up_stops_the_answer(tmp_path: Path) -> None:
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


def test_on_uvloop(tmp_path: Path) -> None:
    """The program's loop may be another than the agent's."""

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
