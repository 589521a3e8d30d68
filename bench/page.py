"""`python -m bench.page`: the page in a real browser, alone and while an answer streams in.

Starts `searchloop serve` with a long session in its log and a model that says 100 words a second,
opens Chromium, and prints: start to first answer, weight of the page, first paint, how long frames
take while the answer grows, and the server's memory. Wants Chromium and the dev dependencies.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Response, sync_playwright

from agent.log import EventLog

TURNS, WORDS_A_SECOND, SECONDS = 250, 100, 8  # a turn is two messages
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
_START = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+")
_PARAGRAPH = (
    "A paragraph with **bold**, `code` and a list:\n\n- one\n- two\n\n```python\nx = 1\n```\n\n"
)
FRAMES = """(ms) => new Promise((done) => {
  const lengths = []; let last = performance.now(); const end = last + ms;
  const tick = (now) => {
    lengths.push(now - last); last = now;
    if (now < end) requestAnimationFrame(tick); else done(lengths.slice(1));
  };
  requestAnimationFrame(tick);
})"""


class Talker(BaseHTTPRequestHandler):
    """A model server that says a word every hundredth of a second."""

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        """Its models and its version."""
        models = {"models": [{"name": "talker:1b", "model": "talker:1b", "details": {}}]}
        self._json({"version": "0.1"} if self.path.endswith("version") else models)

    def do_POST(self) -> None:
        """What a model can do, or an answer in lines of JSON."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.endswith("chat"):
            return self._json({"capabilities": ["completion"], "model_info": {}, "details": {}})
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.end_headers()
        text = _PARAGRAPH * 400
        words = re.findall(r"\S+\s+", text)[: WORDS_A_SECOND * (SECONDS + 4)]
        began = time.monotonic()
        for i, word in enumerate(words):
            time.sleep(max(0.0, began + i / WORDS_A_SECOND - time.monotonic()))
            try:
                self._line({"message": {"role": "assistant", "content": word}, "done": False})
            except OSError:  # the browser has seen enough
                return None
        self._line({"message": {"role": "assistant", "content": ""}, "done": True})
        return None

    def _line(self, data: dict[str, Any]) -> None:
        self.wfile.write(json.dumps({"model": "talker:1b", **data}).encode() + b"\n")
        self.wfile.flush()

    def _json(self, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(home: Path, ollama: int) -> Iterator[tuple[str, int, float]]:
    """(start address, process id, seconds to it) of a server with its data in `home`."""
    env = {**os.environ, "SEARCHLOOP_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    env["OLLAMA_HOST"] = f"127.0.0.1:{ollama}"
    began = time.monotonic()
    command = [sys.executable, "-m", "cli", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
    assert process.stdout
    try:
        for line in process.stdout:
            if found := _START.search(line):
                yield found[0], process.pid, time.monotonic() - began
                return
    finally:
        process.terminate()
        process.wait(10)


def long_session(home: Path) -> str:
    """A session of many turns, as a log holds it."""
    log = EventLog(home / "sessions.sqlite3")
    chat = log.create_session(model="ollama:talker:1b").id
    for n in range(TURNS):
        run = {"run_id": str(n), "model": "ollama:talker:1b", "mode": "ask", "search": "off"}
        text = f"Answer {n}. {_PARAGRAPH * 3}"
        lists: dict[str, Any] = {"citations": [], "sources": [], "usage": {}}
        message = {"text": text, "thinking": "", "tool_calls": [], "step": 1, **lists}
        ended = {**run, "reason": "stop", "answer": text, "search_path": "off", **lists}
        log.append(
            chat,
            [
                ("user_message", {"text": f"Question {n}"}),
                ("run_started", {**run, "search_path": "off"}),
                ("message", message),
                ("run_finished", ended),
            ],
        )
    log.close()
    return chat


def look(page: Page, start: str, chat: str) -> Iterator[tuple[str, str]]:
    """What the browser measures, as (name, figure)."""
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(start)
    page.locator(".health").first.wait_for()
    page.wait_for_load_state("networkidle")
    done = [answer.request.sizes() for answer in answers if answer.status == 200]
    weight = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in done)
    yield "page, everything", f"{len(answers)} requests, {weight / 1000:.0f} kB on the wire"
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    paints = []
    for _ in range(5):
        page.reload()
        page.locator(".health").first.wait_for()
        paints.append(page.evaluate(paint))
    yield "first contentful paint", f"{sorted(paints)[2]:.0f} ms (median of 5)"
    began = time.monotonic()
    page.goto(start.partition("?")[0] + f"#/s/{chat}")
    page.reload()
    page.locator(".turn").nth(TURNS - 1).wait_for()
    yield f"opening {TURNS * 2} messages", f"{time.monotonic() - began:.2f} s"
    page.get_by_label("Your question").fill("Talk")
    page.get_by_label("Your question").press("Enter")
    page.locator(".turn.running .answer p").first.wait_for()
    frames = sorted(page.evaluate(FRAMES, SECONDS * 1000))
    at = partial(_share, frames)
    per_second = len(frames) / SECONDS
    yield (
        f"frames at {WORDS_A_SECOND} words/s",
        f"{per_second:.0f} a second; median {at(0.5):.1f} ms, p95 {at(0.95):.1f}, "
        f"p99 {at(0.99):.1f}, longest {frames[-1]:.0f}",
    )


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def memory(pid: int) -> str:
    """Resident memory of a process; the question is put to Linux."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return f"{int(found[1]) / 1024:.0f} MiB" if found else "unknown here"


def main() -> int:
    """0 when everything was measured, 2 without a browser."""
    browser = next((path for path in BROWSERS if Path(path).exists()), None)
    if browser is None:
        print("bench.page: no Chromium found", file=sys.stderr)
        return 2
    talker = ThreadingHTTPServer(("127.0.0.1", 0), Talker)
    threading.Thread(target=talker.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chat = long_session(Path(folder))
        with served(Path(folder), talker.server_port) as (start, pid, seconds):
            print(f"{'start to address':<28}{seconds:.2f} s")
            print(f"{'memory, idle':<28}{memory(pid)}")
            launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for name, figure in look(launched.new_page(), start, chat):
                print(f"{name:<28}{figure}")
            print(f"{'memory, afterwards':<28}{memory(pid)}")
            launched.close()
    talker.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
