"""The window of a model: as its server says it, and as the counts of its answers show it.

Servers of the user's own (llama.cpp, vLLM, LM Studio) name it in a refusal, in their list of models
or in a place of their own (`windows.toml`). One that cuts long prompts without a word is noticed by
its own count of the prompt.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from searchloop.agent.errors import AgentError, ProviderError
from searchloop.agent.log.window import Budget, fit, size_of, tokens, was_cut
from searchloop.agent.providers._wire import member
from searchloop.agent.types import Finished, Message, Notice, Request

_FILE = Path(__file__).with_name("windows.toml")
# The first that matches counts: a body's own member before the words of a sentence, and in them
# neither the size of the prompt nor by how much it is too large.
_SIZE = r"(\d{1,3}(?:,\d{3})+|\d{3,8})\b"
_NAMED = (
    re.compile(rf"n_ctx\W{{0,4}}{_SIZE}", re.IGNORECASE),
    re.compile(
        r"(?:context[ _](?:length|size|window)|model length|max_(?:model|seq)_len|must be <="
        rf"|less than|allowed length|limit is|maximum)(?! by\b):?[^\d.,;:]{{0,40}}{_SIZE}",
        re.IGNORECASE,
    ),
    re.compile(rf"\d\D{{0,20}}>=? ?{_SIZE}|{_SIZE} maximum|\[\d+, ?{_SIZE}\]", re.IGNORECASE),
)
_MORE = 1.3  # corrects an estimate that was too small
_SAFE = 1500  # tokens that fit any window
_TRIES = 3
Get = Callable[[str], Awaitable[Any]]


def named_size(words: str) -> int | None:
    """Returns the window that the words of a refusal name."""
    found = next(filter(None, (pattern.search(words) for pattern in _NAMED)), None)
    return int(next(filter(None, found.groups())).replace(",", "")) if found else None


@cache
def _kinds() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(_FILE.read_text("utf-8"))


def kind_of(member_name: str, value: object) -> Mapping[str, Any] | None:
    """Returns the kind of server whose `owner` or `print` is `value`."""
    return next((k for k in _kinds().values() if value and k.get(member_name) == value), None)


def size_in(kind: Mapping[str, Any], answer: Any, model: str) -> int | None:
    """Reads the window of a model in the answer of the place where this kind of server tells it."""
    rows = member(answer, kind["rows"]) if "rows" in kind else [answer]
    for row in rows if isinstance(rows, list) else ():
        named = {member(row, name) for name in kind.get("names", ())}
        if named and not named & {model, f"{model}:latest"}:
            continue
        for path in kind["sizes"]:
            value = row
            for part in path.split("."):
                value = member(value, part)
            if type(value) is int and value > 0:
                return value
    return None


class ContextWindow:
    """Shortens requests to the windows of one server, and checks its counts.

    `known` reads the list of models, which `look` gets; `get` gets a path beside /v1.
    """

    def __init__(
        self,
        known: Callable[[str], int | None],
        look: Callable[[], Awaitable[object]],
        get: Get,
        root: str = "",
    ) -> None:
        self._known, self._look, self._get = known, look, get
        self._root = root
        self._learnt: dict[str, int] = {}
        self._factor = 1.0
        self._told: set[str] = set()
        self._tried: dict[str, int] = {}
        self.kind: Mapping[str, Any] | None = None

    async def fitted(self, request: Request) -> Request:
        """Fits a request into the window. Raises ProviderError if its question does not fit."""
        if self.size(request.model) is None and _estimate(request) > _SAFE:
            await self._ask(request.model)
        window = self.size(request.model)
        if window is None:
            return request
        try:
            budget = Budget(window, int(_fixed(request) * self._factor))
            messages = fit(request.messages, budget, self._size).messages
        except ProviderError as error:
            error.remedy = self.better(request.model) or error.remedy
            raise
        return replace(request, messages=messages)

    def note(self, model: str, error: ProviderError) -> None:
        """Notes the window that a refusal names."""
        if named := named_size(error.message):
            self._learnt[model] = named

    async def learn(self, model: str, error: ProviderError) -> bool:
        """Learns from a refusal for its length. Returns True if another try may succeed."""
        before = self.size(model)
        self.note(model, error)
        if self.size(model) is None:
            with suppress(AgentError):
                await self._look()
            if self.size(model) is None:
                await self._ask(model)
        if before is not None and before == self.size(model):
            self._factor *= _MORE
        return self.size(model) is not None

    async def check(self, sent: Request, end: Finished) -> Notice | None:
        """Compares the server's count with our estimate. Returns a notice, once for each model."""
        model, counted, estimate = sent.model, end.usage.input_tokens or 0, _estimate(sent)
        self.kind = kind_of("print", end.message.details.get("server")) or self.kind
        verdict = was_cut(counted, estimate) if counted else None
        if not verdict or model in self._told:
            return None
        await self._ask(model)
        if verdict == "prompt_cut" and self.size(model) is None:
            self._learnt[model] = 2 * counted
        window = self.size(model)
        if window and window >= estimate:
            return None  # it fitted: our estimate was off
        self._told.add(model)
        what = f"The server read {counted:,} of about {estimate:,} tokens: it cut the prompt."
        if verdict == "prompt_small":
            what = f"The server counts {counted:,} tokens where about {estimate:,} were sent: "
            what += "it may have cut the prompt."
        if window:
            what += f" From now on this chat is fitted to {window:,}."
        remedy = self.better(model) or "Start the server with a larger window."
        return Notice(verdict, what, remedy)

    def better(self, model: str) -> str:
        """Says which provider knows this server better, if one does."""
        said: str = (self.kind or {}).get("better", "")
        return said.format(root=self._root, model=model)

    def size(self, model: str) -> int | None:
        """Returns the window in tokens: as a refusal named it, else as the list of models does."""
        return self._learnt.get(model) or self._known(model)

    async def _ask(self, model: str) -> None:
        """Asks in the place where this kind of server tells the window, at most _TRIES times."""
        tried = self._tried.get(model, 0)
        if self.kind and tried < _TRIES:
            self._tried[model] = tried + 1
            with suppress(AgentError):
                size = size_in(self.kind, await self._get(self.kind["path"]), model)
                self._learnt |= {model: size} if size else {}

    def _size(self, message: Message) -> int:
        return int(size_of(message) * self._factor)


def _fixed(request: Request) -> int:
    offered = (f"{t.name}{t.description}{t.parameters}" for t in request.tools)
    return sum(map(tokens, (request.system, *offered)))


def _estimate(request: Request) -> int:
    return _fixed(request) + sum(map(size_of, request.messages))
