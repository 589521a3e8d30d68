"""Notices that another process saved a key or a setting: `searchloop setup` beside a server."""

from __future__ import annotations

from pathlib import Path

from agent.keys import FILE
from agent.settings import LOWEST

_State = tuple[tuple[int, int, int] | None, ...]


class SavedFiles:
    """keys.json and config.toml of `home`. A look at both costs some microseconds."""

    def __init__(self, home: Path) -> None:
        self._paths = (home / FILE, home / LOWEST)
        self._seen = self._state()

    def changed(self) -> bool:
        """Whether one of them is another one than at the last look."""
        seen, self._seen = self._seen, self._state()
        return seen != self._seen

    def _state(self) -> _State:
        return tuple(_state(path) for path in self._paths)


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # Each is written as a new file that takes the old one's place, so the number tells, too.
    return found.st_mtime_ns, found.st_size, found.st_ino
