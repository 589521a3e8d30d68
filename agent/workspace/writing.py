"""`create_file` and `replace_in_file`: changes that are shown first, made whole, and undone."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.errors import ToolError
from agent.text import plain, to_json, well_formed
from agent.workspace.atomic import exists_already
from agent.workspace.journal import Change, Turn, hash_of
from agent.workspace.names import Parts
from agent.workspace.tree import MAX_BYTES, Found, Tree
from agent.workspace.words import change_diff, editable, new_file_diff

_KEPT = 100_000  # characters of a diff that a chat's log keeps
_PATH = {"type": "string", "description": "Path below the workspace, such as src/main.py"}
CREATE_FILE = {
    "type": "object",
    "properties": {
        "path": _PATH,
        "content": {"type": "string", "description": "The whole content of the new file"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}
REPLACE_IN_FILE = {
    "type": "object",
    "properties": {
        "path": _PATH,
        "old_text": {
            "type": "string",
            "description": "What is there now, literally; with enough around it to be there once",
        },
        "new_text": {"type": "string", "description": "What takes its place"},
    },
    "required": ["path", "old_text", "new_text"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that can be made: what is there now (None: nothing), what will be, and the diff."""

    parts: Parts
    was: Found | None
    data: bytes
    diff: str


class Writer:
    """Changes files of a workspace for one turn.

    What a user was shown as a diff is what is done: if the file changed since, nothing is.
    """

    def __init__(self, tree: Tree, turn: Turn) -> None:
        self._tree = tree
        self._turn = turn
        self._shown: dict[str, str] = {}

    def show(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The unified diff of a call. Raises ToolError when it cannot be done."""
        edit = _EDITS[name](self._tree, arguments)
        self._shown[_key(name, arguments)] = hash_of(edit.data)
        return edit.diff

    def do(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Makes the change: words for the model, and {path, diff, ...}. Raises ToolError."""
        with self._tree.writing():
            edit = _EDITS[name](self._tree, arguments)
            path = "/".join(edit.parts)
            shown = self._shown.pop(_key(name, arguments), None)
            if shown not in (None, hash_of(edit.data)):
                what = f"{path} changed after the change to it was shown, so nothing was done."
                raise ToolError("file_changed", what, "Read it again and ask once more.")
            self._make(edit)
        diff = edit.diff if len(edit.diff) <= _KEPT else f"{edit.diff[:_KEPT]}\n(cut here)\n"
        details = {
            "kind": "file_change",
            "path": path,
            "new": edit.was is None,
            "diff": diff,
            "kept_as": self._turn.name,
        }
        done = "Changed" if edit.was else "Created"
        return f"{done} {path} ({len(edit.data):,} bytes).", details

    def _make(self, edit: Edit) -> None:
        tree, was = self._tree, edit.was
        after = hash_of(edit.data)
        if was is None:
            made = tuple(tree.missing_folders(edit.parts))
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
    old, new = (well_formed(arguments[name]) for name in ("old_text", "new_text"))
    if "\r\n" in text and old not in text:  # models write newlines as they see them
        old, new = (t.replace("\r\n", "\n").replace("\n", "\r\n") for t in (old, new))
    start = _only_place(text, old, was.path)
    if old == new:
        raise ToolError("no_change", "old_text and new_text are the same.", "Nothing was done.")
    end = start + len(old)
    after = text[:start] + new + text[end:]
    data = after.encode()
    _check_size(data)
    return Edit(was.parts, was, data, change_diff(was.path, text, after, start, end))


def _only_place(text: str, old: str, path: str) -> int:
    """Where `old` begins. Raises ToolError unless it is there exactly once."""
    if not old:
        what = "old_text is empty."
        raise ToolError("no_match", what, "Give a part of the file with what shall stand there.")
    start = text.find(old)
    if start < 0:
        raise ToolError("no_match", f"old_text is not in {path}.{_near(text, old)}", _AGAIN)
    if text.find(old, start + 1) >= 0:
        lines, place = list[str](), start
        while place >= 0 and len(lines) < 6:
            lines.append(str(text.count("\n", 0, place) + 1))
            place = text.find(old, place + 1)
        what = f"old_text is in {path} more than once, at lines {', '.join(lines[:5])}"
        what += " and further on." if len(lines) > 5 else "."
        raise ToolError("many_matches", what, "Give more of what stands around the right one.")
    return start


_AGAIN = "Read the file again and copy the part literally, with its blanks."


def _near(text: str, old: str) -> str:
    """Where the first line of what was not found may be meant, as a sentence."""
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    for number, line in enumerate(text.split("\n") if wanted else (), 1):
        if line.strip() == wanted:
            return f" Its first line is like line {number}, but what follows or the blanks differ."
    return ""


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        what = f"The file would have {len(data):,} bytes; {MAX_BYTES:,} is the most."
        raise ToolError("file_too_large", what, "Make it smaller, or several files.")


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return name + to_json(plain(dict(sorted(arguments.items()))))


_EDITS = {"create_file": _creation, "replace_in_file": _replacement}
