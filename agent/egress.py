"""What leaves: each outgoing call is held against what the session has seen.

A call is outgoing when it goes to the network or to an MCP server. Our own keys never leave. The
rest is a question for the user: an address that nobody met, a text from their files, a string that
looks like a secret, and any call at all once private data and untrusted text are both in context.
Nothing here reads what a model says about itself; it compares strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.leaks import Secrets, forms, is_key_shaped, squeezed, suspicious
from agent.sources import SourceTable
from agent.tools import Tool
from agent.types import Message, ToolResult

Mixed = Literal["ask", "refuse", "allow"]
_WORD = re.compile(r"\w+")
_RUN = 5  # words of a private text in a row that count as a piece of it


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a call may not simply go out. `refuse` where asking would be wrong too."""

    code: str
    why: str
    refuse: bool = False


class Exposure:
    """What is in a session's context: whose texts, and which of them are private."""

    def __init__(self) -> None:
        self.untrusted = False
        self._private: list[str] = []
        self._open: list[str] = []  # what the user wrote, and what came from outside
        self._typed: list[str] = []
        self._pieces: tuple[int, set[str], Secrets] = (-1, set(), Secrets({}))

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Exposure:
        """As it stands after these messages."""
        exposure = cls()
        for message in messages:
            if message.role == "user":
                exposure._open.append(message.content)
                exposure._typed.append(message.content)
            elif message.role == "tool":
                exposure._add(message.content, message.details)
            elif message.sources:
                exposure.untrusted = True
        return exposure

    @property
    def private(self) -> bool:
        """Whether the user's own data is in the context."""
        return bool(self._private)

    def add(self, result: ToolResult) -> None:
        """One result more."""
        self._add(result.content, result.details)

    def _add(self, content: str, details: Mapping[str, Any]) -> None:
        if details.get("private"):
            self._private.append(content)
        elif details.get("untrusted"):
            self._open.append(content)
        self.untrusted = self.untrusted or bool(details.get("untrusted"))

    def typed(self, token: str) -> bool:
        """Whether the user wrote it."""
        return any(token in text for text in self._typed)

    def typed_secret(self, texts: Iterable[str]) -> bool:
        """Whether something that looks like a secret and that the user wrote stands in a text."""
        tokens = {token for text in self._typed for token in suspicious(text)}
        return Secrets({token: token for token in tokens}).found_in(texts) is not None

    def met(self, token: str) -> bool:
        """Whether it came from the user or from outside, so that it is known there."""
        return any(token in text for text in self._open)

    def private_piece(self, texts: Iterable[str]) -> bool:
        """Whether a piece of the user's own data stands in one of these forms of a text."""
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
        dressed = list(texts)
        if secrets.found_in(dressed):
            return True
        return any(run in runs for text in dressed for run in _runs(text))


def _named(text: str) -> list[str]:
    """Words of letters and digits: ids, passwords."""
    words = {word for word in _WORD.findall(text) if len(word) >= 6}
    return [w for w in words if not w.isalpha() and not w.replace("_", "").isdigit()]


def _runs(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    return {" ".join(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}


class Egress:
    """The outgoing calls of one run. `secrets` is asked when the first one is looked at."""

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
        """What is wrong with this call going out; None for nothing, and for one that stays here."""
        if tool.spec.effect != "network" and tool.origin != "mcp":
            return None
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        met = tool.opens is not None and self._met(str(arguments.get(tool.opens, "")))
        return self._secret(text, met) or self._address(tool, arguments, met) or self._mix(tool)

    def _met(self, url: str) -> bool:
        """Whether the tool will open it in a spelling that is not the model's."""
        return self._sources.met(url) is not None

    def _secret(self, text: str, met: bool) -> Finding | None:
        said = _strings(text)
        texts = forms(" ".join([*said, squeezed("".join(said))]))  # split over arguments, too
        name = self._secrets().found_in(texts)
        if name:
            return Finding("own_key", f"It would send your {name} out.", refuse=True)
        if met:  # an address that somebody else made holds nothing that a model put there
            return None
        if self.exposure.private_piece(texts):
            return Finding("private_text", "It would send out a piece of your own data.")
        if self.exposure.untrusted and self.exposure.typed_secret(texts):
            return Finding("secret_like", "It holds something you wrote that looks like a secret.")
        for token in suspicious(" ".join(said)):
            if is_key_shaped(token) or not (self.exposure.typed(token) or self._public(token)):
                shown = token if len(token) <= 24 else f"{token[:20]}…"
                return Finding("secret_like", f"It holds {shown!r}, which looks like a secret.")
        return None

    def _public(self, token: str) -> bool:
        return self.exposure.met(token) and not self.exposure.typed(token)

    def _address(self, tool: Tool, arguments: Mapping[str, Any], met: bool) -> Finding | None:
        if tool.opens is None or met:
            return None
        url = str(arguments.get(tool.opens, ""))
        why = f"{url[:300]} is neither in what you wrote nor in a result."
        return Finding("unseen_url", why)

    def _mix(self, tool: Tool) -> Finding | None:
        if self._mixed == "allow" or not (self.exposure.private and self.exposure.untrusted):
            return None
        why = (
            "Your own data and text from others are both in this conversation: "
            "what others wrote could be steering what is sent."
        )
        return Finding("private_and_untrusted", why, refuse=self._mixed == "refuse")


def _strings(text: str) -> list[str]:
    """The strings and numbers of a JSON text, names included."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                found.append(str(key))
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        elif value is not None:
            found.append(str(value))

    walk(json.loads(text))
    return found
