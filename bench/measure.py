"""Runs the scenarios: fresh processes, interleaved, each kind on a core of its own.

A round goes over all scenarios, in each over the bare client and ours, and the next round in
another order. What is measured runs on one core; the fake server, and followers, on another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.clock import Sample, WrongResult, cores, pinned
from bench.scenarios import MODEL, Scenario

BARE, OURS = "bare httpx2", "searchloop"
_ROOT = Path(__file__).resolve().parent.parent
_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one process did in one round; `peak` is its memory in bytes at the most."""

    scenario: str
    peer: str
    round: int
    samples: tuple[Sample, ...]
    peak: int


@dataclass(frozen=True, slots=True)
class Fake:
    """The model server in its process."""

    port: int

    def url(self, scenario: Scenario) -> str:
        """The base URL under which it plays this scenario."""
        return f"http://127.0.0.1:{self.port}/{scenario.name}/v1"

    def seen(self, scenario: Scenario) -> tuple[int, float]:
        """How many requests there were, and when the last one came."""
        with urlopen(f"http://127.0.0.1:{self.port}/counts", timeout=10) as answer:
            counts = json.load(answer).get(scenario.name, {"requests": 0, "arrived": 0.0})
        return counts["requests"], counts["arrived"]


def measure(scenarios: Sequence[Scenario], rounds: int) -> Iterator[Measurement]:
    """All scenarios, `rounds` times; raises WrongResult when a run did not do the work."""
    core, other = cores()
    with fake(scenarios, other) as server:
        work = _Work(server, core, other)
        for scenario in scenarios:
            if scenario.kind == "process":  # compiles what is not compiled yet
                for peer in peers(scenario):
                    work.start(scenario, peer)
        for number in range(rounds):
            for scenario in _turned(scenarios, number):
                for peer in _turned(peers(scenario), number):
                    samples, peak = work.done(scenario, peer)
                    yield Measurement(scenario.name, peer, number, tuple(samples), peak)


def peers(scenario: Scenario) -> tuple[str, ...]:
    """Who does it."""
    return (OURS,) if scenario.kind == "crowd" else (BARE, OURS)


@contextmanager
def fake(scenarios: Sequence[Scenario], core: int | None) -> Iterator[Fake]:
    """The model server, ready, until the end of the block."""
    with pinned(core):
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.fake_openai"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps([s.as_dict() for s in scenarios]) + "\n")
        process.stdin.flush()
        yield Fake(int(process.stdout.readline()))
    finally:
        process.communicate()


class _Work:
    """Processes that do the work of a scenario."""

    def __init__(self, server: Fake, core: int | None, other: int | None) -> None:
        self._server = server
        self._core = core
        self._other = other

    def done(self, scenario: Scenario, peer: str) -> tuple[list[Sample], int]:
        """The samples of one process, or of one process a sample, and the memory it took."""
        if scenario.kind == "process":
            ends = [self.start(scenario, peer) for _ in range(scenario.samples)]
            return [sample for sample, _ in ends], max(peak for _, peak in ends)
        before = self._server.seen(scenario)[0]
        order = {
            "scenario": scenario.as_dict(),
            "url": self._server.url(scenario),
            "core": self._other,
        }
        module = "bare" if peer == BARE else "ours" if scenario.kind == "loop" else "served"
        with self._process(scenario, ["-m", f"bench.{module}", json.dumps(order)]) as process:
            try:
                out, err = process.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                raise WrongResult(f"{scenario.name}, {peer}: no end in {_SECONDS} s") from None
        if process.returncode:
            raise WrongResult(f"{scenario.name}, {peer}:\n{err.strip()}")
        if scenario.kind != "crowd":
            wanted = scenario.outcome().requests * (scenario.samples + 1)
            came = self._server.seen(scenario)[0] - before
            if came != wanted:
                raise WrongResult(f"{scenario.name}, {peer}: {came} requests, not {wanted}")
        told = json.loads(out)
        return [Sample(**sample) for sample in told["samples"]], told["peak"]

    def start(self, scenario: Scenario, peer: str) -> tuple[Sample, int]:
        """One short process: time until its request came (or until it ended), CPU, memory."""
        before = self._server.seen(scenario)[0]
        began = time.monotonic()
        with self._process(scenario, self._command(scenario, peer)) as process:
            cpu, peak = _waited(process)
        ended = time.monotonic()
        requests, arrived = self._server.seen(scenario)
        if process.returncode or requests - before != (scenario.name == "cold"):
            raise WrongResult(f"{scenario.name}, {peer}: code {process.returncode}, {requests}")
        return Sample((arrived if scenario.name == "cold" else ended) - began, cpu), peak

    def _command(self, scenario: Scenario, peer: str) -> list[str]:
        if scenario.name == "cold":
            if peer == BARE:
                return ["-m", "bench.cold", self._server.url(scenario)]
            return ["-m", "searchloop.cli", "ask", "-m", f"openai:{MODEL}", "--no-web", "Hi."]
        return ["-c", "pass"] if peer == BARE else ["-m", "searchloop.cli", "--version"]

    @contextmanager
    def _process(
        self, scenario: Scenario, arguments: Sequence[str]
    ) -> Iterator[subprocess.Popen[str]]:
        """A fresh Python with a home of its own, on the core for what is measured."""
        with tempfile.TemporaryDirectory() as home, pinned(self._core):
            environment = {
                **_environment(),
                "OPENAI_BASE_URL": self._server.url(scenario),
                "OPENAI_API_KEY": "bench",
                "SEARCHLOOP_HOME": home,
                "SEARCHLOOP_TITLES": "0",  # the requests of an answer alone are measured
                "SEARCHLOOP_FOLLOW_UPS": "0",
            }
            process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=home,
            )
            try:
                yield process
            finally:
                process.kill()
                process.communicate()


def _waited(process: subprocess.Popen[str]) -> tuple[float, int]:
    """Waits for the end; seconds of CPU and bytes of memory of the process."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024
    return used.ru_utime + used.ru_stime, peak


def _environment() -> dict[str, str]:
    """Ours without what would change the work: settings, keys, proxies."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    return {**given, "PYTHONPATH": str(_ROOT)}


def _turned(things: Sequence[Any], by: int) -> list[Any]:
    """Another order each round."""
    start = by % len(things)
    turned = [*things[start:], *things[:start]]
    return turned[::-1] if by // len(things) % 2 else turned
