"""The library's folders: listed, added (or brought up to date) and forgotten."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from agent.errors import ConfigError
from web.calls import Call, Reply

_MOST_SKIPPED = 20  # named one by one; the rest is counted


class Shelved(Protocol):
    """What has a library."""

    def library(self) -> AbstractContextManager[Any]:
        """The library's index, while it is used."""


class LibraryApi:
    """GET, POST and DELETE /api/library. Adding takes as long as the folder is large."""

    def __init__(self, house: Shelved) -> None:
        self._house = house

    def list(self, call: Call) -> Reply:
        """What there is to search without a network."""
        with self._house.library() as library:
            collections = [asdict(c) for c in library.list()]
        return Reply({"collections": collections})

    def add(self, call: Call) -> Reply:
        """Indexes a folder or file of this machine."""
        path = Path(call.body["path"]).expanduser()
        if "\0" in call.body["path"] or not path.is_absolute() or not path.exists():
            raise ConfigError(
                "bad_path",
                f"There is no folder or file {call.body['path'][:200]!r}.",
                "Give the full path of a folder or file on this machine.",
            )
        with self._house.library() as library:
            added = asdict(library.add(path))
        skipped = added.pop("skipped")
        shown = [{"path": path, "why": why} for path, why in skipped[:_MOST_SKIPPED]]
        return Reply({**added, "skipped": len(skipped), "skipped_files": shown})

    def remove(self, call: Call) -> Reply:
        """Forgets a folder; its files stay where they are."""
        with self._house.library() as library:
            return Reply({"removed": library.remove(call.body["path"])})
