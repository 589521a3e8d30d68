"""Killed anywhere, a run goes on: nothing lost, nothing doubled, no effect twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.harness import Zygote, lives
from tests.postgres import Postgres

MODES = ("ask", "plan", "agent")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Where lives come from."""
    with Zygote() as made:
        yield made


def in_a_file(home: Path) -> str:
    """An SQLite store."""
    return str(home / "sessions.sqlite3")


def everywhere(zygote: Zygote, where: Callable[[Path], str], mode: str, step: int) -> int:
    """Dies at every `step`th point there is; how many there are."""
    fatal = 1 + random.Random(mode).randrange(step)
    while lives(zygote, where, mode, fatal=fatal):
        fatal += step
    return fatal


@pytest.mark.parametrize(
    ("mode", "step"),
    [
        ("agent", 5),
        *(pytest.param(mode, 5, marks=pytest.mark.integration) for mode in MODES[:2]),
        *(pytest.param(mode, 1, marks=pytest.mark.torture) for mode in MODES),
    ],
)
def test_killed_at_every_point(zygote: Zygote, mode: str, step: int) -> None:
    """Each point there is, of a run with a write; a sample for every run of the suite."""
    assert everywhere(zygote, in_a_file, mode, step) > 15


@pytest.mark.integration
def test_killed_on_postgresql(zygote: Zygote, postgres: Postgres) -> None:
    """The same on the other store."""
    everywhere(zygote, lambda home: postgres.url(), "agent", 13)


@pytest.mark.parametrize(
    ("seed", "times"),
    [
        pytest.param(0, 10, marks=pytest.mark.integration),
        *(pytest.param(seed, 30, marks=pytest.mark.torture) for seed in range(34)),
    ],
)
def test_killed_at_random_times(zygote: Zygote, seed: int, times: int) -> None:
    """At any moment at all, in the middle of a write too; a second or two each, so a sample."""
    luck = random.Random(seed)
    for _ in range(times):
        seconds = luck.uniform(0.001, 0.15)
        lives(zygote, in_a_file, luck.choice(MODES), seconds=seconds)
