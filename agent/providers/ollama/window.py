"""Which window a request gets, and how the chat is fitted into it.

The window is OLLAMA_CONTEXT_LENGTH, else that of the loaded model; each request names it, because
another number would load the model again. Until it is known nothing is cut: the server is forbidden
to cut, and the sizes in its refusal correct the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.log.window import Budget, Fitted, fit, size_of, tokens, was_cut
from searchloop.agent.providers.ollama.ladder import Rung
from searchloop.agent.providers.ollama.models import ModelCatalog
from searchloop.agent.providers.ollama.request import encode_messages, encode_tools
from searchloop.agent.types import Finished, Message, Notice, Request

_SIZES = re.compile(r"\((\d+) tokens\)[^()]*context size \((\d+)")
_MOST = 4.0
_TRIES = 3


@dataclass
class Plan:
    """The token plan of one session. `factor` corrects our estimate of this model's tokens.

    `rung` is set while the session is below the model's rung, because its calls could not be read.
    """

    rung: Rung | None = None
    words: bool = False
    window: int | None = None
    tried: int = 0
    factor: float = 1.0
    told: set[str] = field(default_factory=set)
    _sent: list[bytes] = field(default_factory=list)
    _fitted: Fitted = field(default_factory=lambda: Fitted([], 0))
    _reused: float | None = None

    async def find_window(self, catalog: ModelCatalog, model: str) -> None:
        """Asks the server for the window, at most _TRIES times."""
        if self.window is not None or self.tried >= _TRIES:
            return
        self.tried += 1
        with suppress(ProviderError):
            if catalog.find(model) is None:
                await catalog.look()
            else:
                await catalog.look_loaded()
        self.window = catalog.capabilities(model).context

    def fit(self, request: Request, *, words: bool) -> Request:
        """Fits the request into the window. Raises ProviderError if its question does not fit."""
        self.words = words
        fixed = int(self._fixed(request) * self.factor)
        window = min(filter(None, (self.window, request.context_limit)), default=None)
        if window is None:
            size = sum(map(self._size, request.messages))
            self._fitted = Fitted(list(request.messages), fixed + size)
        else:
            try:
                self._fitted = fit(request.messages, Budget(window, fixed), self._size)
            except ProviderError as error:
                wider = max(16384, 2 * window)
                remedy = f"{error.remedy.rstrip('.')}, for example OLLAMA_CONTEXT_LENGTH={wider}."
                raise ProviderError(error.code, error.message, remedy) from error
        return replace(request, messages=self._fitted.messages, context_limit=window)

    @property
    def dropped(self) -> bool:
        """Returns True if the last request lost turns."""
        return self._fitted.turns > 0

    @property
    def estimate(self) -> int:
        """The tokens of the last request."""
        return self._fitted.tokens

    def _size(self, message: Message) -> int:
        """Estimates the tokens of a message, without its thinking, by its bytes on the wire."""
        if message.attachments:  # a picture takes far less than its bytes
            return int(size_of(message) * self.factor)
        (encoded,) = encode_messages([message], "", self.words)
        return int(tokens(encoded.decode()) * self.factor)

    def _fixed(self, request: Request) -> int:
        listed = encode_tools(request.tools).decode() if request.tools and not self.words else ""
        return tokens(request.system) + tokens(listed)

    def remember(self, request: Request) -> None:
        """Measures how much of the last prompt this request begins with: 1.0 if it only grew."""
        # Templates put the tools at the beginning: other tools make another prompt.
        listed = b"" if self.words or request.answer_now else encode_tools(request.tools)
        parts = [listed + request.system.encode("utf-8", "replace")]
        parts += encode_messages(request.messages, request.model, self.words)
        shared = 0
        for before, now in zip(self._sent, parts, strict=False):
            if before is not now and before != now:
                break
            shared += len(now)
        before_all = sum(map(len, self._sent))
        self._reused = round(shared / before_all, 3) if before_all else None
        self._sent = parts

    def refused(self, error: ProviderError) -> None:
        """Adopts the sizes that the server names in its refusal, else raises the estimate."""
        sizes = _SIZES.search(error.message)
        self._grow(int(sizes[1]) / max(1, self._fitted.tokens) if sizes else 1.3)
        self.window = int(sizes[2]) if sizes else self.window

    def _grow(self, by: float) -> None:
        self.factor = min(_MOST, self.factor * max(1.0, by))

    def finished(self, end: Finished) -> Finished:
        """Adds the plan and its result to the details of the message."""
        return with_details(
            end,
            prompt_estimate=self._fitted.tokens,
            window=self.window,
            prefix_reused=self._reused,
            shortened=self._fitted.shortened or None,
        )

    def check(self, end: Finished) -> Iterator[Notice]:
        """Compares the server's count with our estimate; each notice appears once a session."""
        counted, estimate = end.usage.input_tokens, self._fitted.tokens
        if not counted or not estimate:
            return
        verdict = was_cut(counted, estimate)
        if verdict == "prompt_cut":
            yield from self.tell(
                "prompt_cut",
                f"The server read {counted:,} of about {estimate:,} tokens: it cut the prompt.",
                "Give the model a larger window, for example OLLAMA_CONTEXT_LENGTH=16384.",
            )
        elif counted > estimate * 1.1:
            self._grow(counted / estimate * 1.05)
            if counted > estimate * 1.5:
                yield from self.tell(
                    "estimate_off",
                    f"The prompt took {counted:,} tokens, not about {estimate:,}; "
                    "the plan for this session is corrected.",
                )
        elif verdict:
            yield from self.tell(
                "prompt_small",
                f"The server counts {counted:,} tokens where about {estimate:,} were sent: it may "
                "have cut the prompt.",
                "Compare OLLAMA_CONTEXT_LENGTH with what `ollama ps` shows.",
            )

    def tell(self, code: str, message: str, remedy: str = "") -> Iterator[Notice]:
        """Yields a notice, once a session."""
        if code not in self.told:
            self.told.add(code)
            yield Notice(code, message, remedy)


def with_details(end: Finished, **more: Any) -> Finished:
    """Adds `more` to the details of the message, without values that are None."""
    known = {name: value for name, value in more.items() if value is not None}
    message = replace(end.message, details={**end.message.details, **known})
    return replace(end, message=message)
