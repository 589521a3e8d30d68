"""A real server in a process of its own, and a model that a test leads by the hand."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self
from urllib.request import Request, urlopen

from searchloop.agent.log import EventLog
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import Received, Reply
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
_QUIET = {
    "SEARCHLOOP_TITLES": "0",
    "SEARCHLOOP_FOLLOW_UPS": "0",
}  # what a led model says is an answer
_START = re.compile(r"https?://127\.0\.0\.1:(\d+)/")


class House:
    """`searchloop serve` as a user starts it, with its data in `home` and nothing else set."""

    def __init__(self, home: Path, settings: Mapping[str, str], port: int = 0) -> None:
        self.home = home
        self.settings = {"SEARCHLOOP_TOKEN": secrets.token_hex(16), **_QUIET, **settings}
        self.port = port
        self.token = ""
        self.output: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts it for the time of a `with`."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self.stop()

    @cached_property
    def log(self) -> EventLog:
        """Its store, as another process that writes to it has it."""
        return EventLog(self.home / "data" / "sessions.sqlite3")

    def chat(self, *events: tuple[str, dict[str, Any]], **more: Any) -> str:
        """A chat in whose log these events stand; its id."""
        made = self.log.create_session(**{"model": LOCAL, **more}).id
        self.log.append(made, events)
        return made

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def start_url(self) -> str:
        """An address that signs a browser in."""
        return f"{self.url}?token={self.token}"

    def start(self) -> None:
        """Returns once the start address was printed."""
        kept = {
            k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR")
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "searchloop.cli", "serve", "--port", str(self.port)],
            cwd=self.home,
            env={
                **kept,
                "HOME": str(self.home),
                "PYTHONPATH": str(ROOT),
                "PYTHONUNBUFFERED": "1",
                "SEARCHLOOP_HOME": str(self.home / "data"),
                **self.settings,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        ready = threading.Event()
        reading = threading.Thread(
            target=self._read, args=(self._process.stdout, ready), daemon=True
        )
        reading.start()
        assert ready.wait(START_SECONDS), f"the server did not start: {''.join(self.output)}"
        assert self.token, f"the server ended: {''.join(self.output)}"

    def _read(self, stream: IO[str], ready: threading.Event) -> None:
        with stream:
            for line in stream:
                self.output.append(line)
                found = _START.search(line)
                if found:
                    self.port = int(found[1])
                    kept = self.home / "data" / "token"
                    self.token = self.settings["SEARCHLOOP_TOKEN"] or kept.read_text().strip()
                    ready.set()
        ready.set()

    def stop(self, *, kill: bool = False) -> None:
        """Ends the server, politely or as a crash would."""
        if "log" in vars(self):
            vars(self).pop("log").close()
        if self._process:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait(90)
            self._process = None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request of another program to the API."""
        request = Request(
            self.url.rstrip("/") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None

    def asked(self, *questions: str, **settings: Any) -> str:
        """A chat in which another program asked these, once all are answered; its id."""
        path = f"/api/sessions/{self.call('POST', '/api/sessions', settings)['id']}"
        for question in questions:
            self.call("POST", f"{path}/messages", {"text": question})
            until(lambda: not self.call("GET", path)["running"])
        return path.rpartition("/")[2]


Script = Callable[[list[dict[str, Any]]], Iterable[Any] | Reply]


class LedOllama(FakeOllama):
    """An Ollama whose answers a test writes while the page looks on.

    `script` gets the messages and yields the pieces of the answer: text, a mapping that is a
    message part (thinking, tool_calls), or a threading.Event to wait for. A script that ends with
    `STALL` says nothing more until the client hangs up. A Reply is given as it is.
    """

    def __init__(self, *models: Model) -> None:
        super().__init__(models)
        self.script: Script = lambda messages: ["Nothing was scripted."]

    def next_reply(self, received: Received) -> Reply:
        """Chats follow the script; everything else is answered as the fake server does."""
        if received.path != "/api/chat":
            return super().next_reply(received)
        self.requests.append(received)
        body = received.json
        self.chats.append(body)
        answer = self.script(body.get("messages") or [])
        if isinstance(answer, Reply):
            return answer
        pieces = list(answer)
        stalls = pieces[-1:] == [STALL]
        if stalls:
            pieces.pop()
        lines = _lines(pieces, stalls)
        kind = {"content-type": "application/x-ndjson"}
        return Reply(lines, 200, kind, end="stall" if stalls else "done")  # type: ignore[arg-type]


MODEL = "qwen3:8b"
LOCAL, SEES = f"ollama:{MODEL}", "eyes:4b"
LOCAL_MODELS = (
    Model(MODEL, ("completion", "tools", "thinking")),
    Model(SEES, ("completion", "vision"), num_ctx=32_768),
)
STALL = object()
GATE_SECONDS = 300.0


def called(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A step in which the model asks for one tool."""
    return [{"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}]


def _lines(pieces: Iterable[Any], stalls: bool) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, threading.Event):
            assert piece.wait(GATE_SECONDS), "the test never opened the gate"
            continue
        part = {"content": piece} if isinstance(piece, str) else {"content": "", **piece}
        yield _line({"message": {"role": "assistant", **part}, "done": False})
    if not stalls:
        counts = {"prompt_eval_count": 120, "eval_count": 34, "done_reason": "stop"}
        yield _line({"message": {"role": "assistant", "content": ""}, "done": True, **counts})


def _line(value: Mapping[str, Any]) -> bytes:
    line = {"model": MODEL, "created_at": "2026-11-20T10:00:00Z", **value}
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"
