"""How good and bad answers of each provider look on its wire, as bytes: one file a provider.

A provider joins the chaos, the interleavings and the checks of request types by its file here: the
module is called like the provider's and has one `Dialect`. A dialect is made anew for each
conversation, because the ids it hands out must not repeat.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import Any

from tests.fakes import Reply

KEY = "sk-canary-0123456789abcdefghij"  # must never be seen anywhere but in a header
PAGE = "https://tides.example/lindhoj"


@dataclass(frozen=True)
class Asked:
    """A call as the model writes it: `arguments` is text, which may be broken."""

    name: str
    arguments: str = "{}"


class Dialect:
    """One provider's wire format as its server speaks it.

    An answer is a list of events, one piece of bytes each; the last `terminal` of them are those
    without which it is not finished. `searcher` is a model that searches by itself, if there is
    one. `says_when`: an event tells the end, not the end of the bytes. `numbered`: repeated events
    can be told from equal ones. `names_wait`: a rate limit always says how long; without that it is
    a spending cap.
    """

    name: str
    models: Sequence[str]
    searcher: str
    home = "/v1"  # what its address ends with
    content_type = "text/event-stream"
    terminal = 1
    says_when = True
    numbered = False
    names_wait = False
    unknown: bytes
    garbage = b"data: {nonsense\n\n"

    def __init__(self) -> None:
        self._ids = count(1)

    def settings(self, url: str) -> dict[str, str]:
        """The ordinary settings that point to a server at `url`."""
        prefix = self.name.upper().replace("-", "_")
        return {f"{prefix}_API_KEY": KEY, f"{prefix}_BASE_URL": f"{url}{self.home}"}

    def check(self, body: Mapping[str, Any], path: str) -> None:
        """Raises AssertionError with the vendor's rule that a request breaks."""
        raise NotImplementedError

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        """The transcript in a request in its smallest parts, in order; without cache marks."""
        raise NotImplementedError

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        """The native search and page tools that a request offers."""
        raise NotImplementedError

    def hear(self, body: Mapping[str, Any]) -> None:
        """The request that the next answer is for: some servers go on with what they began."""

    def aside(self, method: str, path: str) -> Any:
        """What the server tells about itself at this address; None where it is asked to answer."""
        return None

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        """An answer in words."""
        raise NotImplementedError

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        """An answer that asks for tools."""
        raise NotImplementedError

    def searched(self, *pieces: str) -> list[bytes]:
        """An answer after the provider's own search, which cites PAGE; empty if it has none."""
        return []

    def paused(self, *pieces: str) -> list[bytes]:
        """An answer that the server interrupts during its search; empty if it never does."""
        return []

    def both(self, asked: Asked) -> list[bytes]:
        """A search of the provider's own beside a call; empty if there is no such thing."""
        return []

    def cut_short(self, asked: Asked) -> list[bytes]:
        """An answer that met its token limit while it wrote a call."""
        raise NotImplementedError

    def trouble(self) -> bytes:
        """The event by which a server that is overloaded ends a stream."""
        raise NotImplementedError

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        """The server's usual answer with this status, which unkindly repeats the key."""
        raise NotImplementedError

    def spent(self) -> Reply:
        """No credit, or the month's quota is used up: waiting does not help."""
        raise NotImplementedError

    def refuses_search(self) -> Reply | None:
        """This model does not take the native search tool; None where that cannot be."""
        return None


def names() -> list[str]:
    """The dialects there are, by the names of their providers."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(__path__))


def load(name: str) -> Dialect:
    """A fresh dialect."""
    module = import_module(f"tests.chaos.dialects.{name.replace('-', '_')}")
    own = (each for each in vars(module).values() if getattr(each, "name", "") == name)
    dialect: Dialect = next(own)()
    return dialect


def dump(value: Any) -> bytes:
    """JSON as servers write it."""
    return json.dumps(value, ensure_ascii=False).encode()


def parsed(arguments: str) -> Any:
    """Arguments for wires on which they are values: text that is no JSON stays text."""
    try:
        value = json.loads(arguments)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return arguments
    return value
