"""`create_file` and `replace_in_file`: changes with a preview, an atomic write and an undo.

SEARCHLOOP_HOME/undo/SESSION/TURN/ has `N.json` and `N.before` (the old bytes) of each change, on
the disk before it is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from searchloop.agent.errors import Conflict, StoreError, ToolError
from searchloop.agent.settings.private_files import sync_folder
from searchloop.agent.text import plain, to_json, well_formed
from searchloop.agent.tools import object_schema, text_schema
from searchloop.agent.tools.workspace.folders import exists_already
from searchloop.agent.tools.workspace.paths import Parts, change_diff, editable, new_file_diff
from searchloop.agent.tools.workspace.reading import PATH
from searchloop.agent.tools.workspace.tree import MAX_BYTES, FileContent, Tree

_KEPT = 100_000  # characters of a diff that a chat's log keeps
CREATE_FILE = object_schema(
    {"path": PATH, "content": text_schema("The whole content of the new file")}, "path", "content"
)
REPLACE_IN_FILE = object_schema(
    {
        "path": PATH,
        "old_text": text_schema(
            "What is there now, literally; with enough around it to be there once"
        ),
        "new_text": text_schema("What takes its place"),
    },
    "path",
    "old_text",
    "new_text",
)


class Edit(NamedTuple):
    """A change that can be made: the file as it is (None: new), the new bytes and the diff."""

    parts: Parts
    was: FileContent | None
    data: bytes
    diff: str


class Writer:
    """Changes files for one turn; a call does exactly what its preview showed, or nothing."""

    def __init__(self, tree: Tree, turn: Journal) -> None:
        self._tree = tree
        self._turn = turn
        self._shown: dict[str, Edit] = {}

    def show(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Returns the unified diff of a call. Raises ToolError when it cannot be done."""
        edit = self._shown[_key(name, arguments)] = _EDITS[name](self._tree, arguments)
        return edit.diff

    def do(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Makes the change; returns words for the model and {path, diff, ...}. Raises ToolError."""
        with self._tree.writing:
            shown = self._shown.pop(_key(name, arguments), None)
            edit = shown or _EDITS[name](self._tree, arguments)
            self._make(edit)
        diff = edit.diff if len(edit.diff) <= _KEPT else f"{edit.diff[:_KEPT]}\n(cut here)\n"
        details = {
            "kind": "file_change",
            "path": "/".join(edit.parts),
            "new": edit.was is None,
            "diff": diff,
            "kept_as": self._turn.name,
        }
        done = "Changed" if edit.was else "Created"
        return f"{done} {details['path']} ({len(edit.data):,} bytes).", details

    def _make(self, edit: Edit) -> None:
        tree, was = self._tree, edit.was
        after = hash_of(edit.data)
        if was is None:
            above = (edit.parts[:n] for n in range(1, len(edit.parts)))
            made = tuple(folder for folder in above if not tree.exists(folder))
            self._turn.keep(Change(tree.root, edit.parts, None, 0, after, made))
            tree.create(edit.parts, edit.data)
        else:
            mode = stat.S_IMODE(was.status.st_mode)
            self._turn.keep(Change(tree.root, edit.parts, was.data, mode, after))
            tree.replace(was, edit.data)


def _creation(tree: Tree, arguments: Mapping[str, Any]) -> Edit:
    parts = tree.parts(arguments["path"])
    text = well_formed(arguments["content"])
    data = text.encode()
    if not parts or arguments["path"].endswith("/"):
        raise ToolError("bad_path", "That is a folder, not a file.", "Name the new file.")
    _check_size(data)
    if tree.exists(parts):
        raise exists_already("/".join(parts))
    return Edit(parts, None, data, new_file_diff("/".join(parts), text))


def _replacement(tree: Tree, arguments: Mapping[str, Any]) -> Edit:
    was = tree.read(tree.parts(arguments["path"]))
    text = editable(was.data, was.path)
    old, new = well_formed(arguments["old_text"]), well_formed(arguments["new_text"])
    if "\r\n" in text:  # models write newlines as they see them
        lines = map(re.escape, old.replace("\r\n", "\n").split("\n"))
        old = next((m[0] for m in re.finditer("\r?\n".join(lines), text)), old) if old else old
        new = re.sub("\r?\n", "\r\n", new)
    start = _only_place(text, old, was.path)
    if old == new:
        raise ToolError("no_change", "old_text and new_text are the same.", "Nothing was done.")
    end = start + len(old)
    after = text[:start] + new + text[end:]
    data = after.encode()
    _check_size(data)
    return Edit(was.parts, was, data, change_diff(was.path, text, after, start, end))


def _only_place(text: str, old: str, path: str) -> int:
    """Finds `old`. Raises ToolError unless it is there exactly once."""
    if not old:
        what = "old_text is empty."
        raise ToolError("no_match", what, "Give a part of the file with what shall stand there.")
    start = text.find(old)
    if start < 0:
        what = f"old_text is not in {path}."
        remedy = "Read the file again and copy the part literally, with its blanks."
        raise ToolError("no_match", what, remedy)
    if text.find(old, start + 1) >= 0:
        what = f"old_text is in {path} more than once."
        raise ToolError("many_matches", what, "Give more of what stands around the right one.")
    return start


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        what = f"The file would have {len(data):,} bytes; {MAX_BYTES:,} is the most."
        raise ToolError("file_too_large", what, "Make it smaller, or several files.")


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return name + to_json(plain(dict(sorted(arguments.items()))))


_EDITS = {"create_file": _creation, "replace_in_file": _replacement}


_KEPT_TURNS = 20  # turns of one session


class Change(NamedTuple):
    """One write: the old bytes and mode, the hash of the new ones, the folders made for it."""

    root: str
    parts: Parts
    before: bytes | None
    mode: int
    after: str
    made: tuple[Parts, ...] = ()


def hash_of(data: bytes) -> str:
    """Returns the SHA-256 of a file's bytes in hex."""
    return hashlib.sha256(data).hexdigest()


class Journal:
    """The changes of one turn, in order. The first one makes the folder."""

    def __init__(self, home: Path, session: str) -> None:
        self.name = f"{time.time_ns():020d}"
        self._session = folder_of(home, session)
        self._count = 0

    def keep(self, change: Change) -> None:
        """Stores a change and flushes it to the disk. Raises ToolError when it cannot."""
        folder = self._session / self.name
        number, self._count = self._count, self._count + 1
        record = {**change._asdict(), "before": None, "new": change.before is None}
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
                for old in sorted(self._session.iterdir())[:-_KEPT_TURNS]:
                    shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            what = f"What it was before could not be kept for an undo: {error.strerror or error}."
            raise ToolError("no_undo", what, "Nothing was changed.") from error


def folder_of(home: Path, session: str) -> Path:
    """Returns the folder of a session's turns."""
    return home / "undo" / hashlib.sha256(session.encode()).hexdigest()[:32]


def undo(home: Path, session: str, but_for: Container[str] = ()) -> list[str]:
    """Undoes the last turn with changes, save `but_for`; returns the paths. Raises Conflict."""
    turns = [turn for turn in _turns(folder_of(home, session)) if turn.name not in but_for]
    if not turns:
        what = "No answer that this chat shows has changed a file."
        raise Conflict("nothing_to_undo", what, "There is nothing to undo.")
    changes = _changes(turns[-1])
    trees = {change.root: Tree(change.root) for change in changes}
    files: dict[tuple[str, Parts], list[Change]] = {}
    for change in changes:
        files.setdefault((change.root, change.parts), []).append(change)
    now = {key: _found(trees[key[0]], key[1]) for key in files}
    spoilt = ["/".join(key[1]) for key, own in files.items() if not _undoable(now[key], own)]
    if spoilt:
        names = ", ".join(spoilt[:5]) + (f" and {len(spoilt) - 5} more" if spoilt[5:] else "")
        what = f"Nothing was undone: {names} changed after the answer."
        raise Conflict("changed_since", what, f"What was there before is kept in {turns[-1]}.")
    restored = [
        "/".join(key[1])
        for key, own in reversed(files.items())
        if _restore(trees[key[0]], now[key], own[0])
    ]
    for change in reversed(changes):
        for parts in reversed(change.made):
            trees[change.root].remove_folder(parts)
    shutil.rmtree(turns[-1], ignore_errors=True)
    return sorted(restored)


def forget(home: Path, session: str) -> None:
    """Deletes the journal of a session."""
    shutil.rmtree(folder_of(home, session), ignore_errors=True)


def _undoable(found: FileContent | None, own: Sequence[Change]) -> bool:
    """Returns whether a file is as the turn left it, or as it was before the turn."""
    if found is None:
        return own[0].before is None
    return hash_of(found.data) == own[-1].after or found.data == own[0].before


def _restore(tree: Tree, found: FileContent | None, first: Change) -> bool:
    if found is None or found.data == first.before:
        return False
    if first.before is None:
        tree.remove(found)
    else:
        tree.replace(found, first.before, first.mode)
    return True


def _found(tree: Tree, parts: Parts) -> FileContent | None:
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
    made, parts = tuple(map(tuple, record["made"])), tuple(record["parts"])
    return Change(record["root"], parts, before, record["mode"], record["after"], made)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
