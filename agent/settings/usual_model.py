"""Chooses the model of a question that names none.

A setting wins, then the model that answered last in this SEARCHLOOP_HOME, then the best one of the
user's own server, then `builtin:extractive`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from searchloop.agent.errors import AgentError, StoreError
from searchloop.agent.settings import BUILTIN, Settings
from searchloop.agent.settings.private_files import write_private
from searchloop.agent.types import ModelInfo

FILE = "last-model"
_LONGEST = 300  # characters of a name
_PATIENCE = 3.0  # seconds for the servers to list their models
_GB = 2**30
_ROOM = 1.2  # of its weights, and a GB for its window: what a model takes in memory
_ELSEWHERE = 16 * _GB  # memory of a server that is not on this machine


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and why it is this one: as a code and as words that follow its name."""

    model: str
    by: Literal["setting", "last", "best", "none"]
    why: str


class UsualModel:
    """Chooses and remembers; `usable` raises AgentError for a model that cannot be asked.

    `listed` returns the models of the user's own servers, without those in a cloud.
    """

    def __init__(
        self,
        settings: Settings,
        usable: Callable[[str], object],
        listed: Callable[[], Awaitable[Sequence[ModelInfo]]],
    ) -> None:
        self.settings = settings
        self._usable, self._listed = usable, listed
        self._fallback: str | None = None  # chosen for want of a better one
        self.remembers = True

    async def choose(self) -> Choice:
        """Returns the model for a question that names none."""
        choice = await self._choice()
        self._fallback = choice.model if choice.by == "none" else None
        return choice

    async def _choice(self) -> Choice:
        env, home = self.settings.env, self.settings.home
        if model := env.get("SEARCHLOOP_MODEL"):
            return Choice(model, "setting", f"set by {env.origin('SEARCHLOOP_MODEL')}")
        if model := last_model(home):
            with suppress(AgentError):  # its key is gone, for example
                self._usable(model)
                return Choice(model, "last", "used last")
        models: Sequence[ModelInfo] = ()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                models = await self._listed()
        return best_of(models, memory())

    def remember(self, model: str) -> None:
        """Keeps the model that has just answered, unless nobody chose it.

        If the folder cannot be written, it is forgotten.
        """
        home = self.settings.home
        fresh = self.remembers and model not in (self._fallback, last_model(home))
        if fresh and len(model) <= _LONGEST:
            with suppress(StoreError):
                write_private(home / FILE, model)


def best_of(models: Iterable[ModelInfo], here: int | None) -> Choice:
    """Chooses the largest model that calls tools and fits; `here` is this machine's memory."""
    known = [model for model in models if model.available]
    fitting = [m for m in known if m.loaded or fits(m, here if m.local else _ELSEWHERE)]
    best = max(fitting, key=lambda m: (m.capabilities.tools, m.disk or 0), default=None)
    if best is None:
        lacks = f"none of your {len(known)} models fits into memory" if known else "no other found"
        return Choice(BUILTIN, "none", f"quotes only: {lacks}")
    able = [m for m in fitting if m.capabilities.tools]
    what = "that call tools and fit" if able else "that fit; none of them calls tools,"
    size = f" {here / _GB:.0f} GB of memory" if here and best.local else " into memory"
    why = f"the largest of {len(able or fitting)} {what}{size}"
    return Choice(best.id, "best", "the only one that fits" if len(known) == 1 else why)


def fits(model: ModelInfo, most: int | None) -> bool:
    """Returns True if `most` bytes hold the model and its window, or if either is unknown."""
    return not (most and model.disk) or model.disk * _ROOM + _GB <= most


def memory() -> int | None:
    """Returns the memory of this machine in bytes, None where the system does not say."""
    with suppress(ValueError, OSError, AttributeError):  # AttributeError: Windows
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def last_model(home: Path) -> str | None:
    """Returns the model that answered last, None if there was none."""
    with suppress(OSError, UnicodeDecodeError):
        text = (home / FILE).read_text("utf-8").strip()
        return text if text.isprintable() and len(text) <= _LONGEST else None
    return None
