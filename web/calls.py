"""What a handler of the JSON API gets and gives, and its way to the loop that runs live on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent.errors import StoreError

T = TypeVar("T")
_WAIT = 60.0  # seconds for what the loop is asked to do


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers: data for JSON, a text of another kind, or a file to save."""

    data: Any = None
    status: int = 200
    file: str | None = None
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """A request as a handler sees it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def session(self) -> str:
        """The session in the path."""
        return self.path["id"]


Handler = Callable[[Call], Reply]


def whole(text: str) -> int | None:
    """The number that a part of an address names, or None for what is no whole number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


class OnLoop:
    """The way from a thread to the loop that the runner lives on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called once the loop runs."""
        self._loop = loop

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs it there and waits for what comes of it."""
        if self._loop is None:
            work.close()
            raise StoreError("not_ready", "The server is still starting.", "Try again in a second.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(_WAIT)
        except TimeoutError as error:
            future.cancel()
            words = f"searchloop did not get to this within {_WAIT:g} s."
            raise StoreError("overloaded", words, "Try again in a moment.") from error
