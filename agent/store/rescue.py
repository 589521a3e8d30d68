"""Reading a file that cannot be written: a closed folder, a full disk, damage, a newer store.

What is damaged is read from a copy of all that could be saved of it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from agent.errors import StoreError
from agent.store.contract import Steps
from agent.store.faults import sqlite_errors
from agent.store.opening import connect, open_database
from agent.store.salvage import salvage

_SIDES = ("", "-wal", "-shm")


class Rescue:
    """One file, to be read only. `trouble` says why; `partial` names the sessions with gaps."""

    def __init__(self, path: Path, steps: Steps, trouble: StoreError) -> None:
        """Raises `trouble` when nothing can be read either."""
        self._path = path
        self._seen = _state(path)
        self._scratch: Path | None = None
        self.trouble = trouble
        self.partial: frozenset[str] = frozenset()
        self.saved: Path | None = None  # a whole store of what could be saved
        if not os.path.isfile(path) or not self._seen[1]:
            raise trouble
        try:
            damaged = trouble.code == "damaged"
            self._address = self._saved(steps) if damaged else self._readable(steps)
        except (OSError, sqlite3.Error, StoreError):
            self.close()
            raise trouble from None

    def _saved(self, steps: Steps) -> str:
        self.saved = self._room() / "saved"
        open_database(self.saved, steps).close()
        self.partial = salvage(self._path, self.saved)
        address = f"file:{_quoted(self.saved)}"
        with closing(connect(address, uri=True)) as db:
            if db.execute("SELECT 1 FROM sessions").fetchone() is None:
                raise self.trouble
        return address

    def _room(self) -> Path:
        self._scratch = Path(tempfile.mkdtemp(prefix="searchloop-"))
        return self._scratch

    def _readable(self, steps: Steps) -> str:
        """The first way in which it can be read. See "read-only databases" in SQLite's wal.html."""
        for address in self._ways(steps):
            with suppress(sqlite3.Error), closing(connect(address, uri=True)) as db:
                if db.execute("PRAGMA user_version").fetchone()[0] >= len(steps):
                    return address
        raise self.trouble

    def _ways(self, steps: Steps) -> Iterator[str]:
        place = _quoted(self._path)
        yield f"file:{place}?mode=ro"
        rest = Path(f"{self._path}-wal")
        whole = not rest.exists() or not rest.stat().st_size
        if whole:
            yield f"file:{place}?immutable=1"
        # The newest events are in a file that has to be worked with, or it is of an older version.
        copy = self._room() / "copy"
        for side in _SIDES[: 1 if whole else 2]:
            shutil.copyfile(f"{self._path}{side}", f"{copy}{side}")
        with suppress(StoreError):  # of a newer one
            open_database(copy, steps).close()
        yield f"file:{_quoted(copy)}"

    def connect(self) -> sqlite3.Connection:
        """A connection to read with. Raises StoreError."""
        with sqlite_errors(self._path):
            return connect(self._address, uri=True)

    def check_changed(self) -> None:
        """Raises the trouble again while a damaged file is the one that it was."""
        if self.trouble.code == "damaged" and _state(self._path) == self._seen:
            raise self.trouble

    def told(self) -> list[str]:
        """What there is to say of the damage, a line each."""
        with closing(self.connect()) as db:
            count = db.execute("SELECT count(*) FROM sessions").fetchone()[0]
        gaps = f", {len(self.partial)} of them with gaps" if self.partial else ""
        return [self.trouble.message, f"{count} sessions can be read{gaps}."]

    def close(self) -> None:
        """Takes the copy away."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _state(path: Path) -> tuple[int, ...]:
    """What tells a file, and a state of it, from any other."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return ()


def _quoted(path: Path) -> str:
    """A path inside a `file:` address."""
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
