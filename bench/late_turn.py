"""Measures a turn late in a long chat: `python -m bench.late_turn`.

Each turn searches, opens a page and cites it. It goes through the runner, with the log on disk and
a model and a search backend inside the process, so that the time is our own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.run.runner import Runner
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
)

_TEXT = "The harbour of the town was built in the year that the page names. " * 100


class Model:
    """Searches, opens what was found, and cites it."""

    name = "bench"
    turn = 0

    def capabilities(self, model: str) -> Capabilities:
        """Tools, no search of its own."""
        return Capabilities()

    def check(self, model: str) -> None:
        """Nothing can be missing."""

    async def models(self) -> list[ModelInfo]:
        """Returns no choice: the model is named."""
        return []

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields the next step of the turn."""
        since = next(n for n in range(9) if request.messages[-1 - n].role == "user")
        self.turn += since == 0
        turn = self.turn
        if since == 4:
            text = f"The harbour of town {turn} was built in that year [{turn}]."
            yield TextDelta(text)
            yield Finished(Message("assistant", text), "stop", Usage())
            return
        name, argument = ("open_page", "url") if since else ("web_search", "query")
        call = ToolCall(f"{turn}-{since}", name, {argument: f"https://a{turn}.example/"})
        message = Message("assistant", "", tool_calls=(call,))
        yield Finished(message, "tool_calls", Usage())


def _backend(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    asked = json.loads(environ["wsgi.input"].read() or b"{}")
    path, url = environ["PATH_INFO"], asked.get("url") or asked.get("query", "")
    result = {"title": "Town", "url": url, "snippet": "A harbour.", "source": "bench"}
    answer: dict[str, Any] = {"engines": [{"name": "bench", "available": True, "position": 1}]}
    if path == "/api/web-search":
        answer = {"engine": "bench", "status": "ok", "results": [result], "attempts": []}
    elif path == "/api/open-page":
        answer = {"url": url, "title": "Town", "content": _TEXT, "content_length": len(_TEXT)}
        answer |= {"original_length": len(_TEXT), "truncated": False, "next_offset": None}
        answer |= {"status": "ok", "error": None, "links": []}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]


async def _turns(home: Path, count: int) -> list[float]:
    """Returns the processor seconds of each turn."""
    flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_MODEL": "bench:one"}
    settings = Settings.load(Environment({"flag": flags}))
    log = EventLog(home / "sessions.sqlite3")
    runner = Runner(settings, log, LocalBackend(_backend), providers=[Model()])
    session = log.create_session(model=settings.model, search="local").id
    seconds = []
    for turn in range(1, count + 1):
        begun = time.process_time()
        await runner.start(session, f"When was the harbour of town {turn} built?")
        await runner.wait(session)
        seconds.append(time.process_time() - begun)
        ended = log.last_event(session).data
        if ended.get("reason") != "stop" or not ended["citations"]:
            raise SystemExit(f"turn {turn} went wrong: {ended.get('error')}")
    await runner.aclose()
    log.close()
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the cost of an early and of a late turn, and their ratio; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.late_turn", description=__doc__)
    parser.add_argument("--turns", type=int, default=500)
    count = max(parser.parse_args(argv).turns, 20)
    with tempfile.TemporaryDirectory() as home:
        seconds = asyncio.run(_turns(Path(home), count))
    early, late = sum(seconds[5:15]) / 10, sum(seconds[-10:]) / 10
    print(
        f"turns 6 to 15: {early * 1000:.1f} ms each; the last ten of {count}: {late * 1000:.1f} ms"
    )
    print(f"ratio: {late / early:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
