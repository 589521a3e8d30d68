"""Killed anywhere, a run goes on: nothing lost, nothing doubled, no effect twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos import dialects
from tests.crash.harness import Model, Zygote, lives
from tests.postgres import Postgres

MODES = ("ask", "plan", "agent")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Where lives come from."""
    with Zygote() as made:
        yield made


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """The model that all of them ask."""
    made = Model()
    with made.server:
        yield made


def in_a_file(home: Path) -> str:
    """An SQLite store."""
    return str(home / "sessions.sqlite3")


def everywhere(
    zygote: Zygote, model: Model, where: Callable[[Path], str], provider: str, mode: str, step: int
) -> int:
    """Dies at every `step`th point there is; how many there are."""
    fatal = 1 + random.Random(f"{provider} {mode}").randrange(step)
    while lives(zygote, model, where, provider, mode, fatal=fatal):
        fatal += step
    return fatal


def test_killed_at_some_points(zygote: Zygote, model: Model) -> None:
    """A sample for every run of the suite: one provider, a few points of a run with a write."""
    assert everywhere(zygote, model, in_a_file, "openai-chat", "agent", 13) > 30


@pytest.mark.integration
@pytest.mark.parametrize("provider", dialects.names())
def test_killed_at_points_of_each_provider(zygote: Zygote, model: Model, provider: str) -> None:
    """A sample, one point in 23 for each provider; `test_killed_at_every_point` has the rest."""
    for mode in MODES:
        everywhere(zygote, model, in_a_file, provider, mode, 23)


@pytest.mark.integration
def test_killed_on_postgresql(zygote: Zygote, model: Model, postgres: Postgres) -> None:
    """The same on the other store."""
    everywhere(zygote, model, lambda home: postgres.url(), "openai-chat", "agent", 13)


@pytest.mark.torture
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("provider", dialects.names())
def test_killed_at_every_point(zygote: Zygote, model: Model, provider: str, mode: str) -> None:
    """Each point there is, for each provider in each mode."""
    everywhere(zygote, model, in_a_file, provider, mode, 1)


@pytest.mark.parametrize(
    ("seed", "times"),
    [
        pytest.param(0, 10, marks=pytest.mark.integration),
        *(pytest.param(seed, 30, marks=pytest.mark.torture) for seed in range(34)),
    ],
)
def test_killed_at_random_times(zygote: Zygote, model: Model, seed: int, times: int) -> None:
    """At any moment at all, in the middle of a write too; a second or two each, so a sample."""
    luck = random.Random(seed)
    names = dialects.names()
    for _ in range(times):
        seconds = luck.uniform(0.001, 0.15)
        lives(zygote, model, in_a_file, luck.choice(names), luck.choice(MODES), seconds=seconds)
