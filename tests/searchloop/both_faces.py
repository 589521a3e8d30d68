"""The two faces of the library as one, so that a test holds for both."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from searchloop import Agent, AsyncAgent
from searchloop.testing import ScriptedModel, ScriptedTurn, offline

T = TypeVar("T")


class Awaited:
    """An `AsyncAgent`, or a part of one, whose words wait on a loop of the test."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner, self._runner = inner, runner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return (lambda *a, **k: self._done(value(*a, **k))) if callable(value) else value

    def _done(self, value: Any) -> Any:
        if isinstance(value, Coroutine):
            value = self._runner.run(value)
        return (
            value if isinstance(value, str | tuple | list) or value is None else self._face(value)
        )

    def _face(self, value: Any) -> Any:
        known = type(value).__name__ in ("AsyncChat", "AsyncStream")
        return Awaited(value, self._runner) if known else value

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                yield self._runner.run(anext(self._inner))
            except StopAsyncIteration:
                return


@contextmanager
def opened(face: str, home: Path, *turns: ScriptedTurn, **options: Any) -> Iterator[Any]:
    """An agent of this face with a scripted model, in `agent.model`."""
    model = ScriptedModel(*turns)
    options = {"model": model, **options}
    if face == "Agent":
        with Agent(offline(home), **options) as agent:
            agent.model = model  # type: ignore[attr-defined]
            yield agent
        return
    with asyncio.Runner() as runner:
        inner = AsyncAgent(offline(home), **options)
        inner.model = model  # type: ignore[attr-defined]
        try:
            yield Awaited(inner, runner)
        finally:
            runner.run(inner.aclose())


FACES = pytest.mark.parametrize("face", ["Agent", "AsyncAgent"])
