"""What is measured: the work, its size, and what we hold ourselves to.

A scenario says everything that the fake server has to answer and that a run has to come to, so that
server, runners and the check of a run cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

MODEL = "gpt-4.1"  # its window is known and has room for 1 MB of history
Kind = Literal["loop", "served", "crowd", "process"]
Tool = Literal["echo", "page", "wait", "block"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to, for the check: tool calls, characters of final text, requests.

    `p99` is no part of the check: the delay in seconds under which 99 of 100 events came.
    """

    calls: int
    characters: int
    requests: int
    p99: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Target:
    """What we hold ourselves to: a figure of ours, and the most (or least) that it may be.

    Figures: cpu_ratio, wall_ratio, turns_ratio (ours to bare in the same round), wall_ms, cpu_ms,
    p99_ms.
    """

    figure: str
    bound: float
    least: bool = False

    def met(self, value: float) -> bool:
        """Whether `value` will do."""
        return value >= self.bound if self.least else value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        return f"{self.figure.replace('_', ' ')} {sign} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A piece of work. Every turn but the last asks for `calls` tool calls; the last is text.

    `deltas` pieces of `size` characters make the answer; `result` is the length of a tool result;
    `history` messages of `length` characters stand before the question; `at_once` such runs go
    together. `samples` is how often one process does it. A crowd is `at_once` followers of
    `sessions` sessions, each with `deltas` events `seconds` apart.
    """

    name: str
    what: str
    kind: Kind = "loop"
    turns: int = 1
    calls: int = 1
    deltas: int = 20
    size: int = 4
    tool: Tool = "echo"
    result: int = 0
    seconds: float = 0.0
    history: int = 0
    length: int = 0
    at_once: int = 1
    sessions: int = 1
    samples: int = 5
    target: Target | None = None

    def outcome(self) -> Outcome:
        """What one sample has to come to."""
        calls = (self.turns - 1) * self.calls
        return Outcome(
            calls * self.at_once, self.deltas * self.size * self.at_once, self.turns * self.at_once
        )

    def as_dict(self) -> dict[str, Any]:
        """For another process; read back by `Scenario(**data)`."""
        return {**asdict(self), "target": None}


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "overhead",
        "10 turns, 9 tool calls, 20 deltas at the end",
        turns=10,
        samples=15,
        target=Target("cpu_ratio", 1.2),
    ),
    Scenario(
        "stream",
        "one turn, 20,000 deltas of 4 characters",
        deltas=20_000,
        samples=3,
        target=Target("cpu_ratio", 0.6),
    ),
    Scenario(
        "stream_served",
        "the same through the web server to a browser's stream of events",
        kind="served",
        deltas=20_000,
        samples=2,
        target=Target("cpu_ratio", 0.8),
    ),
    Scenario(
        "history",
        "one turn on 400 messages, 1 MB, in a live session",
        deltas=5,
        history=400,
        length=2_600,
        samples=15,
        target=Target("cpu_ratio", 0.8),
    ),
    Scenario(
        "long",
        "40 turns, each tool result 8 KB",
        turns=40,
        tool="page",
        result=8_192,
        samples=4,
        target=Target("cpu_ratio", 0.9),
    ),
    Scenario(
        "conc300",
        "300 five-turn runs at once in one process",
        turns=5,
        at_once=300,
        samples=1,
        target=Target("cpu_ratio", 0.75),
    ),
    Scenario(
        "par_async",
        "8 tools of 0.2 s in one turn, coroutines",
        turns=2,
        calls=8,
        deltas=5,
        tool="wait",
        seconds=0.2,
        samples=2,
        target=Target("wall_ms", 210),
    ),
    Scenario(
        "par_sync",
        "8 tools of 0.2 s in one turn, blocking functions",
        turns=2,
        calls=8,
        deltas=5,
        tool="block",
        seconds=0.2,
        samples=2,
        target=Target("wall_ms", 210),
    ),
    Scenario(
        "cold",
        "process start to the request's arrival at the provider",
        kind="process",
        samples=3,
        target=Target("wall_ratio", 1.5),
    ),
    Scenario(
        "version",
        "`searchloop --version` beside `python -c pass`",
        kind="process",
        samples=3,
        target=Target("cpu_ms", 100),
    ),
    Scenario(
        "followers",
        "500 followers of live sessions, an event each 20 ms",
        kind="crowd",
        at_once=500,
        sessions=10,
        deltas=100,
        seconds=0.02,
        samples=1,
        target=Target("p99_ms", 50),
    ),
)


def smaller(scenarios: Sequence[Scenario] = SCENARIOS) -> tuple[Scenario, ...]:
    """The same work in sizes that take a moment, to see that all of it still runs."""
    return tuple(
        replace(
            s,
            turns=min(s.turns, 3),
            calls=min(s.calls, 2),
            deltas=min(s.deltas, 30),
            history=min(s.history, 6),
            length=min(s.length, 200),
            at_once=min(s.at_once, 8),
            sessions=min(s.sessions, 2),
            seconds=min(s.seconds, 0.01),
            samples=1,
        )
        for s in scenarios
    )
