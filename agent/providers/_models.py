"""What the models of a provider can do, as `models.toml` in its folder says.

`offered` holds the names of the picker, or names and titles, while the server gives no list; any
other name works too. `[listed]` tells which names of a server's list are models for conversations.
`[models]` holds what a model can do under a prefix of its name: the longest one counts, "" stands
for any name; `before` is what may stand in front. What several models can do stands once under
`[kinds]`, which `is` names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from searchloop.agent.types import Capabilities

T = TypeVar("T")
_ABILITIES = {field.name for field in fields(Capabilities)}


class ModelTable(Generic[T]):
    """The table beside `module`, read when it is first asked: `of(name)` is what `make` returns.

    `make` gets the capabilities of a model, and by name what else its entry holds.
    """

    def __init__(self, module: str, make: Callable[..., T]) -> None:
        self._file = Path(module).with_name("models.toml")
        self._make = make
        self.of: Callable[[str], T] = lru_cache(maxsize=256)(self._of)

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        return tomllib.loads(self._file.read_text("utf-8"))

    @property
    def offered(self) -> Mapping[str, str]:
        """Names of models and their titles."""
        offered = self._table["offered"]
        return offered if isinstance(offered, dict) else {name: name for name in offered}

    def answers_questions(self, name: str) -> bool:
        """Tells whether a model of the server's list belongs into a picker for conversations."""
        listed = self._table["listed"]
        words, prefixes = listed["without"], tuple(listed["prefixes"])
        return name.startswith(prefixes) and not any(word in name for word in words)

    def _of(self, name: str) -> T:
        name = name.removeprefix(self._table.get("before", ""))
        models = self._table["models"]
        values = self._values(models[max(filter(name.startswith, models), key=len)])
        able = Capabilities(**{k: v for k, v in values.items() if k in _ABILITIES})
        return self._make(able, **{k: v for k, v in values.items() if k not in _ABILITIES})

    def _values(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        kind = entry.get("is")
        known = self._values(self._table["kinds"][kind]) if kind else {}
        return {**known, **{k: v for k, v in entry.items() if k != "is"}}
