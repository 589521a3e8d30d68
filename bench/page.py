"""`python -m bench.page`: the page in a real browser, alone and while an answer streams in.

Starts `searchloop serve` with a long session in its log and a model that says 100 words a second,
opens Chromium, and prints each figure beside its aim: start to first paint, weight of the page,
memory, and how long frames take while the answer grows. A frame that is late may be the machine's
fault, so the same is measured on the page at rest, right before, and the page's own share is told
as processor time of its main thread. Wants Chromium and the dev dependencies.
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
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, Response, sync_playwright

from bench.table import machine
from searchloop.agent.log import EventLog

TURNS, WORDS_A_SECOND, SECONDS = 250, 100, 8  # a turn is two messages
PAINT = "first-contentful-paint"
PAINTED = """(name) => new Promise((done) => {
  const seen = (list) => { if (list.getEntriesByName(name).length) done(); };
  new PerformanceObserver(seen).observe({type: "paint", buffered: true});
})"""
BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
_START = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+")
_PARAGRAPH = (
    "A paragraph with **bold**, `code` and a list:\n\n- one\n- two\n\n```python\nx = 1\n```\n\n"
)
TALK = _PARAGRAPH * 400
BLOCKS = {
    "table": "| town | count | what |\n|---|---|---|\n"
    + "| one town | 37 | *some* words |\n" * 240,
    "nested list": "".join("  " * (i % 5) + f"- item {i} of **some** words\n" for i in range(300)),
}  # 8 KB each
TASKS = """() => new Promise((done) => {
  const lengths = [0];
  const seen = (list) => lengths.push(...list.getEntries().map((task) => task.duration));
  new PerformanceObserver(seen).observe({type: "longtask", buffered: true});
  setTimeout(() => done(Math.max(...lengths)), 1000);
})"""  # what is shorter than 50 ms is not told
WATCH = """() => {
  window.longest = 0;
  const seen = (list) => list.getEntries().forEach((task) => {
    window.longest = Math.max(longest, task.duration);
  });
  new PerformanceObserver(seen).observe({type: "longtask"});
}"""
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
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if not self.path.endswith("chat"):
            return self._json({"capabilities": ["completion"], "model_info": {}, "details": {}})
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.end_headers()
        text = next((text for kind, text in BLOCKS.items() if f"Say a {kind}" in asked), TALK)
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
def served(home: Path, ollama: int) -> Iterator[tuple[str, int]]:
    """(start address, process id) of a server with its data in `home`."""
    env = {**os.environ, "SEARCHLOOP_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    env["OLLAMA_HOST"] = f"127.0.0.1:{ollama}"
    command = [sys.executable, "-m", "searchloop.cli", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
    assert process.stdout
    try:
        for line in process.stdout:
            if found := _START.search(line):
                yield found[0], process.pid
                return
    finally:
        process.terminate()
        process.wait(10)


def long_session(
    home: Path, turns: int = TURNS, said: str = _PARAGRAPH * 3, model: str = "ollama:talker:1b"
) -> str:
    """A session of many turns, as a log holds it."""
    log = EventLog(home / "sessions.sqlite3")
    chat = log.create_session(model=model).id
    events: list[tuple[str, dict[str, Any]]] = []
    for n in range(turns):
        run = {"run_id": str(n), "model": model, "mode": "ask", "search": "off"}
        text = f"Answer {n}. {said}"
        lists: dict[str, Any] = {"citations": [], "sources": [], "usage": {}}
        message = {"text": text, "thinking": "", "tool_calls": [], "step": 1, **lists}
        ended = {**run, "reason": "stop", "answer": text, "search_path": "off", **lists}
        events += [
            ("user_message", {"text": f"Question {n}"}),
            ("run_started", {**run, "search_path": "off"}),
            ("message", message),
            ("run_finished", ended),
        ]
    log.append(chat, events)
    log.close()
    return chat


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result. Without an aim it is there to explain another."""

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    def line(self) -> str:
        """Name, figure, aim and verdict, in columns."""
        shown = f"{self.value:.2f}" if self.value < 10 and self.value % 1 else f"{self.value:.0f}"
        aim, sign = (self.most, "<=") if self.least is None else (self.least, ">=")
        if aim is None:
            return f"{self.name:<36}{shown:>8} {self.unit}"
        met = self.value <= aim if self.least is None else self.value >= aim
        verdict = "met" if met else "MISSED"
        return f"{self.name:<36}{shown:>8} {self.unit:<12}{sign} {aim:g}, {verdict}"


def first_look(page: Page, start: str, began: float) -> Iterator[Figure]:
    """A browser that was never here, and a server that was just started."""
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(start, wait_until="commit")
    page.evaluate(PAINTED, PAINT)  # evaluated from outside: the page's policy forbids eval
    yield Figure("start to first paint", time.monotonic() - began, "s", most=1.0)
    page.locator(".suggestions").wait_for()
    page.wait_for_load_state("networkidle")
    done = [answer.request.sizes() for answer in answers if answer.status == 200]
    weight = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in done)
    yield Figure("requests for everything", len(answers), most=32)
    yield Figure("on the wire, headers too", weight / 1000, "kB", most=160)
    paints = []
    for _ in range(5):
        page.reload()
        page.locator(".suggestions").wait_for()
        paints.append(page.evaluate(f"performance.getEntriesByName('{PAINT}')[0].startTime"))
    yield Figure("first contentful paint, median of 5", sorted(paints)[2], "ms", most=200)


def streaming(page: Page, start: str, chats: dict[int, str]) -> Iterator[Figure]:
    """A short and a long chat: opened, looked at and answered at length; shares of each other."""
    spent: list[tuple[float, float, float]] = []
    for turns, chat in chats.items():
        began = time.monotonic()
        page.goto(start.partition("?")[0] + f"#/s/{chat}")
        page.reload()
        page.locator(".turn").nth(turns - 1).wait_for()
        opened = time.monotonic() - began
        page.wait_for_load_state("networkidle")
        rest = Frames.of(page)
        page.evaluate(WATCH)
        page.get_by_label("Your question").fill("Talk")
        page.get_by_label("Your question").press("Enter")
        page.locator(".turn.running .answer p").first.wait_for()
        busy = Frames.of(page)
        spent.append((opened, busy.own_ms, page.evaluate("longest")))
        page.locator(".turn.running").wait_for(state="detached", timeout=60_000)
    short, long = spent
    yield Figure(f"opening {TURNS} turns", long[0], "s", most=1.2)
    yield Figure("  of an almost empty chat's time", long[0] / short[0], "times")
    yield Figure("frames at rest", rest.per_second, "a second")
    words = f"frames at {WORDS_A_SECOND} words/s"
    yield Figure(words, busy.per_second, "a second", least=round(0.97 * rest.per_second, 1))
    yield Figure("  longer than 25 ms", 100 * busy.late, "%")
    yield Figure("  the same at rest", 100 * rest.late, "%")
    yield Figure("  median", busy.share(0.5), "ms")
    yield Figure("  p95", busy.share(0.95), "ms")
    yield Figure("  longest", busy.share(1), "ms")
    yield Figure("  main thread, processor time", long[1], "ms a frame", most=8.3)
    yield Figure("  of an almost empty chat's", long[1] / short[1], "times")
    yield Figure("  longest task", long[2], "ms", most=200)
    yield Figure("  in an almost empty chat", short[2], "ms")
    yield Figure("  layouts", busy.layouts, "a frame", most=2)


@dataclass(frozen=True, slots=True)
class Frames:
    """Some seconds of frames: their lengths in ms, and what the main thread did for each."""

    lengths: list[float]
    own_ms: float
    layouts: float

    @classmethod
    def of(cls, page: Page) -> Frames:
        """Watches the page as it is."""
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _metrics(tools)
        lengths = sorted(page.evaluate(FRAMES, SECONDS * 1000))
        after = _metrics(tools)
        tools.detach()
        spent = {name: (after[name] - before[name]) / len(lengths) for name in after}
        return cls(lengths, spent["TaskDuration"] * 1000, spent["LayoutCount"])

    @property
    def per_second(self) -> float:
        """Frames a second."""
        return len(self.lengths) / SECONDS

    @property
    def late(self) -> float:
        """The share of frames after which at least one was left out."""
        return sum(length > 25 for length in self.lengths) / len(self.lengths)

    def share(self, share: float) -> float:
        """The length that this share of frames does not exceed."""
        return self.lengths[min(len(self.lengths) - 1, int(share * len(self.lengths)))]


def long_answer(page: Page, start: str, chat: str) -> Iterator[Figure]:
    """A chat whose answer has 10,000 paragraphs."""
    page.goto("about:blank")
    began = time.monotonic()
    page.goto(start.partition("?")[0] + f"#/s/{chat}")
    page.locator(".answer > *").nth(9_999).wait_for(state="attached")
    page.evaluate("new Promise(requestAnimationFrame)")
    yield Figure("opening 10,000 paragraphs", time.monotonic() - began, "s", most=2)


def long_code(page: Page, start: str, chats: dict[str, str]) -> Iterator[Figure]:
    """A chat whose answer is a code block of 200 kB, and an almost empty one."""
    for name, chat in chats.items():
        page.goto("about:blank")
        page.goto(start.partition("?")[0] + f"#/s/{chat}")
        page.locator(".answer > *").first.wait_for()
        most = 100 if name == "200 kB of code" else None
        yield Figure(f"opening {name}: longest task", page.evaluate(TASKS), "ms", most=most)


def growing(page: Page, pid: int, kind: str) -> Iterator[Figure]:
    """What one block of 8 KB costs the server while a model says it."""
    received = [0]
    tools = page.context.new_cdp_session(page)
    tools.on("Network.dataReceived", lambda e: received.append(e["dataLength"]))
    tools.send("Network.enable")
    before = _cpu_seconds(pid)
    page.get_by_label("Your question").fill(f"Say a {kind}")
    page.get_by_label("Your question").press("Enter")
    page.locator(".turn.running .answer").last.wait_for()
    page.locator(".turn.running").wait_for(state="detached", timeout=60_000)
    yield Figure(f"{kind} of 8 KB: server's CPU", _cpu_seconds(pid) - before, "s", most=1)
    yield Figure(f"{kind} of 8 KB: bytes to the page", sum(received) / 1e6, "MB", most=0.4)
    tools.detach()


def _cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _metrics(tools: CDPSession) -> dict[str, float]:
    return {m["name"]: m["value"] for m in tools.send("Performance.getMetrics")["metrics"]}


def memory(name: str, pid: int, most: float | None = None) -> Iterator[Figure]:
    """Resident memory of a process, where Linux tells it."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    if found:
        yield Figure(name, int(found[1]) * 1024 / 1e6, "MB", most=most)


def figures(browser: str, home: Path, ollama: int) -> Iterator[Figure]:
    """All of them, as they are measured."""
    chat = long_session(home)
    long = long_session(home, 1, "A paragraph of some words.\n\n" * 10_000)
    code = long_session(home, 1, "\n\n```\n" + "x = some(words)  # of code\n" * 7_500 + "```\n")
    brief, calm = (long_session(home, 1, "Yes.") for _ in range(2))
    empty = {kind: long_session(home, 1, "Yes.") for kind in BLOCKS}
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = launched.new_page()
        began = time.monotonic()
        with served(home, ollama) as (start, pid):
            yield from first_look(page, start, began)
            yield from memory("memory of the server, page open", pid, most=80)
            yield from streaming(page, start, {1: brief, TURNS: chat})
            for kind, session in empty.items():
                page.goto(start.partition("?")[0] + f"#/s/{session}")
                yield from growing(page, pid, kind)
            yield from long_answer(page, start, long)
            yield from long_code(page, start, {"a short chat": calm, "200 kB of code": code})
            yield from memory("memory of the server, afterwards", pid)
        launched.close()


def main() -> int:
    """0 when everything was measured, whatever the aims say; 2 without a browser."""
    browser = next((path for path in BROWSERS if Path(path).exists()), None)
    if browser is None:
        print("bench.page: no Chromium found", file=sys.stderr)
        return 2
    talker = ThreadingHTTPServer(("127.0.0.1", 0), Talker)
    threading.Thread(target=talker.serve_forever, daemon=True).start()
    for name, value in machine().items():
        print(f"{name}: {value}")
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        for figure in figures(browser, Path(folder), talker.server_port):
            print(figure.line(), flush=True)
    talker.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
