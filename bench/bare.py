"""The floor: what a person writes by hand with `httpx2` and nothing else.

One client a process with its own defaults (a pool without a limit costs three times as much at 300
runs), `aiter_raw`, split at blank lines, `json.loads` of each event, and a loop that runs what the
model asks for. No retries, no errors, no log, no limits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from bench.clock import report, take
from bench.fake_openai import tool_schema
from bench.scenarios import MODEL, Outcome, Scenario

_HEADERS = {"authorization": "Bearer bench", "content-type": "application/json"}


class Bare:
    """Runs of one scenario over one client."""

    def __init__(self, scenario: Scenario, url: str) -> None:
        self._scenario = scenario
        self._url = f"{url}/responses"
        self._tools = [tool_schema(scenario)] if scenario.turns > 1 else []
        self._result = "x" * scenario.result or "ok"
        self._client = httpx2.AsyncClient(timeout=60)
        self._history = [
            {"role": ("user", "assistant")[n % 2], "content": "word " * (scenario.length // 5)}
            for n in range(scenario.history)
        ]

    async def run(self) -> Outcome:
        """The scenario's runs, all at once."""
        runs = [self._one() for _ in range(self._scenario.at_once)]
        ends = await asyncio.gather(*runs)
        return Outcome(*(sum(n) for n in zip(*ends, strict=True)))

    async def _one(self) -> tuple[int, int, int]:
        items: list[Any] = [*self._history, {"role": "user", "content": "Do the work."}]
        calls = requests = 0
        while True:
            requests += 1
            pieces, output = [], []
            async for event in self._ask(items):
                if event["type"] == "response.output_text.delta":
                    pieces.append(event["delta"])
                elif event["type"] == "response.completed":
                    output = event["response"]["output"]
            asked = [item for item in output if item["type"] == "function_call"]
            if not asked:
                return calls, len("".join(pieces)), requests
            calls += len(asked)
            results = await asyncio.gather(*(self._call(item) for item in asked))
            items += output
            items += [
                {"type": "function_call_output", "call_id": item["call_id"], "output": result}
                for item, result in zip(asked, results, strict=True)
            ]

    async def _ask(self, items: list[Any]) -> AsyncIterator[Any]:
        payload = {
            "model": MODEL,
            "instructions": "Answer.",
            "input": items,
            "tools": self._tools,
            "stream": True,
            "store": False,
        }
        body = json.dumps(payload).encode()
        async with self._client.stream(
            "POST", self._url, content=body, headers=_HEADERS
        ) as response:
            rest = b""
            async for data in response.aiter_raw():
                *events, rest = (rest + data).split(b"\n\n")
                for event in events:
                    yield json.loads(event[event.index(b"data: ") + 6 :])

    async def _call(self, item: dict[str, Any]) -> str:
        given = json.loads(item["arguments"])
        if self._scenario.tool == "wait":
            await asyncio.sleep(given["seconds"])
        elif self._scenario.tool == "block":
            await asyncio.to_thread(time.sleep, given["seconds"])
        return self._result


def _as_is(outcome: Outcome) -> Outcome:
    return outcome


def main() -> None:
    """Argument: {"scenario": ..., "url": ...} as JSON. Prints the samples as JSON."""
    order = json.loads(sys.argv[1])
    scenario = Scenario(**order["scenario"])
    with asyncio.Runner() as loop:
        bare = Bare(scenario, order["url"])
        print(json.dumps(report(take(scenario, lambda: loop.run(bare.run()), _as_is))))


if __name__ == "__main__":
    main()
