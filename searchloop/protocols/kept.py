"""What is remembered between the requests of a client, in memory and bounded.

That is answers, which `previous_response_id` names, and the steps of ours that led to an answer: a
client is not shown its searches and pages, and sends back only the answer or the call it was given.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import Message

_MOST = 32_000_000  # characters of all of them
_END = 200  # characters without blanks of an answer's end, which tell it from others


class Kept:
    """The transcripts of the last answers of one user's clients; the oldest are forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: OrderedDict[str, tuple[tuple[Message, ...], dict[str, Any], int]]
        self._known, self._size, self._most = OrderedDict(), 0, most

    def put(self, name: str, messages: Sequence[Message], answer: dict[str, Any]) -> None:
        """Keeps an answer in its protocol's form, with the messages up to it."""
        if name in self._known:
            self.forget(name)
        files = sum(len(file.data) for message in messages for file in message.attachments)
        size = files + sum(len(message.content) + 100 for message in messages)
        self._known[name] = tuple(messages), answer, size
        self._size += size
        while len(self._known) > 1 and self._size > self._most:
            self.forget(next(iter(self._known)))

    def take(self, name: str) -> tuple[tuple[Message, ...], dict[str, Any]]:
        """Returns messages and answer. Raises ConfigError for one that is not there."""
        if name not in self._known:
            raise _missing("response", name)
        return self._known[name][:2]

    def item(self, name: str) -> dict[str, Any]:
        """Returns a part of an answer. Raises ConfigError for one that is not there."""
        for _, answer, _ in self._known.values():
            for item in answer.get("output", ()):
                if item["id"] == name:
                    return dict(item)
        raise _missing("item", name)

    def forget(self, name: str) -> None:
        """Removes one. Raises ConfigError for one that is not there."""
        self.take(name)
        self._size -= self._known.pop(name)[2]

    def put_steps(
        self, asked: Sequence[Message], steps: Sequence[Message], tools: Collection[str]
    ) -> None:
        """Keeps the messages that a run added; calls of `tools` were handed to the client."""
        last = next((m for m in reversed(steps) if m.role == "assistant"), None)
        if last and len(steps) > 1:
            self.put(_name(_question(asked), last, tools), steps, {})

    def restored(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yields a client's messages, with the steps that led to an answer in its place."""
        for index, message in enumerate(messages):
            steps = None
            if message.role == "assistant":
                tools = {call.name for call in message.tool_calls}
                steps = self._known.get(_name(_question(messages[:index]), message, tools))
            yield from steps[0] if steps else (message,)


def _missing(what: str, name: str) -> ConfigError:
    remedy = "Answers are kept in memory, and not with store=false. Send the whole input."
    return ConfigError("no_response", f"There is no {what} {name[:80]!r} here.", remedy)


def _question(messages: Sequence[Message]) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user"), "")


def _name(question: str, answer: Message, tools: Collection[str]) -> str:
    """Names an answer by what its client sends back of it: its calls, else the end of its text."""
    calls = [[c.id, c.name, c.arguments] for c in answer.tool_calls if c.name in tools]
    end = "" if calls else "".join(answer.content.split())[-_END:]
    told = json.dumps([question, calls, end], sort_keys=True)
    return f"steps {sha256(told.encode()).hexdigest()}"
