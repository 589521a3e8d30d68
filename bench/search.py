"""`python -m bench.search`: the search backend beside five engines of 50 ms each, over HTTP.

The backend is the program users start (`searchloop search-backend serve`), alone on one core where
the system can do that; the fake engines and this client share another. CPU is user and system time
of the backend's process; "up" are requests to engines for each search. Beside each figure stands
what we aim at on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.clock import pinned
from bench.fake_engines import ENGINES

SETTINGS = (
    *("TAVILY_BASE_URL", "SEARXNG_URL", "PERPLEXITY_BASE_URL", "EXA_BASE_URL"),
    "OLLAMA_SEARCH_BASE_URL",
)
KEYS = ("TAVILY_API_KEY", "PERPLEXITY_API_KEY", "EXA_API_KEY", "OLLAMA_API_KEY")
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


@dataclass(frozen=True)
class Load:
    """What came of asking for a while. Times in ms; `cpu` in ms a request."""

    requests: int
    rate: float
    p50: float
    p95: float
    most: float
    cpu: float
    upstream: int


class Backend:
    """The backend's process, and a client of it and of the fake engines."""

    def __init__(self, pid: int, port: int, fakes: int) -> None:
        self.pid = pid
        self.port = port
        self.fakes = fakes
        self._number = 0

    async def load(self, clients: int, seconds: float, same: str = "") -> Load:
        """Ask from `clients` connections, once at least: each query is new, or all are `same`."""
        await self.told("_count")
        times: list[float] = []
        began, cpu = time.monotonic(), self.cpu()

        async def client() -> None:
            async with Wire(self.port) as wire:
                while not times or time.monotonic() - began < seconds:
                    self._number += 1
                    query = same or f"query {self._number}"
                    start = time.monotonic()
                    answer = await wire.post("/api/web-search", {"query": query})
                    times.append(time.monotonic() - start)
                    if answer["status"] != "ok":
                        raise RuntimeError(f"a search failed: {answer}")

        await asyncio.gather(*(client() for _ in range(clients)))
        spent, cpu = time.monotonic() - began, self.cpu() - cpu
        times.sort()
        upstream = sum((await self.told("_count")).values())
        return Load(
            len(times),
            len(times) / spent,
            times[len(times) // 2] * 1e3,
            times[int(len(times) * 0.95)] * 1e3,
            times[-1] * 1e3,
            cpu / len(times) * 1e3,
            upstream,
        )

    async def at_once(self, clients: int, query: str) -> int:
        """Equal searches at the same moment: how many requests that makes upstream."""
        await self.told("_count")

        async def client() -> None:
            async with Wire(self.port) as wire:
                await wire.post("/api/web-search", {"query": query})

        await asyncio.gather(*(client() for _ in range(clients)))
        return sum((await self.told("_count")).values())

    async def ask(self, query: str) -> dict[str, Any]:
        """One search."""
        async with Wire(self.port) as wire:
            return await wire.post("/api/web-search", {"query": query, "max_results": 20})

    async def told(self, path: str, value: object = None) -> dict[str, Any]:
        """Something for the fakes themselves."""
        async with Wire(self.fakes) as wire:
            return await wire.post(f"/{path}", value or {})

    def cpu(self) -> float:
        """Seconds of processor time so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        except OSError:
            return 0.0
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024


class Wire:
    """A kept connection that costs as little as it can."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Wire:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def post(self, path: str, value: object) -> dict[str, Any]:
        """The JSON of the answer."""
        body = json.dumps(value).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        answer = json.loads(await self._reader.readexactly(size))
        return dict(answer)


@contextmanager
def backend() -> Iterator[tuple[Backend, float]]:
    """A fresh backend with the fake engines as its chain, and the seconds it took to start."""
    command = [sys.executable, "-m", "bench.fake_engines"]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as fakes,
    ):
        assert fakes.stdout is not None
        port = int(fakes.stdout.readline())
        env = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
        env |= {"SEARCHLOOP_HOME": home} | dict.fromkeys(KEYS, "k-0123456789")
        env["SEARCH_ENGINES"] = ",".join(ENGINES)
        for name, engine in zip(SETTINGS, ENGINES, strict=True):
            env[name] = f"http://127.0.0.1:{port}/{engine}"
        began = time.monotonic()
        program = (sys.executable, "-m", "searchloop.cli")
        serve = [*program, "search-backend", "serve", "--port", "0"]
        with pinned(CORES[0] if len(CORES) > 1 else None):
            process = subprocess.Popen(serve, env=env, stdout=pipe, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            started = time.monotonic() - began
            own = int(line.partition("127.0.0.1:")[2].split()[0])
            yield Backend(process.pid, own, port), started
        finally:
            process.terminate()
            process.communicate()
            assert fakes.stdin is not None
            fakes.stdin.close()


def main() -> int:
    """Prints one line a case with what it should be."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each load (default: 5)")
    seconds = parser.parse_args().seconds
    if len(CORES) > 1:
        os.sched_setaffinity(0, CORES[1:])  # what is started from here inherits it
    print(f"{'case':<34} {'measured':<62} aim")
    with compiled():
        _starts()
        with backend() as (well, _):
            asyncio.run(_well(well, seconds))
        _ills(seconds)
    return 0


@contextmanager
def compiled() -> Iterator[None]:
    """Byte code is kept, as it is for a package that was installed."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        with backend() as (first, _):
            asyncio.run(first.ask("compiles what is loaded later"))
        yield


def _starts() -> None:
    """The middle one of five starts, and what came of the first search after it."""
    starts, memories, firsts = [], [], []
    for _ in range(5):
        with backend() as (fresh, seconds):
            began = time.monotonic()
            asyncio.run(fresh.ask("first"))
            firsts.append((time.monotonic() - began) * 1e3)
            starts.append(seconds)
            memories.append(fresh.memory())
    measured = f"{sorted(starts)[2]:.2f} s, {max(memories):.0f} MB, then first search"
    _line("start", f"{measured} {sorted(firsts)[2]:.0f} ms", "<= 0.30 s, <= 60 MB")


def _ills(seconds: float) -> None:
    for mood, aim in (("hang", ">= 180/s, max <= 1,200 ms"), ("slow", ">= 180/s")):
        with backend() as (sick, _):
            asyncio.run(_sick(sick, mood, aim, seconds))
    with backend() as (limited, _):
        asyncio.run(_limited(limited))


async def _well(well: Backend, seconds: float) -> None:
    await well.load(1, 0.5)
    aims = {
        1: "p50 <= 55, p95 <= 58, CPU <= 2.5 ms",
        16: ">= 200/s, CPU <= 1 ms",
        64: ">= 350/s",
    }
    for clients, aim in aims.items():
        _line(f"fresh, {clients} clients", _shown(await well.load(clients, seconds)), aim)
    await well.ask("again and again")
    load = await well.load(1, seconds / 2, "again and again")
    _line("the same again, 1 client", _shown(load), "CPU <= 0.3 ms, p95 <= 2 ms, 0 upstream")
    count = await well.at_once(64, "the same at once")
    _line("64 equal at once", f"{count} upstream", "1")
    answer = await well.ask("spell")
    _line("20 spellings of 4 pages", f"{len(answer['results'])} left", "4")
    _line("memory after that", f"{well.memory():.0f} MB", "<= 80 MB")


async def _sick(sick: Backend, mood: str, aim: str, seconds: float) -> None:
    await sick.load(4, 1.0)
    await sick.told("_mood", {"tavily": mood})
    _line(f"one engine: {mood}, 16 clients", _shown(await sick.load(16, seconds * 2)), aim)


async def _limited(limited: Backend) -> None:
    await limited.ask("before")
    await limited.told("_mood", {"tavily": "limit"})
    await limited.ask("limited")
    await limited.told("_mood", {"tavily": "well"})
    began = time.monotonic()
    for number in range(1_000):
        answer = await limited.ask(f"after {number}")
        back = {attempt["engine"]: attempt["status"] for attempt in answer["attempts"]}
        if back["tavily"] == "ok":
            break
    _line("429 with Retry-After: 7", f"back in {time.monotonic() - began:.1f} s", "7 to 8 s")


def _shown(load: Load) -> str:
    return (
        f"{load.rate:6.1f}/s  p50 {load.p50:.1f}  p95 {load.p95:.1f}  max {load.most:.0f} ms  "
        f"CPU {load.cpu:.2f} ms  {load.upstream / load.requests:.1f} up"
    )


def _line(case: str, measured: str, aim: str) -> None:
    print(f"{case:<34} {measured:<62} {aim}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
