"""A command on a terminal of its own, as a person sits before one, and models that it asks."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.conftest import CLEAN
from tests.fakes import FakeServer, Received, Reply
from tests.waiting import until

MODEL = "openai-chat:m"


def data(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One chunk of an answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def said(text: str) -> Reply:
    """A whole answer."""
    return Reply([data({"content": text}, "stop"), b"data: [DONE]\n\n"])


def called(name: str, **arguments: Any) -> Reply:
    """An answer that asks for one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return Reply([data({"tool_calls": [call]}), data({}, "tool_calls"), b"data: [DONE]\n\n"])


def online(server: FakeServer) -> dict[str, str]:
    """Settings that make the server's model the one that is asked."""
    address = {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", "OPENAI_CHAT_API_KEY": "k-0123456789"}
    return {"SEARCHLOOP_MODEL": MODEL, "SEARCHLOOP_OFFLINE": "", **address}


@contextlib.contextmanager
def serving(*replies: Reply) -> Iterator[FakeServer]:
    """A server that plays these answers; other questions of a client find nothing."""
    script = list(replies)

    def answer(received: Received) -> Reply:
        if received.path.endswith("/chat/completions"):
            return script.pop(0)
        return Reply([b"{}"], 404)

    with FakeServer(answer) as server:
        yield server


CHANGE = called("replace_in_file", path="a.txt", old_text="one", new_text="two")


def notes(folder: Path) -> Path:
    """A work folder with the file that CHANGE is about; that file."""
    (folder / "ws").mkdir()
    file = folder / "ws" / "a.txt"
    file.write_text("one\n")
    return file


class Terminal:
    """`searchloop ARGS` on a terminal that it controls, in a folder; settings by keyword."""

    def __init__(self, folder: Path, *args: str, **settings: str) -> None:
        self._screen, theirs = pty.openpty()
        env = {**CLEAN, "HOME": str(folder), "SEARCHLOOP_HOME": str(folder / "home")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "searchloop.cli", *args],
            env={**env, **settings},
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C reaches it
        )
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def until(self, words: str) -> None:
        """Waits until this is on the screen, then forgets what is before it."""
        while words not in self.shown:
            assert self._read(90), f"{words!r} never came: {self.shown}"
        self.shown = self.shown.partition(words)[2]

    def type(self, text: str) -> None:
        """A line from the keyboard."""
        os.write(self._screen, text.encode() + b"\n")

    def work_in(self, folder: str) -> None:
        """Begins a chat in agent mode, with a work folder."""
        for shown, typed in (("search off", f"/workspace {folder}"), ("workspace", "/mode agent")):
            self.until(shown)
            self.type(typed)
        self.until("mode agent")

    def interrupt(self) -> None:
        """Presses Ctrl-C, once the program waits: nobody presses it in the moment before."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S")
        os.write(self._screen, b"\x03")

    def interrupt_until(self, words: str) -> None:
        """Presses it until this is there: the line editor misses one that comes too early."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            self.interrupt()
            if select.select([self._screen], [], [], 0.3)[0]:
                break
        self.until(words)

    def ended(self) -> tuple[int, str]:
        """Waits for the end; the exit code, and what is on the screen since `until`."""
        while self._read(90):
            pass
        return self.process.wait(90), self.shown

    def _read(self, seconds: float) -> bool:
        ready = bool(select.select([self._screen], [], [], seconds)[0])
        if ready:
            try:
                self.shown += os.read(self._screen, 4096).decode("utf-8", "replace")
            except OSError:  # the terminal is gone with its program
                return False
        return ready
