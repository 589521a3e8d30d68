"""Cuts a transcript to a model's window, by estimates in tokens.

`fit` decides at each earlier request from what was known then, so a longer transcript begins as the
shorter one did and prompt caches stay valid. Cuts are rare and large. Old pages shrink first, then
the steps of earlier turns go, then those turns, then steps of this turn; the question stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, NamedTuple

from searchloop.agent.errors import ProviderError
from searchloop.agent.log.events import size_of
from searchloop.agent.text import tokens
from searchloop.agent.types import Budget, Message

_LOW = 0.6


class Fitted(NamedTuple):
    """The messages to send; `tokens` estimates them, `shortened` counts those that were cut.

    `turns` counts the questions that were left out.
    """

    messages: list[Message]
    tokens: int
    shortened: int = 0
    turns: int = 0


_USUAL = tuple(1 << power for power in range(11, 19))  # windows that servers have by default


def was_cut(counted: int, estimate: int) -> Literal["prompt_cut", "prompt_small"] | None:
    """Compares a server's count of a prompt with our estimate of it.

    A server that cuts a prompt keeps half of its window; a much smaller count may be such a cut.
    """
    half = any(1 <= counted - window // 2 <= 6 for window in _USUAL)
    if half and estimate > counted * 1.3:
        return "prompt_cut"
    return "prompt_small" if estimate > 1000 and counted < estimate * 0.4 else None


def fit(
    messages: Sequence[Message], budget: Budget, size: Callable[[Message], int] = size_of
) -> Fitted:
    """Cuts messages to the budget. Raises ProviderError when this turn does not fit."""
    cutting = _Cutting(budget, size)
    for message in messages:
        if message.role == "assistant":
            cutting.settle()
        cutting.add(message)
    cutting.settle()
    if cutting.total > budget.room:
        raise _too_large(cutting, budget)
    kept = [m for m in cutting.kept if m is not None]
    gone = sum(k is None and m.role == "user" for k, m in zip(cutting.kept, messages, strict=True))
    return Fitted(kept, cutting.total + budget.fixed, cutting.shortened, gone)


@dataclass
class _Cutting:
    """The transcript at one request; a dropped message is None in `kept`."""

    budget: Budget
    size: Callable[[Message], int]
    kept: list[Message | None] = field(default_factory=list)
    full: list[Message] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    total: int = 0
    thoughts: int = 0
    shortened: int = 0
    question: int = -1
    step: int = 0  # the start of the last step: the model has not read its results yet
    brief_until: int = 0
    gone_until: int = 0

    def add(self, message: Message) -> None:
        """Adds a message; a nudge (to answer now) is ours and starts no question."""
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
        """Cuts what does not fit into the request at this point."""
        room = self.budget.room
        if self.total <= room:
            return
        low = int(room * _LOW)
        self._shorten_old(low)
        self._drop_steps(low, 0, self.question)
        if self.total > room:
            self._drop_turns(low)
        self._drop_steps(low, self.question + 1, self.step)
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
        """Shortens results that were read to title, address and the passages that were used."""
        for place in range(self.brief_until, self.step):
            if self.total <= low:
                return
            message = self.kept[place]
            if message and message.role == "tool":
                self._put(place, brief(self.full[place], self.full))
            self.brief_until = place + 1

    def _drop_turns(self, low: int) -> None:
        """Drops the oldest questions, each with its answer; a summary stays."""
        place = max(self.gone_until, int("summary" in self.full[0].details))
        while place < self.question and self.total > low:
            self._put(place, None)
            place += 1
            while place < self.question and self.full[place].role != "user":
                self._put(place, None)
                place += 1
        self.gone_until = place

    def _drop_steps(self, low: int, start: int, end: int) -> None:
        """Drops calls with their results; questions, answers and the list of sources stay."""
        for place in range(start, end):
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
        """Shortens results that the model has not read yet, if they alone do not fit."""
        for shorter in (lambda m: brief(m, self.full), one_line):
            for place in range(self.step, len(self.kept)):
                if self.total <= room:
                    return
                message = self.kept[place]
                if message and message.role == "tool":
                    self._put(place, shorter(self.full[place]))


def _too_large(cutting: _Cutting, budget: Budget) -> ProviderError:
    asked = cutting.sizes[cutting.question] if cutting.question >= 0 else 0
    room = f"the model's window of {budget.window:,} has room for {max(0, budget.room):,}."
    if asked * 2 > cutting.total or budget.room <= 0:
        what = f"The question takes about {asked:,} tokens, and {room}"
        remedy = "Shorten it, or give the model a larger window."
        return ProviderError("question_too_long", what, remedy)
    what = f"This turn takes about {cutting.total:,} tokens, and {room}"
    remedy = "Ask for less at once, or give the model a larger window."
    return ProviderError("context_too_long", what, remedy)


_FENCE = re.compile(r"<<(\w{1,40}) untrusted[^\n]{0,200}>>\n")
_FENCES = 9  # that are looked at: the first is ours, unless words before it imitate one
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w{3,}")
_PASSAGES = 3
_LONGEST = 420  # characters of the passages of one page
_NOTE = "[shortened: the passages that were used]"


def brief(message: Message, transcript: Sequence[Message]) -> Message:
    """Shortens a result to title, address, and the passages that answers in `transcript` used."""
    head, body, tail = parts(message.content)
    match message.details.get("kind"):
        case "page":
            text = f"{_NOTE}\n{passages(body, _wanted(message, transcript))}"
        case "search":
            rows = message.details.get("results", ())
            text = "\n".join(f"[{r['n']}] {r['title'][:80]} {r['url']}" for r in rows)
        case _:
            text = body if len(body) <= _LONGEST else f"{body[:_LONGEST]}\n[shortened]"
    return _with(message, head + text + tail)


def one_line(message: Message) -> Message:
    """Shortens a result to one line, so that its call still has a result."""
    details = message.details
    match details.get("kind"):
        case "page":
            said = f"[{details.get('n')}] {details.get('url', '')[:200]}"
        case "search":
            said = f"searched for {details.get('query', '')[:80]!r}"
        case _:
            said = message.content[:80]
    return _with(message, f"[left out, no room in the window: {said}]")


def capped(message: Message, share: float) -> Message:
    """Cuts a result to this share of its length."""
    head, body, tail = parts(message.content)
    around = len(head) + len(tail)
    keep = max(0, int(len(message.content) * share) - around - 120)
    note = f"\n[cut here: {keep} of {len(body)} characters fit; use find for the rest]"
    return _with(message, head + body[:keep] + note + tail)


def parts(content: str) -> tuple[str, str, str]:
    """Splits fenced text into (before, inside, after); without a fence all of it is inside."""
    for found in islice(_FENCE.finditer(content), _FENCES):
        start, end = found.end(), content.rfind(f"\n<<{found[1]} end>>", found.end())
        if end >= 0:
            return content[:start], content[start:end], content[end:]
    return "", content, ""


def passages(body: str, wanted: set[str]) -> str:
    """Returns the few sentences that share most words with `wanted`, in their order."""
    found = [s.strip() for s in _SENTENCE.split(body) if s.strip()]
    scored = [(len(wanted & words(s)) / (12 + len(s)) ** 0.5, i) for i, s in enumerate(found)]
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:_PASSAGES]
    chosen, left = [], _LONGEST
    for _, place in best:
        text = found[place][:left]
        left -= len(text)
        if text:
            chosen.append((place, text))
    return " […] ".join(text for _, text in sorted(chosen))


def words(text: str) -> set[str]:
    """Returns the words of three letters or more, casefolded."""
    return {w.casefold() for w in _WORD.findall(text)}


def _wanted(message: Message, transcript: Sequence[Message]) -> set[str]:
    """Returns the words of the sentences that cite this page, else those of its question."""
    n, cited, question = message.details.get("n"), set(), ""
    after = False
    for said in transcript:
        after = after or said is message
        if said.role == "user" and not after:
            question = said.content
        for citation in said.citations:
            if citation.n == n:
                for mark in citation.marks:
                    cited |= words(mark.quote or "")
                for start, end in citation.spans:
                    cited |= words(said.content[max(0, start - 200) : end])
    return cited or words(question)


def _with(message: Message, content: str) -> Message:
    if len(content) >= len(message.content):
        return message
    return replace(message, content=content, encoded={})
