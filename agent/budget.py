"""What fits a model's window: a plan in tokens, and the transcript cut to it. Pure.

Cutting goes over the transcript in the order it grew and decides at each point where a request was
sent, from what was known there. So the same transcript is always cut the same way, a longer one
begins like the shorter one did, and a server's cache of the prompt stays good between cuts. Cuts
are rare and large: what is over the limit is brought down to `_LOW` of it. Old pages shrink first,
then the steps of earlier turns go, then those turns, then earlier steps of this one. The question
being answered is never touched; if it does not fit, that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.errors import ProviderError
from agent.excerpts import brief, capped, one_line
from agent.types import Message

_LOW = 0.6
_ANSWER_SHARE, _ANSWER_MOST = 4, 8192
_RESULT_SHARE = 0.4
SMALLEST = 512


@dataclass(frozen=True, slots=True)
class Budget:
    """A window divided, in tokens: `fixed` is the system text and the tools."""

    window: int
    fixed: int = 0

    @property
    def answer(self) -> int:
        """What stays free for the answer and its thinking."""
        return min(self.window // _ANSWER_SHARE, _ANSWER_MOST)

    @property
    def room(self) -> int:
        """What the messages may take."""
        return self.window - self.answer - self.fixed

    @property
    def result(self) -> int:
        """What one result of a tool may take."""
        return int(self.room * _RESULT_SHARE)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is sent. `tokens` is the estimate of all of it, `shortened` how many messages were."""

    messages: list[Message]
    tokens: int
    shortened: int = 0


def tokens(text: str) -> int:
    """A quarter of the bytes: near enough for most scripts, and checked against the real count."""
    return len(text.encode("utf-8", "replace")) // 4 + 4


def size_of(message: Message) -> int:
    """The tokens of a message without its thinking."""
    calls = sum(tokens(f"{c.name}{c.arguments}") + 12 for c in message.tool_calls)
    return tokens(message.content) + calls


def fit(
    messages: Sequence[Message], budget: Budget, size: Callable[[Message], int] = size_of
) -> Fitted:
    """The transcript within the budget. Raises ProviderError when the question alone is too large.

    `size` gives a message's tokens without its thinking, which counts in the present turn only.
    """
    cutting = _Cutting(budget, size)
    for message in messages:
        if message.role == "assistant":
            cutting.settle()
        cutting.add(message)
    cutting.settle()
    if cutting.total > budget.room:
        raise _too_large(cutting, budget)
    kept = [m for m in cutting.kept if m is not None]
    return Fitted(kept, cutting.total + budget.fixed, cutting.shortened)


@dataclass
class _Cutting:
    """The transcript as it stands at one point. A message that is gone is None."""

    budget: Budget
    size: Callable[[Message], int]
    kept: list[Message | None] = field(default_factory=list)
    full: list[Message] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    total: int = 0
    thoughts: int = 0
    shortened: int = 0
    question: int = -1
    step: int = 0  # where the last step begins: its results have not been read yet
    brief_until: int = 0
    gone_until: int = 0

    def add(self, message: Message) -> None:
        """One more message, a result cut to what one may take.

        A nudge (to answer now) is ours and no question: what was found is still to be read.
        """
        place = len(self.kept)
        self.full.append(message)
        if message.role == "user" and not message.details.get("nudge"):
            self.question, self.step = place, place + 1
            self.total -= self.thoughts
            self.thoughts = 0
        elif message.role == "assistant":
            self.step = place
            thought = tokens(message.thinking) if message.thinking else 0
            self.thoughts += thought
            self.total += thought
        self.kept.append(message)
        self.sizes.append(self.size(message))
        self.total += self.sizes[-1]
        if message.role == "tool" and self.sizes[-1] > self.budget.result:
            share = self.budget.result / self.sizes[-1]
            self._put(place, capped(message, share))

    def settle(self) -> None:
        """A request is sent here: cuts if what there is does not fit."""
        room = self.budget.room
        if self.total <= room:
            return
        low = int(room * _LOW)
        for cut in (self._shorten_old, self._drop_old_steps, self._drop_turns, self._drop_steps):
            cut(low)
            if self.total <= low:
                return
        if self.total > room:
            self._shorten_last(room)

    def _put(self, place: int, message: Message | None) -> None:
        if message is self.kept[place] or self.kept[place] is None:
            return
        if message and self.size(message) >= self.sizes[place]:
            return
        self.shortened += self.kept[place] is self.full[place]
        self.total -= self.sizes[place]
        self.kept[place] = message
        self.sizes[place] = self.size(message) if message else 0
        self.total += self.sizes[place]

    def _shorten_old(self, low: int) -> None:
        """Results that were read shrink to title, address and the passages that were used."""
        for place in range(self.brief_until, self.step):
            if self.total <= low:
                return
            message = self.kept[place]
            if message and message.role == "tool":
                self._put(place, brief(self.full[place], self.full))
            self.brief_until = place + 1

    def _drop_old_steps(self, low: int) -> None:
        """Calls and results of earlier turns go; questions and answers stay."""
        for place in range(self.question):
            message = self.kept[place]
            if self.total <= low:
                return
            if message and message.role == "assistant" and message.tool_calls:
                self._drop_step(place)

    def _drop_turns(self, low: int) -> None:
        """The oldest questions and answers go, always together."""
        place = self.gone_until
        while place < self.question and self.total > low:
            self._put(place, None)
            place += 1
            while place < self.question and self.full[place].role != "user":
                self._put(place, None)
                place += 1
        self.gone_until = place

    def _drop_steps(self, low: int) -> None:
        """Earlier steps of this turn go; what they found stays in the list of sources."""
        for place in range(self.question + 1, self.step):
            message = self.kept[place]
            if self.total <= low:
                return
            if message and message.role == "assistant" and message.tool_calls:
                self._drop_step(place)

    def _drop_step(self, place: int) -> None:
        message = self.kept[place]
        if message and message.thinking and place > self.question:
            self.thoughts -= tokens(message.thinking)
            self.total -= tokens(message.thinking)
        self._put(place, None)
        for after in range(place + 1, len(self.kept)):
            if self.full[after].role != "tool":
                break
            self._put(after, None)

    def _shorten_last(self, room: int) -> None:
        """Results that were not read yet: only if they do not fit by themselves."""
        for shorter in (lambda m: brief(m, self.full), one_line):
            for place in range(self.step, len(self.kept)):
                if self.total <= room:
                    return
                message = self.kept[place]
                if message and message.role == "tool":
                    self._put(place, shorter(self.full[place]))


def _too_large(cutting: _Cutting, budget: Budget) -> ProviderError:
    asked = cutting.sizes[cutting.question] if cutting.question >= 0 else 0
    if asked * 2 > cutting.total or budget.room <= 0:
        return ProviderError(
            "question_too_long",
            f"The question takes about {asked:,} tokens, and the model's window of "
            f"{budget.window:,} has room for {max(0, budget.room):,}.",
            "Shorten it, or give the model a larger window.",
        )
    return ProviderError(
        "context_too_long",
        f"This turn takes about {cutting.total:,} tokens, and the model's window of "
        f"{budget.window:,} has room for {max(0, budget.room):,}.",
        "Ask for less at once, or give the model a larger window.",
    )
