"""What files were before a turn changed them, so that the turn can be undone.

`SEARCHLOOP_HOME/undo/SESSION/TURN/` holds two files a change: `N.json` (where it was made, and the
hash of what was written) and `N.before` (the bytes before; none for a new file). They are on the
disk before the change is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import Conflict, StoreError, ToolError
from agent.private_file import sync_folder
from agent.workspace.names import Parts
from agent.workspace.tree import Found, Tree

_KEPT = 20  # turns of one session


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the file before (None when it was new) and the hash of what came."""

    root: str
    parts: Parts
    before: bytes | None
    mode: int
    after: str
    made: tuple[Parts, ...] = ()

    @property
    def path(self) -> str:
        """As the model wrote it."""
        return "/".join(self.parts)


def hash_of(data: bytes) -> str:
    """What a content is recognised by."""
    return hashlib.sha256(data).hexdigest()


class Turn:
    """The changes of one turn, in order. Makes its folder at the first one."""

    def __init__(self, home: Path, session: str) -> None:
        self.name = f"{time.time_ns():020d}"
        self._session = folder_of(home, session)
        self._count = 0

    def keep(self, change: Change) -> None:
        """On the disk when this returns. Raises ToolError when it cannot be kept."""
        folder = self._session / self.name
        number, self._count = self._count, self._count + 1
        record = {
            "root": change.root,
            "parts": change.parts,
            "new": change.before is None,
            "mode": change.mode,
            "after": change.after,
            "made": change.made,
        }
        try:
            for each in (folder.parents[2], folder.parents[1], folder.parent, folder):
                each.mkdir(parents=True, exist_ok=True, mode=0o700)  # upper ones take no mode
                if not number:
                    sync_folder(each.parent)
            if change.before is not None:
                _write(folder / f"{number:05d}.before", change.before)
            _write(folder / f"{number:05d}.json", json.dumps(record).encode())
            sync_folder(folder)
            if not number:
                _forget_old(self._session)
        except OSError as error:
            what = f"What it was before could not be kept for an undo: {error.strerror or error}."
            raise ToolError("no_undo", what, "Nothing was changed.") from error


def folder_of(home: Path, session: str) -> Path:
    """Where a session's turns are."""
    return home / "undo" / hashlib.sha256(session.encode()).hexdigest()[:32]


def undo(
    home: Path, session: str, allowed: Sequence[str] = (), but_for: Container[str] = ()
) -> list[str]:
    """Takes back what the session's last turn with changes did to files; their paths. Turns whose
    changes are kept under a name of `but_for` are passed over.

    Raises Conflict, with nothing changed, when there is no such turn or a file was changed since.
    """
    turns = [turn for turn in _turns(folder_of(home, session)) if turn.name not in but_for]
    if not turns:
        what = "No answer of this session that is shown changed a file."
        raise Conflict("nothing_to_undo", what, "There is nothing to undo.")
    changes = _changes(turns[-1])
    trees = {change.root: Tree(change.root, allowed) for change in changes}
    files: dict[tuple[str, Parts], list[Change]] = {}
    for change in changes:
        files.setdefault((change.root, change.parts), []).append(change)
    now = {key: _found(trees[key[0]], key[1]) for key in files}
    spoilt = [own[0].path for key, own in files.items() if not _undoable(now[key], own)]
    if spoilt:
        names = ", ".join(spoilt[:5]) + (f" and {len(spoilt) - 5} more" if spoilt[5:] else "")
        raise Conflict(
            "changed_since",
            f"Nothing was undone: {names} changed after the answer.",
            f"What was there before is kept in {turns[-1]}.",
        )
    restored = []
    for key, own in reversed(files.items()):
        if _restore(trees[key[0]], now[key], own[0]):
            restored.append(own[0].path)
    for change in reversed(changes):
        for parts in reversed(change.made):
            trees[change.root].remove_folder(parts)
    shutil.rmtree(turns[-1], ignore_errors=True)
    return sorted(restored)


def forget(home: Path, session: str) -> None:
    """Removes all that is kept of a session."""
    shutil.rmtree(folder_of(home, session), ignore_errors=True)


def _undoable(found: Found | None, own: Sequence[Change]) -> bool:
    """Whether a file is what the turn left, or what it was before (then there is nothing to do)."""
    if found is None:
        return own[0].before is None
    return hash_of(found.data) == own[-1].after or found.data == own[0].before


def _restore(tree: Tree, found: Found | None, first: Change) -> bool:
    if found is None or found.data == first.before:
        return False
    if first.before is None:
        tree.remove(found)
    else:
        tree.replace(found, first.before, first.mode)
    return True


def _found(tree: Tree, parts: Parts) -> Found | None:
    try:
        return tree.read(parts)
    except ToolError as error:
        if error.code == "no_such_file":
            return None
        raise Conflict("changed_since", f"Nothing was undone: {error.message}", "") from error


def _turns(session: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(turn for turn in session.iterdir() if any(turn.glob("*.json")))
    return []


def _changes(turn: Path) -> list[Change]:
    try:
        return [_change(path) for path in sorted(turn.glob("*.json"))]
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = f"What was kept for an undo cannot be read ({turn}: {error})."
        raise StoreError("damaged", what, "Compare the files in that folder by hand.") from error


def _change(path: Path) -> Change:
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    before = None if record["new"] else path.with_suffix(".before").read_bytes()
    made = tuple(map(tuple, record["made"]))
    parts = tuple(record["parts"])
    return Change(record["root"], parts, before, record["mode"], record["after"], made)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _forget_old(session: Path) -> None:
    turns: Iterable[Path] = sorted(session.iterdir())[:-_KEPT]
    for turn in turns:
        shutil.rmtree(turn, ignore_errors=True)
