"""The window of a model: as its server says it, and as the counts of its answers show it.

Servers name it in a refusal or in their list of models. One that cuts long prompts without a word
is noticed by its own count of the prompt.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from searchloop.agent.errors import AgentError, ProviderError
from searchloop.agent.log.window import was_cut
from searchloop.agent.providers._window import Window
from searchloop.agent.types import Finished, Notice, Request

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
_REMEDY = (
    "Start the server with a larger window. If it is Ollama, set OLLAMA_HOST to its address "
    "without /v1 and choose the model behind ollama: - its window is then planned for."
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
        self, known: Callable[[str], int | None], look: Callable[[], Awaitable[object]]
    ) -> None:
        self._known, self._look = known, look
        self._windows = defaultdict[str, Window](Window)

    def fitted(self, request: Request) -> tuple[Request, int]:
        """Fits a request into the window, and estimates its tokens. See `Window.fit`."""
        window = self._windows[request.model]
        return window.fit(request, self.size(request.model)), window.fitted.tokens

    def note(self, model: str, error: ProviderError) -> None:
        """Notes the window that a refusal names."""
        if named := named_size(error.message):
            self._windows[model].tokens = named

    async def learn(self, model: str, error: ProviderError) -> bool:
        """Learns from a refusal for its length. Returns True if another try may succeed."""
        before = self.size(model)
        self.note(model, error)
        if self.size(model) is None:
            await self._list()
        if before is not None and before == self.size(model):
            self._windows[model].grow(_MORE)
        return self.size(model) is not None

    async def check(self, model: str, end: Finished, estimate: int) -> AsyncGenerator[Notice, None]:
        """Compares the server's count with our estimate, and learns the window from a cut."""
        window, counted = self._windows[model], end.usage.input_tokens or 0
        verdict = was_cut(counted, estimate) if counted else None
        if verdict and self.size(model) is None:
            await self._list()
        if verdict == "prompt_cut" and self.size(model) is None:
            window.tokens = 2 * counted
        for notice in window.check(end, estimate, self.size(model), _REMEDY):
            yield notice

    def size(self, model: str) -> int | None:
        """Returns the window in tokens: as a refusal named it, else as the list of models does."""
        return self._windows[model].tokens or self._known(model)

    async def _list(self) -> None:
        with suppress(AgentError):
            await self._look()
