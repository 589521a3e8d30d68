"""Which engine our own search asks first: what a turn's search path is called after."""

from __future__ import annotations

import contextlib
import time

from agent.backend import Backend
from agent.errors import ToolError

_SECONDS = 30.0


class FirstEngine:
    """Asks the backend now and then."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: tuple[float, str | None] = (0.0, None)

    async def name(self) -> str | None:
        """The engine that would be asked first, as the backend tells it; None if unknown."""
        asked, engine = self._known
        if asked and time.monotonic() - asked < _SECONDS:
            return engine
        with contextlib.suppress(ToolError, LookupError, TypeError):  # not ours, or newer
            answer = await self._backend.ask("/api/engines")
            usable = [e for e in answer["engines"] if e["available"] and e["position"]]
            first = min(usable, key=lambda e: e["position"], default={"name": None})
            self._known = (time.monotonic(), first["name"])
        return self._known[1]
