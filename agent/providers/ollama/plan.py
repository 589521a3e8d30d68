"""One session's window: chosen once, planned for before each request, checked after each answer.

The window is what the server really gives: OLLAMA_CONTEXT_LENGTH where it is set, else what the
loaded model has; nobody is asked while a prompt is small. Once known it is asked for by number in
every request of the session, because another number would load the model again. Until it is known
nothing is cut: the request forbids the server to cut, and what it then says of sizes is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agent.budget import Budget, Fitted, fit, tokens
from agent.errors import ProviderError
from agent.providers.ollama.encoding import encode_messages, encode_tools
from agent.types import Finished, Message, Notice, Request

_SIZES = re.compile(r"\((\d+) tokens\)[^()]*context size \((\d+)")
_USUAL = tuple(1 << power for power in range(11, 19))
_MOST = 4.0


@dataclass
class Plan:
    """What is known of one session. `factor` corrects our estimate of this model's tokens."""

    words: bool = False
    window: int | None = None
    tried: int = 0
    factor: float = 1.0
    told: set[str] = field(default_factory=set)
    _sent: list[bytes] = field(default_factory=list)
    _fitted: Fitted = field(default_factory=lambda: Fitted([], 0))
    _reused: float | None = None

    def fit(self, request: Request, *, words: bool) -> Request:
        """The request within the window. Raises ProviderError when its question does not fit."""
        self.words = words
        fixed = int(self._fixed(request) * self.factor)
        window = min(filter(None, (self.window, request.context_limit)), default=None)
        if window is None:
            size = sum(self._sizes(request))
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
    def estimate(self) -> int:
        """The tokens of what was planned last."""
        return self._fitted.tokens

    def _sizes(self, request: Request) -> list[int]:
        return [self._size(message) for message in request.messages]

    def _size(self, message: Message) -> int:
        """By its bytes on the wire, which are encoded once.

        Naming no model leaves the thinking out, which is counted by who knows the turn.
        """
        (encoded,) = encode_messages([message], "", self.words)
        return int((len(encoded) // 4 + 4) * self.factor)

    def _fixed(self, request: Request) -> int:
        listed = len(encode_tools(request.tools)) // 4 if request.tools and not self.words else 0
        return tokens(request.system) + listed

    def remember(self, request: Request) -> None:
        """How much of what was sent before this request begins with: 1.0 if it only grew.

        Templates put the tools at the beginning, so that other tools are another prompt.
        """
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
        """Takes over the sizes that the server names in its refusal; else plans with more care."""
        sizes = _SIZES.search(error.message)
        if sizes is None:
            self.factor = min(_MOST, self.factor * 1.3)
            return
        asked, window = int(sizes[1]), int(sizes[2])
        self.window = window
        if asked > self._fitted.tokens:
            self.factor = min(_MOST, self.factor * asked / max(1, self._fitted.tokens))

    def finished(self, end: Finished) -> Finished:
        """The end with what was planned and what came of it in its details."""
        return with_details(
            end,
            prompt_estimate=self._fitted.tokens,
            window=self.window,
            prefix_reused=self._reused,
            shortened=self._fitted.shortened or None,
        )

    def check(self, end: Finished) -> Iterator[Notice]:
        """What the server's count says of ours; each thing is told once a session."""
        counted, estimate = end.usage.input_tokens, self._fitted.tokens
        if not counted or not estimate:
            return
        half = any(1 <= counted - window // 2 <= 6 for window in _USUAL)
        if half and estimate > counted * 1.3:
            yield from self._tell(
                "prompt_cut",
                f"The server read {counted:,} of about {estimate:,} tokens: it cut the prompt.",
                "Give the model a larger window, for example OLLAMA_CONTEXT_LENGTH=16384.",
            )
        elif counted > estimate * 1.1:
            self.factor = min(_MOST, self.factor * counted / estimate * 1.05)
            if counted > estimate * 1.5:
                yield from self._tell(
                    "estimate_off",
                    f"The prompt took {counted:,} tokens, not about {estimate:,}; "
                    "the plan for this session is corrected.",
                )
        elif estimate > 1000 and counted < estimate * 0.4:
            yield from self._tell(
                "prompt_small",
                f"The server counts {counted:,} tokens where about {estimate:,} were sent: it may "
                "have cut the prompt.",
                "Compare OLLAMA_CONTEXT_LENGTH with what `ollama ps` shows.",
            )

    def tell(self, notice: Notice) -> Iterator[Notice]:
        """The notice, once a session."""
        if notice.code not in self.told:
            self.told.add(notice.code)
            yield notice

    def _tell(self, code: str, message: str, remedy: str = "") -> Iterator[Notice]:
        return self.tell(Notice(code, message, remedy))


def with_details(end: Finished, **more: Any) -> Finished:
    """The end with these in its message's details; None is left out."""
    known = {name: value for name, value in more.items() if value is not None}
    message = replace(end.message, details={**end.message.details, **known})
    return replace(end, message=message)
