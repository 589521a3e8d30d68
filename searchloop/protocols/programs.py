"""The programs that have a key of their own: what each may do, and what it may use in a period.

They stand in the store of the chats. Of a key only its digest is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.tools.backend import Backend
from searchloop.agent.types import Limits, Price, Search, Usage

KEY = "sl-"  # how each key begins
_DAY, _MONTH = "%Y-%m-%d", "%Y-%m"
_NAME = re.compile(r"\w[\w .+-]{0,39}")
_BOUNDS = {"tokens": "{:,} tokens", "cost_usd": "${:g}"}
_BOUNDS |= {"searches": "search limit of {:,}", "pages": "page limit of {:,}"}
OF_MODELS, OF_SEARCH = ("tokens", "cost_usd"), ("searches", "pages")
_HOW = "The user can change that on searchloop's page: Settings, Other programs."


class Program(NamedTuple):
    """A program of `owner`: its key, its switch, patterns of models it may ask, and its budget."""

    name: str
    owner: str = ""
    digest: str = ""  # of its key
    ends: str = ""  # the last signs of its key
    made: str = ""
    search: Search = "auto"
    models: tuple[str, ...] = ()
    tokens: int | None = None
    cost_usd: float | None = None
    per: Literal["day", "month"] = "day"
    searches: int | None = None
    pages: int | None = None

    def may_ask(self, model: str) -> bool:
        """Tells whether a pattern of this program fits `provider:model`."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)

    def check(self, model: str) -> None:
        """Raises ConfigError for a model that this program may not ask."""
        if not self.may_ask(model):
            raise ConfigError("not_allowed", f"{self.name} may not ask {model} here.", _HOW)

    def spent(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Sums what was used in the period of now, from the counts of each day."""
        now = time.strftime(_DAY if self.per == "day" else _MONTH, time.gmtime())
        days = [row for row in rows if row["day"].startswith(now)]
        names = ("answers", "cost_usd", *OF_SEARCH)
        sums = {name: sum(day[name] for day in days) for name in names}
        tokens = sum(day["input_tokens"] + day["output_tokens"] for day in days)
        return {**sums, "tokens": tokens, "unpriced": sum(day["unpriced"] for day in days)}

    def within(
        self, spent: Mapping[str, Any], limits: Limits, bounds: Iterable[str] = _BOUNDS
    ) -> Limits:
        """Returns the limits of a run, as far as these parts of the budget reach.

        Raises ConfigError at the end of one. What a model without a known price costs is not in it.
        """
        for name in bounds:
            words = _BOUNDS[name]
            most, limit = getattr(self, name), getattr(limits, name)
            if most is not None and spent[name] >= most:
                what = f"{self.name} has used its {words.format(most)} of this {self.per}."
                remedy = f"It may ask again in the next {self.per} (UTC). {_HOW}"
                raise ConfigError("program_budget", what, remedy)
            if most is not None:
                rest = most - spent[name]
                limits = limits._replace(**{name: rest if limit is None else min(limit, rest)})
        return limits


class Purse:
    """What a program has used: steps, searches and pages of what is under way count at once."""

    def __init__(self, program: Program, rows: Iterable[Mapping[str, Any]]) -> None:
        self.program, self.spent = program, program.spent(rows)
        self._new = 0  # answers whose first step is not over
        self._known = asyncio.Event()

    @asynccontextmanager
    async def answer(self, price: Price) -> AsyncIterator[Price]:
        """Gives an answer its price, which counts each step that it is asked for.

        It first waits while the answers under way may use up what is left, each the usual amount.
        """
        while self._new and self.reached(self._new):
            self._known.clear()
            await self._known.wait()
        first = True
        self._new += 1

        def known() -> None:
            nonlocal first
            self._new -= first
            first = False
            self._known.set()

        def cost(usage: Usage) -> float | None:
            found = price(usage)
            self.spent["answers"] += first
            self.spent["tokens"] += (usage.input_tokens or 0) + (usage.output_tokens or 0)
            self.spent["cost_usd"] += found or 0
            self.spent["searches"] += usage.searches or 0  # those of the model's own maker
            self.spent["pages"] += usage.pages or 0
            known()
            return found

        try:
            yield cost
        finally:
            known()

    def reached(self, new: int = 0) -> str | None:
        """Returns the bound that is reached, once so many `new` answers have ended, in words."""
        answers = self.spent["answers"]
        for name in OF_MODELS:
            most = getattr(self.program, name)
            unknown = new and not answers  # what such an answer takes
            if most and (unknown or self.spent[name] * (1 + new / (answers or 1)) >= most):
                return f"{self.program.name}'s {_BOUNDS[name].format(most)}"
        return None


class Counted(NamedTuple):
    """A search backend that a program asks, as far as its budget goes; `used` is what it did."""

    backend: Backend
    purse: Purse
    used: Counter[str]

    @property
    def here(self) -> bool:
        return getattr(self.backend, "here", True)

    async def ask(self, path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if name := {"/api/web-search": "searches", "/api/open-page": "pages"}.get(path):
            self.purse.program.within(self.purse.spent, Limits(), (name,))
            self.purse.spent[name] += 1
            self.used[name] += 1
        return await self.backend.ask(path, payload)


class Programs:
    """The programs of everybody in a store, which several servers may share.

    Any thread may call every method.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def all(self) -> list[Program]:
        """Returns the programs of everybody. Raises AgentError."""
        return [_program(row) for row in self._log.programs.all()]

    def of(self, owner: str) -> list[Program]:
        """Returns a person's programs. Raises AgentError."""
        return [each for each in self.all() if each.owner == owner]

    async def with_key(self, key: bytes) -> Program | None:
        """Returns the program that this key belongs to. Raises AgentError."""
        if not key.startswith(KEY.encode()):
            return None
        digest = hashlib.sha256(key).hexdigest()
        row = await self._log.aside(lambda: self._log.programs.with_digest(digest))
        return _program(row) if row else None

    def add(self, owner: str, name: str, **rights: Any) -> tuple[Program, str]:
        """Makes a program; returns it and its key, which is kept nowhere. Raises AgentError."""
        if not _NAME.fullmatch(name):
            what = f"{name[:60]!r} is no name of a program."
            raise ConfigError("bad_program", what, "Take up to 40 letters, digits, dots, blanks.")
        key = f"{KEY}{secrets.token_urlsafe(32)}"
        digest, today = hashlib.sha256(key.encode()).hexdigest(), time.strftime(_DAY, time.gmtime())
        made = Program(name, owner, digest, key[-4:], today)._replace(**rights)
        if not self._log.programs.add(made._asdict()):
            what = f"There is a program {name} already."
            raise ConfigError("bad_program", what, "Take its key back, or choose another name.")
        return made, key

    def change(self, owner: str, name: str, **rights: Any) -> None:
        """Changes what a program may do. Raises AgentError."""
        found = next((each for each in self.of(owner) if each.name == name), None)
        if found is None or not self._log.programs.change(found._replace(**rights)._asdict()):
            raise _no_program(name)

    def remove(self, owner: str, name: str) -> None:
        """Removes a program, whose key ends with it. Raises AgentError."""
        if not self._log.programs.remove(owner, name):
            raise _no_program(name)


def _program(row: Mapping[str, Any]) -> Program:
    return Program(**{**row, "models": tuple(row["models"])})


def _no_program(name: str) -> ConfigError:
    return ConfigError("no_program", f"There is no program {name[:60]!r}.", "Check its name.")
