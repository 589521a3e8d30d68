"""The window of a server of one's own: what is too long for it is shortened before it is sent.

Such servers (llama.cpp, vLLM, LM Studio) are started with a window and refuse what does not fit.
Most name it in the refusal, the others in their list of models, which is looked at when it was not
yet. For servers of vendors nothing is cut: their windows are large, and what they refuse is the
user's to decide about.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.budget import Budget, fit
from agent.errors import ProviderError
from agent.types import Message, Request

_TOLD = re.compile(r"context[ _](?:length|size|window)\D{0,40}?(\d{3,8})", re.IGNORECASE)
_MORE = 1.3  # what an estimate that was too small is corrected by


class Window:
    """The windows of one server's models. `look` gets its list, `known` tells what it said."""

    def __init__(
        self,
        known: Callable[[str], int | None],
        look: Callable[[], Awaitable[object]],
    ) -> None:
        self._known = known
        self._look = look
        self._learnt: dict[str, int] = {}
        self._factor = 1.0

    def fitted(self, request: Request) -> Request:
        """The request within the window. Raises ProviderError when its question does not fit."""
        window = self._window(request.model)
        if window is None:
            return request
        offered = (f"{t.name}{t.description}{t.parameters}" for t in request.tools)
        fixed = sum(map(self._tokens, (request.system, *offered)))
        messages = fit(request.messages, Budget(window, fixed), self._size).messages
        return replace(request, messages=messages)

    async def learn(self, model: str, error: ProviderError) -> bool:
        """Whether a refusal told something that makes another try worth while."""
        if error.code != "context_length":
            return False
        before, told = self._window(model), _TOLD.search(error.message)
        if told:
            self._learnt[model] = int(told[1])
        elif before is None:
            await self._look()
        if before is not None and before == self._window(model):
            self._factor *= _MORE
        return self._window(model) is not None

    def _window(self, model: str) -> int | None:
        return self._learnt.get(model) or self._known(model)

    def _size(self, message: Message) -> int:
        calls = sum(self._tokens(f"{c.name}{c.arguments}") + 12 for c in message.tool_calls)
        return self._tokens(message.content) + calls

    def _tokens(self, text: str) -> int:
        """A quarter of the bytes, without encoding a history anew for each step."""
        size = len(text) if text.isascii() else 3 * len(text)
        return int((size // 4 + 4) * self._factor)
