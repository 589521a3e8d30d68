"""What a server and its models do otherwise than the Chat Completions API describes.

`dialects.toml` lists it, by address and by family of models. A model of another name, on a server
that nobody listed, is found by the words in which it refuses a request.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Dialect:
    """The traits of one model at one address; the defaults are those of the API.

    `search`: how it searches the web by itself. "" does not, "always" does so with every answer,
    "options" too and takes `web_search_options`; any other value is the type of the server's tool.
    `domains`: the member with the domains of its search, each forbidden one behind a minus.
    `flat_place`: the user's country is not nested. `marks`: its `[1]` name the pages that it
    lists.
    `id_length`: ids of calls have exactly so many letters and digits. `user_after_tool`: a question
    may follow a result. `reasoning`: the member that each message with calls must have.
    `opened`: its thinking begins in the prompt. `prints`: a call may stand in the text.
    `limit` names the member that limits the answer; `counts`: it takes `stream_options`; `shapes`:
    it takes a `response_format` with a schema.
    """

    search: str = ""
    domains: str = ""
    flat_place: bool = False
    marks: bool = False
    id_length: int = 0
    user_after_tool: bool = True
    reasoning: str = ""
    opened: bool = False
    prints: bool = True
    limit: str = "max_tokens"
    counts: bool = True
    shapes: bool = True

    @property
    def always(self) -> bool:
        """True if no answer comes without a search."""
        return self.search in ("always", "options")


_FILE = Path(__file__).with_name("dialects.toml")
_TRAITS = frozenset(field.name for field in fields(Dialect))


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(_FILE.read_text("utf-8"))


def taught_by(words: str) -> list[str]:
    """Returns the entries that the words of a refusal ask for."""
    return [
        name
        for name, entry in _entries().items()
        if "refusal" in entry and re.search(entry["refusal"], words, re.IGNORECASE)
    ]


class Dialects:
    """The dialects of one server's models, and what refusals taught about them."""

    def __init__(self, host: str) -> None:
        self._host = host.lower()
        self._known: dict[str, Dialect] = {}
        self._taught: dict[str, set[str]] = {}

    def of(self, model: str) -> Dialect:
        """Returns the dialect of a model."""
        known = self._known.get(model)
        if known is None:
            taught = self._taught.get(model, ())
            traits: dict[str, Any] = {}
            for name, entry in _entries().items():
                if name in taught or self._fits(entry, model.lower()):
                    traits |= {k: v for k, v in entry.items() if k in _TRAITS}
            known = self._known[model] = Dialect(**traits)
        return known

    def learn(self, model: str, words: str) -> bool:
        """Learns from the words of a refusal. Returns True if another try may succeed."""
        before = self.of(model)
        self._taught.setdefault(model, set()).update(taught_by(words))
        self._known.pop(model, None)
        return self.of(model) != before

    def _fits(self, entry: Mapping[str, Any], model: str) -> bool:
        return any(fnmatchcase(self._host, host) for host in entry.get("hosts", ())) or any(
            fnmatchcase(model, name) for name in entry.get("models", ())
        )
