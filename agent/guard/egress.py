"""Egress checks: compares each outgoing call (network, MCP) with what this session has read.

Our own keys never leave. The user decides about new addresses, private text, secret-looking
strings, and any call once private and untrusted text are both in context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from searchloop.agent.guard.leaks import KEY_SHAPES, Secrets, forms, squeezed, suspicious
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.types import Message

Mixed = Literal["ask", "refuse", "allow"]
_WORD = re.compile(r"\w+")
_RUN = 5  # words of a private text in a row that count as a piece of it


@dataclass(frozen=True, slots=True)
class Finding:
    """The reason why a call may not go out unseen; with `refuse` not even the user is asked."""

    code: str
    why: str
    refuse: bool = False


@lru_cache(maxsize=1024)  # every run of a chat reads the questions before it again
def _secrets_typed(question: str) -> tuple[str, ...]:
    return tuple(suspicious(question))


class Exposure:
    """The texts of a growing transcript: private ones, the user's, and those from outside."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.messages = messages
        self._read = 0  # how many of them
        self.untrusted = False
        self._private: list[str] = []
        self._open: list[str] = []  # what the user wrote, and what came from outside
        self._typed: set[str] = set()  # secret-looking pieces of what the user wrote
        self._pieces: tuple[int, set[str], Secrets] = (-1, set(), Secrets({}))

    def catch_up(self) -> None:
        """Reads the messages that were added since the last time."""
        added = self.messages[self._read :]
        self._read += len(added)
        for message in added:
            if "summary" in message.details:
                continue  # it repeats messages that are read themselves
            if message.role == "user":
                self._open.append(message.content)
                self._typed.update(_secrets_typed(message.content))
                others = "imported" in message.details or any(f.pages for f in message.attachments)
                self.untrusted = self.untrusted or others
            elif message.role == "tool":
                details = message.details
                if details.get("private"):
                    self._private.append(message.content)
                elif details.get("untrusted"):
                    self._open.append(message.content)
                self.untrusted = self.untrusted or bool(details.get("untrusted"))
            elif message.sources:
                self.untrusted = True

    @property
    def private(self) -> bool:
        """True if the user's own data is in the context."""
        return bool(self._private)

    def typed_secret(self, texts: Iterable[str]) -> bool:
        """Returns whether a text holds something secret-looking that the user wrote."""
        return Secrets({token: token for token in self._typed}).found_in(texts) is not None

    def met(self, token: str) -> bool:
        """Returns whether a token came from the user or from outside."""
        return any(token in text for text in self._open)

    def private_piece(self, texts: Iterable[str]) -> bool:
        """Returns whether one of these forms of a text holds a piece of the user's own data."""
        if not self._private:
            return False
        if self._pieces[0] != len(self._private):
            own = {run for text in self._private for run in _runs(text)}
            known = {run for text in self._open for run in _runs(text)}
            names = {
                token
                for text in self._private
                for token in (*_named(text), *suspicious(text))
                if not self.met(token)
            }
            secrets = Secrets({name: name for name in names})
            self._pieces = (len(self._private), own - known, secrets)
        _, runs, secrets = self._pieces
        candidates = list(texts)
        return secrets.found_in(candidates) is not None or any(
            not runs.isdisjoint(_runs(text)) for text in candidates
        )


def _named(text: str) -> list[str]:
    """Returns the words that mix letters and digits: ids, passwords."""
    words = {word for word in _WORD.findall(text) if len(word) >= 6}
    return [w for w in words if not w.isalpha() and not w.replace("_", "").isdigit()]


def _runs(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    return {" ".join(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}


class Egress:
    """Checks the outgoing calls of one run; `secrets` returns the keys that must never leave."""

    def __init__(
        self,
        secrets: Callable[[], Secrets],
        sources: SourceTable,
        exposure: Exposure,
        mixed: Mixed = "ask",
    ) -> None:
        self._secrets = secrets
        self._sources = sources
        self._mixed = mixed
        self.exposure = exposure

    def look(self, tool: Tool, arguments: Mapping[str, Any]) -> Finding | None:
        """Returns the reason why this call may not go out; None if it may, or if it is local."""
        if tool.spec.effect != "network" and tool.origin != "mcp":
            return None
        self.exposure.catch_up()
        url = str(arguments.get(tool.opens, "")) if tool.opens else None
        met = url is not None and self._sources.met(url) is not None
        if finding := self._secret(arguments, met):
            return finding
        if url is not None and not met:
            why = f"{url[:300]} is neither in what you wrote nor in a result."
            return Finding("unseen_url", why)
        return self._mix()

    def _secret(self, arguments: Mapping[str, Any], met: bool) -> Finding | None:
        said = list(_strings(arguments))
        texts = forms(" ".join([*said, squeezed("".join(said))]))  # split over arguments, too
        name = self._secrets().found_in(texts)
        if name:
            return Finding("own_key", f"It would send your {name} out.", refuse=True)
        if met:  # the model did not write this address, so it hides nothing in it
            return None
        if self.exposure.private_piece(texts):
            return Finding("private_text", "It would send out a piece of your own data.")
        if self.exposure.untrusted and self.exposure.typed_secret(texts):
            return Finding("secret_like", "It holds something you wrote that looks like a secret.")
        for token in suspicious(" ".join(said)):
            if KEY_SHAPES.search(token) or not self.exposure.met(token):
                shown = token if len(token) <= 24 else f"{token[:20]}…"
                return Finding("secret_like", f"It holds {shown!r}, which looks like a secret.")
        return None

    def _mix(self) -> Finding | None:
        if self._mixed == "allow" or not (self.exposure.private and self.exposure.untrusted):
            return None
        why = (
            "Your own data and text from others are both in this conversation: "
            "what others wrote could be steering what is sent."
        )
        return Finding("private_and_untrusted", why, refuse=self._mixed == "refuse")


def _strings(value: Any) -> Iterator[str]:
    """Yields the strings and numbers of a JSON value, keys included."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
    elif value is not None:
        yield str(value)
