"""Measures the faces at /v1: `python -m bench.gateway`.

A run that a program asks for is answered once as it is and once through the gate and a protocol, in
one process, on a model server in another. The figures are CPU: of a request with one delta, and of
an answer of 20,000 deltas as a share of the run itself.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from bench.clock import WrongResult
from bench.measure import fake
from bench.scenarios import MODEL, Scenario
from searchloop.agent.settings import Environment
from searchloop.agent.types import Message
from searchloop.compose import open_services
from searchloop.protocols.runs import ClientRuns, Wish
from searchloop.web.app import WebApp
from searchloop.web.gate.access import Access

TOKEN = "t" * 43
_ASKED = [{"role": "user", "content": "Do the work."}]
_FACES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": _ASKED},
    "/v1/responses": {"input": _ASKED},
    "/v1/messages": {"messages": _ASKED, "max_tokens": 99_999},
}
_ONE = Scenario("one", "one delta", deltas=1)
_MANY = Scenario("many", "20,000 deltas of 4 characters", deltas=20_000)


@dataclass
class Ways:
    """The run itself, and each face before it."""

    runs: ClientRuns
    app: WebApp

    async def itself(self) -> None:
        """The run, each of whose events is read."""
        wish = Wish(f"openai:{MODEL}", (Message("user", "Do the work."),), keep=False)
        async with self.runs.answer(await self.runs.ready(wish)) as events:
            last = [happened async for batch in events for happened in batch][-1]
        if last[1]["reason"] != "stop":
            raise WrongResult(str(last[1]["error"]))

    async def face(self, path: str) -> None:
        """A request as a stream, through the gate."""
        body = json.dumps({"model": f"openai:{MODEL}", "stream": True, **_FACES[path]}).encode()
        head = {
            "host": "127.0.0.1:8321",
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "content-length": str(len(body)),
        }
        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
        }
        scope |= {"headers": [(k.encode(), v.encode()) for k, v in head.items()]}
        scope |= {"server": ("127.0.0.1", 8321), "client": ("127.0.0.1", 1)}
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        pieces: list[bytes] = []

        async def receive() -> Any:
            return waiting.pop() if waiting else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            pieces.append(message.get("body", b""))

        await self.app(scope, receive, send)
        if len(b"".join(pieces)) < 300 or b'"error":{' in pieces[-2]:
            raise WrongResult(f"{path}: {pieces[-2:]!r}")


async def cpu(work: Callable[[], Awaitable[None]], times: int) -> float:
    """Seconds of CPU of this process, of one of so many; none of them is for what was before."""
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - began) / times


async def measured(base: Callable[[Scenario], str], rounds: int) -> None:
    """Prints a line for each face."""
    found: dict[tuple[str, str], list[float]] = {}
    for scenario, times in ((_ONE, 100), (_MANY, 1)):
        with tempfile.TemporaryDirectory() as home:
            flags = {
                "SEARCHLOOP_HOME": home,
                "OPENAI_API_KEY": "k",
                "OPENAI_BASE_URL": base(scenario),
            }
            services = open_services(Environment({"flag": flags}))
            ways = Ways(ClientRuns(services), WebApp(services, Access(8321, TOKEN)))
            for number in range(rounds + 1):
                found_now = {"itself": await cpu(ways.itself, times)}
                for path in _FACES:
                    found_now[path] = await cpu(partial(ways.face, path), times)
                if number:
                    for name, seconds in found_now.items():
                        found.setdefault((scenario.name, name), []).append(seconds)
            await services.runner.aclose()
            services.close()
    for path in _FACES:
        whole = median(found["one", path])
        more = whole - median(found["one", "itself"])
        pairs = zip(found["many", path], found["many", "itself"], strict=True)
        ratio = median(a / b for a, b in pairs)
        print(
            f"{path}: {whole * 1000:.2f} ms a request, of them {more * 1000:.2f} ms ours (2);",
            end="",
        )
        print(f" {ratio:.2f} x the run itself with 20,000 deltas (1.15)")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    args = parser.parse_args()
    with fake([_ONE, _MANY], None) as server:
        asyncio.run(measured(server.url, args.rounds))


if __name__ == "__main__":
    main()
