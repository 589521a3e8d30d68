"""How each model's calls arrive, learnt once and remembered.

| rung | |
|---|---|
| native | the server hands calls over |
| text | the same, but the model prints its calls and they are taken out of its text |
| envelope | the model writes one JSON object, held to its form by the server |
| search-first | the program searches and reads, the model answers |

What was learnt is kept in SEARCHLOOP_HOME/models.json by model and version: a new version of a
model begins anew. The file is a memory, not a setting: without it everything is learnt again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from agent.errors import ProviderError
from agent.providers.ollama.catalog import full_name

Rung = Literal["native", "text", "envelope", "search-first"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
_FILE = "models.json"
SAID: dict[Rung, str] = {
    "native": "",
    "text": "prints its calls as text; they are taken out of it",
    "envelope": "cannot call tools; it is asked in JSON what to look up",
    "search-first": "cannot call tools; the web is searched with the question before it answers",
}


class Ladder:
    """The rung of each model. `digest` tells the version that is installed."""

    def __init__(self, home: Path, server: str, digest: Callable[[str], str]) -> None:
        self._file = home / _FILE
        self._server = server
        self._digest = digest
        self._models: dict[str, dict[str, Any]] | None = None

    def rung(self, model: str, tools: bool) -> Rung:
        """Where to begin. `tools` is whether the server says that the model calls them."""
        known = self.known(model)
        if known in (None, "native", "text") and not tools:
            return "envelope"
        return known or "native"

    def known(self, model: str) -> Rung | None:
        """What was learnt of this version, or None. A version nobody asked for is any version."""
        kept = self._read().get(self._key(model), {})
        now, then = self._digest(model), kept.get("digest", "")
        rung = kept.get("calls")
        return rung if rung in RUNGS and (now == then or not now or not then) else None

    def learn(self, model: str, rung: Rung) -> None:
        """Remembers it; a disk that refuses costs the memory, nothing else."""
        models, kept = self._read(), {"calls": rung, "digest": self._digest(model)}
        if self.known(model) == rung or (rung == "native" and self.known(model) is None):
            return
        models[self._key(model)] = kept
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft = self._file.with_suffix(f".{os.getpid()}.tmp")
            draft.write_text(json.dumps(models, indent=1, sort_keys=True) + "\n", "utf-8")
            draft.replace(self._file)

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._models is None:
            self._models = {}
            with suppress(OSError, ValueError):
                stored = json.loads(self._file.read_text("utf-8"))
                if isinstance(stored, dict):
                    self._models = {k: v for k, v in stored.items() if isinstance(v, dict)}
        return self._models

    def _key(self, model: str) -> str:
        return f"{self._server} {full_name(model)}"


def rung_below(rung: Rung, error: ProviderError) -> Rung | None:
    """Where a model goes on that failed like this; None when the fault is another."""
    if rung in ("native", "text") and error.code in ("no_tools", "tool_call_slip"):
        return "envelope"
    if rung == "envelope" and error.code == "bad_request":
        return "search-first"
    return None
