"""How each model calls tools: the rungs, and the file that caches them.

The rungs are `native` (the server returns calls), `text` (our parser takes printed calls out),
`envelope` (the server's grammar makes the model write one JSON object) and `search-first` (the
program searches). models.json caches the rung of each model version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.ollama.models import full_name

Rung = Literal["native", "text", "envelope", "search-first"]
RUNGS: tuple[Rung, ...] = get_args(Rung)
_FILE = "models.json"
SAID: dict[Rung, str] = {
    "text": "prints its calls as text; they are taken out of it",
    "envelope": "cannot call tools; it is asked in JSON what to look up",
    "search-first": "cannot call tools; the web is searched with the question before it answers",
}


class Ladder:
    """Caches the rung of each model in a file. `digest` returns the installed version."""

    def __init__(self, home: Path, server: str, digest: Callable[[str], str]) -> None:
        self._file = home / _FILE
        self._server = server
        self._digest = digest
        self._models: dict[str, dict[str, Any]] | None = None

    def rung(self, model: str, tools: bool) -> Rung:
        """Returns the rung to try first. `tools`: the server says that the model calls tools."""
        known = self.known(model) or "native"
        return "envelope" if known in ("native", "text") and not tools else known

    def known(self, model: str) -> Rung | None:
        """Returns the cached rung of this version, or None. An unknown version matches any."""
        entry = self._read().get(self._key(model), {})
        now, then = self._digest(model), entry.get("digest", "")
        rung = entry.get("calls")
        return rung if rung in RUNGS and (now == then or not now or not then) else None

    def learn(self, model: str, rung: Rung) -> None:
        """Caches the rung; without a writable disk only in memory."""
        if (self.known(model) or "native") == rung:
            return
        models = self._read()
        models[self._key(model)] = {"calls": rung, "digest": self._digest(model)}
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
    """Returns the rung to try after this error, None if another rung would not help."""
    if rung in ("native", "text") and error.code in ("no_tools", "tool_call_slip"):
        return "envelope"
    if rung == "envelope" and error.code == "bad_request":
        return "search-first"
    return None
