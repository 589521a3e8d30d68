"""A model server that answers at once: the Responses API as a stream, for measuring clients.

Answers are rendered before the first request and written whole; each event is an HTTP chunk of its
own and has the fields that the real ones have. A request's path names the scenario and the tool
results in its body tell which turn it is, so that the server keeps nothing between requests.

`python -m bench.fake_openai` reads scenarios as one line of JSON on standard input, prints its
port, and ends when standard input does. `GET /counts` tells how many requests each scenario had and
when the last of them arrived, on the clock that all processes of a machine share.

https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.scenarios import Scenario

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RESULT = b'"function_call_output"'
_NAMES = {"echo": "echo", "page": "read_page", "wait": "wait", "block": "block"}
_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"Date: Sat, 21 Nov 2026 02:30:00 GMT\r\n"
    b"Content-Type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n"
    b"Server: edge\r\n"
    b"openai-version: 2020-10-01\r\n"
    b"openai-organization: bench\r\n"
    b"openai-processing-ms: 187\r\n"
    b"x-ratelimit-limit-requests: 15000\r\n"
    b"x-ratelimit-limit-tokens: 40000000\r\n"
    b"x-ratelimit-remaining-requests: 14999\r\n"
    b"x-ratelimit-remaining-tokens: 39999493\r\n"
    b"x-request-id: req_5f0c3b1e9d7a4c26b8e1f3a5d7092b4c\r\n"
    b"strict-transport-security: max-age=31536000; includeSubDomains; preload\r\n"
    b"X-Content-Type-Options: nosniff\r\n\r\n"
)
_USAGE = {
    "input_tokens": 812,
    "input_tokens_details": {"cached_tokens": 512},
    "output_tokens": 96,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 908,
}
_NONE = (
    "error incomplete_details instructions max_output_tokens max_tool_calls previous_response_id"
)
_SAME: dict[str, Any] = {
    "object": "response",
    "created_at": 1795228200,
    "background": False,
    **dict.fromkeys([*_NONE.split(), "prompt_cache_key", "safety_identifier", "user"]),
    "model": "gpt-6-luna-2026-08-20",
    "parallel_tool_calls": True,
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low", "summary": None},
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 0.98,
    "truncation": "disabled",
    "metadata": {},
}


def tool_name(scenario: Scenario) -> str:
    """What the model calls in this scenario."""
    return _NAMES[scenario.tool]


def arguments(scenario: Scenario, turn: int, call: int) -> dict[str, Any]:
    """What the model calls it with."""
    if scenario.tool in ("wait", "block"):
        return {"seconds": scenario.seconds}
    return {"text": f"turn {turn}, call {call}"}


def answers(scenario: Scenario) -> list[bytes]:
    """The whole HTTP answer to each turn."""
    turns = [_Turn(scenario, n) for n in range(scenario.turns)]
    return [_HEAD + b"".join(map(_chunk, turn.events())) + b"0\r\n\r\n" for turn in turns]


def _chunk(event: dict[str, Any]) -> bytes:
    data = json.dumps(event, separators=(",", ":"))
    text = f"event: {event['type']}\ndata: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(text), text)


class _Turn:
    """The events of one answer, in the order in which they come."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        self._scenario = scenario
        self._number = number
        self._sequence = 0
        self._random = random.Random(f"{scenario.name} {number}")

    def events(self) -> Iterator[dict[str, Any]]:
        """From `response.created` to `response.completed`."""
        begun = self._response("in_progress", [])
        yield self._event("created", response=begun)
        yield self._event("in_progress", response=begun)
        output: list[dict[str, Any]] = []
        if self._number == self._scenario.turns - 1:
            yield from self._text(output)
        else:
            for call in range(self._scenario.calls):
                yield from self._call(call, output)
        yield self._event("completed", response=self._response("completed", output))

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._sequence += 1
        return {"type": f"response.{kind}", "sequence_number": self._sequence - 1, **fields}

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._random.getrandbits(200):050x}"

    def _text(self, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        item = self._id("msg")
        empty = {"id": item, "type": "message", "status": "in_progress", "content": []}
        shown = {"item_id": item, "output_index": 0, "content_index": 0}
        part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": []}
        yield self._event("output_item.added", output_index=0, item={**empty, "role": "assistant"})
        yield self._event("content_part.added", **shown, part={**part, "text": ""})
        pieces = [self._piece(n) for n in range(self._scenario.deltas)]
        for piece in pieces:
            padding = f"{self._random.getrandbits(48):012x}"
            yield self._event(
                "output_text.delta", **shown, delta=piece, logprobs=[], obfuscation=padding
            )
        text = "".join(pieces)
        yield self._event("output_text.done", **shown, text=text, logprobs=[])
        yield self._event("content_part.done", **shown, part={**part, "text": text})
        content = [{**part, "text": text}]
        done = {**empty, "status": "completed", "content": content, "role": "assistant"}
        output.append(done)
        yield self._event("output_item.done", output_index=0, item=done)

    def _piece(self, number: int) -> str:
        """Words of numbers, a paragraph each fifty; neither blanks nor a cut at the end."""
        size = self._scenario.size
        end = "." if number == self._scenario.deltas - 1 else "\n\n" if number % 50 == 49 else " "
        return f"{number:06d}"[len(end) - size :] + end

    def _call(self, call: int, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        item, given = self._id("fc"), arguments(self._scenario, self._number, call)
        text = json.dumps(given, separators=(",", ":"))
        empty = {
            "id": item,
            "type": "function_call",
            "status": "in_progress",
            "arguments": "",
            "call_id": f"call_{self._random.getrandbits(96):024x}",
            "name": tool_name(self._scenario),
        }
        where = {"item_id": item, "output_index": call}
        yield self._event("output_item.added", output_index=call, item=empty)
        for start in range(0, len(text), 4):
            padding = f"{self._random.getrandbits(48):012x}"
            yield self._event(
                "function_call_arguments.delta",
                **where,
                delta=text[start : start + 4],
                obfuscation=padding,
            )
        yield self._event("function_call_arguments.done", **where, arguments=text)
        done = {**empty, "status": "completed", "arguments": text}
        output.append(done)
        yield self._event("output_item.done", output_index=call, item=done)

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        done = status == "completed"
        return {
            **_SAME,
            "id": f"resp_{self._number:050x}",
            "status": status,
            "completed_at": 1795228201 if done else None,
            "output": output,
            "tools": [tool_schema(self._scenario)],
            "usage": _USAGE if done else None,
        }


def tool_schema(scenario: Scenario) -> dict[str, Any]:
    """The tool as the API lists it."""
    kinds = {"seconds": "number"} if scenario.tool in ("wait", "block") else {"text": "string"}
    return {
        "type": "function",
        "name": tool_name(scenario),
        "description": "A tool to measure with.",
        "parameters": {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in kinds.items()},
            "required": list(kinds),
            "additionalProperties": False,
        },
        "strict": False,
    }


class _Connection(asyncio.Protocol):
    """Requests on one connection; nothing is sent before the last one was answered."""

    def __init__(self, known: dict[str, tuple[int, list[bytes]]], seen: dict[str, Any]) -> None:
        self._known = known
        self._seen = seen
        self._pieces: list[bytes] = []
        self._missing = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Gathers a request; its length is known from the first piece with all its headers."""
        self._pieces.append(data)
        if self._missing:
            self._missing = max(0, self._missing - len(data))
        else:
            begun = b"".join(self._pieces)
            end = begun.find(b"\r\n\r\n")
            if end < 0:
                return
            found = _LENGTH.search(begun, 0, end)
            self._missing = max(0, end + 4 + int(found[1] if found else 0) - len(begun))
        if not self._missing:
            request = b"".join(self._pieces)
            self._pieces.clear()
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        method, path, _ = request.split(b" ", 2)
        name, _, rest = path[1:].decode().partition("/")
        if path == b"/counts":
            self._transport.write(_plain(200, self._seen))
        elif method == b"POST" and rest == "v1/responses" and name in self._known:
            seen = self._seen.setdefault(name, {"requests": 0, "arrived": 0.0})
            seen["requests"] += 1
            seen["arrived"] = time.monotonic()
            calls, turns = self._known[name]
            turn = request.count(_RESULT) // calls
            if turn < len(turns):
                self._transport.write(turns[turn])
            else:
                self._transport.write(_plain(400, {"error": {"message": "too many turns"}}))
        else:
            self._transport.write(_plain(404, {"error": {"message": f"no {path.decode()}"}}))


def _plain(status: int, value: Any) -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


async def serve(scenarios: list[Scenario]) -> None:
    """Answers until standard input ends."""
    known = {s.name: (s.calls, answers(s)) for s in scenarios}
    seen: dict[str, Any] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(known, seen), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve([Scenario(**data) for data in json.loads(sys.stdin.readline())]))
