"""What fits into a model's window, and what the server's counts say of our estimates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from searchloop.agent.log.events import size_of
from searchloop.agent.log.window import Fitted, fit, was_cut
from searchloop.agent.text import tokens
from searchloop.agent.types import Budget, Finished, Message, Notice, Request

_MOST = 4.0
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


def named_size(words: str) -> int | None:
    """Returns the window that the words of a refusal name."""
    found = next(filter(None, (pattern.search(words) for pattern in _NAMED)), None)
    return int(next(filter(None, found.groups())).replace(",", "")) if found else None


@dataclass
class Window:
    """`tokens` is None while it is unknown; `factor` corrects our estimates for this model."""

    tokens: int | None = None
    factor: float = 1.0
    fitted: Fitted = field(default_factory=lambda: Fitted([], 0))
    told: set[str] = field(default_factory=set)

    def fit(self, request: Request, size: int | None, *, tools: bool = True) -> Request:
        """Fits a request into `size`. Raises ProviderError if its question does not fit.

        `tools` says that the tools go beside the system text.
        """
        offered = request.tools if tools else ()
        texts = (request.system, *(f"{t.name}{t.description}{t.parameters}" for t in offered))
        fixed = int(sum(map(tokens, texts)) * self.factor)
        messages = list(request.messages)
        if size is None:
            self.fitted = Fitted(messages, fixed + sum(map(self._size, messages)))
        else:
            self.fitted = fit(messages, Budget(size, fixed), self._size)
        return replace(request, messages=self.fitted.messages)

    def grow(self, by: float) -> None:
        """Corrects estimates that were too small."""
        self.factor = min(_MOST, self.factor * max(1.0, by))

    def check(
        self, end: Finished, estimate: int, size: int | None, remedy: str
    ) -> Iterator[Notice]:
        """Compares the server's count with our estimate: it may have cut the prompt.

        If the estimate fits into `size`, which is None where it proves nothing, it was off.
        """
        counted = end.usage.input_tokens or 0
        verdict = was_cut(counted, estimate) if counted else None
        if not verdict and counted > estimate * 1.1 > 0:
            self.grow(counted / estimate * 1.05)
        if not verdict or (size and size >= estimate):
            return
        cut = "it cut" if verdict == "prompt_cut" else "it may have cut"
        what = f"The server read {counted:,} of about {estimate:,} tokens: {cut} the prompt."
        yield from self.tell(verdict, what, remedy)

    def tell(self, code: str, message: str, remedy: str = "") -> Iterator[Notice]:
        """Yields a notice the first time."""
        if code not in self.told:
            self.told.add(code)
            yield Notice(code, message, remedy)

    def _size(self, message: Message) -> int:
        return int(size_of(message) * self.factor)
