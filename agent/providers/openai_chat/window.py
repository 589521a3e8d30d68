"""The window of a model: as its server says it, and as the counts of its answers show it.

Servers name it in a refusal or in their list of models. One that cuts long prompts without a word
is noticed by its own count of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from searchloop.agent.errors import AgentError, ProviderError
from searchloop.agent.log.window import Budget, fit, size_of, tokens, was_cut
from searchloop.agent.types import Finished, Message, Notice, Request

# How Ollama names the owner of its models, and itself in an answer. Here it cuts long prompts.
_OLLAMA = frozenset({"library", "fp_ollama"})
_BETTER = (
    "This server is Ollama, which cuts long prompts here without a word. Set OLLAMA_HOST={root} "
    "and choose ollama:{model}: its window is then planned for, and its models load as they fit."
)
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


def named_size(words: str) -> int | None:
    """Returns the window that the words of a refusal name."""
    found = next(filter(None, (pattern.search(words) for pattern in _NAMED)), None)
    return int(next(filter(None, found.groups())).replace(",", "")) if found else None


class ContextWindow:
    """Shortens requests to the windows of one server, and checks its counts.

    `known` reads the list of models, which `look` gets.
    """

    def __init__(
        self,
        known: Callable[[str], int | None],
        look: Callable[[], Awaitable[object]],
        root: str = "",
    ) -> None:
        self._known, self._look, self._root = known, look, root
        self._learnt: dict[str, int] = {}
        self._factor = 1.0
        self._told: set[str] = set()
        self._ollama = False

    def fitted(self, request: Request) -> Request:
        """Fits a request into the window. Raises ProviderError if its question does not fit."""
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

    def meet(self, name: str) -> None:
        """Notes how a server names itself."""
        self._ollama = self._ollama or name in _OLLAMA

    def note(self, model: str, error: ProviderError) -> None:
        """Notes the window that a refusal names."""
        if named := named_size(error.message):
            self._learnt[model] = named

    async def learn(self, model: str, error: ProviderError) -> bool:
        """Learns from a refusal for its length. Returns True if another try may succeed."""
        before = self.size(model)
        self.note(model, error)
        if self.size(model) is None:
            await self._list()
        if before is not None and before == self.size(model):
            self._factor *= _MORE
        return self.size(model) is not None

    async def check(self, sent: Request, end: Finished) -> Notice | None:
        """Compares the server's count with our estimate. Returns a notice, once for each model."""
        model, counted, estimate = sent.model, end.usage.input_tokens or 0, _estimate(sent)
        self.meet(end.message.details.get("server", ""))
        verdict = was_cut(counted, estimate) if counted else None
        if not verdict or model in self._told:
            return None
        if self.size(model) is None:
            await self._list()
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
        return _BETTER.format(root=self._root, model=model) if self._ollama else ""

    def size(self, model: str) -> int | None:
        """Returns the window in tokens: as a refusal named it, else as the list of models does."""
        return self._learnt.get(model) or self._known(model)

    async def _list(self) -> None:
        with suppress(AgentError):
            await self._look()

    def _size(self, message: Message) -> int:
        return int(size_of(message) * self._factor)


def _fixed(request: Request) -> int:
    offered = (f"{t.name}{t.description}{t.parameters}" for t in request.tools)
    return sum(map(tokens, (request.system, *offered)))


def _estimate(request: Request) -> int:
    return _fixed(request) + sum(map(size_of, request.messages))
