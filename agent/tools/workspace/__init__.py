"""File tools for a folder that the user named: read, search, change and undo.

Others may import: paths.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.session import Session
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Tool, ToolContext, ToolFunction, ToolSource
from searchloop.agent.tools.workspace.reading import (
    LIST_DIRECTORY,
    READ_FILE,
    SEARCH_FILES,
    list_directory,
    read_file,
    search_files,
)
from searchloop.agent.tools.workspace.tree import Tree
from searchloop.agent.tools.workspace.writing import (
    CREATE_FILE,
    REPLACE_IN_FILE,
    Journal,
    Writer,
    forget,
    undo,
)
from searchloop.agent.types import ToolResult, ToolSpec
from searchloop.analysis.secret_files import holds_keys

T = TypeVar("T")
Reply = tuple[str, dict[str, Any]]

_BLOCKING = ThreadPoolExecutor(8, thread_name_prefix="files")
_WORDS = {
    "read_file": (
        "Read a text file of the workspace, some lines at a time. Long files come in parts: go on "
        "with line. Line ends are shown as newlines."
    ),
    "list_directory": "List a folder of the workspace: names, kinds and sizes.",
    "search_files": (
        "Find text in the files of the workspace, or files by name. Give text, glob or both; "
        "answers are path:line: text."
    ),
    "create_file": (
        "Make a new file in the workspace, with the folders above it. Never overwrites; change a "
        "file that is there with replace_in_file."
    ),
    "replace_in_file": (
        "Change a part of a text file: old_text, which must be there exactly once, becomes "
        "new_text. Read the file first."
    ),
}


class Workspace(ToolSource):
    """The file tools of sessions that have a workspace; `home` holds the undo journal.

    >>> Agent(settings, bring=[Workspace.of(settings)])
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._trees: dict[str, Tree] = {}

    @classmethod
    def of(cls, settings: Settings) -> Workspace:
        """Makes one from the settings."""
        return cls(settings.home)

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Returns the tools of one turn; all that it changes is undone together."""
        if not session.workspace:
            return ()
        tree = self._trees.setdefault(session.workspace, Tree(session.workspace))
        writer = Writer(tree, Journal(self._home, session.id))
        return (
            _reading("read_file", READ_FILE, partial(read_file, tree)),
            _reading("list_directory", LIST_DIRECTORY, partial(list_directory, tree)),
            _reading("search_files", SEARCH_FILES, partial(search_files, tree)),
            _writing("create_file", CREATE_FILE, writer),
            _writing("replace_in_file", REPLACE_IN_FILE, writer),
        )

    def undo(self, session_id: str, but_for: Container[str] = ()) -> list[str]:
        """Undoes the last turn that changed files; returns their paths. See `writing.undo`."""
        return undo(self._home, session_id, but_for)

    def forget(self, session_id: str) -> None:
        """Deletes the undo journal of a session."""
        forget(self._home, session_id)


def _reading(name: str, schema: Mapping[str, Any], read: Callable[..., Reply]) -> Tool:
    spec = ToolSpec(name, _WORDS[name], schema, "read")
    return Tool(spec, _run(name, read), seconds=30.0, origin="ours", private=True)


def _writing(name: str, schema: Mapping[str, Any], writer: Writer) -> Tool:
    async def preview(arguments: Mapping[str, Any]) -> str:
        return await _on_thread(writer.show, name, arguments)

    spec = ToolSpec(name, _WORDS[name], schema, "write")
    run = _run(name, partial(writer.do, name))
    return Tool(spec, run, seconds=30.0, origin="ours", preview=preview)


def _run(name: str, work: Callable[[Mapping[str, Any]], Reply]) -> ToolFunction:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        text, details = await _on_thread(work, arguments)
        return ToolResult(context.call_id, name, text, details=details)

    return run


async def _on_thread(work: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_BLOCKING, work, *arguments)


def checked_folder(name: str, home: Path, within: Path | None = None) -> str:
    """Returns the real path of a possible workspace, which does not hold `home`, or ConfigError.

    With `within` it is that folder or one below it.
    """
    path = Path(name).expanduser() if "\0" not in name else Path()
    if not path.is_absolute() or not path.is_dir():
        what = f"{name[:200]!r} is not a folder."
        raise ConfigError("bad_workspace", what, "Give the full path of a folder.")
    folder, own = Path(os.path.realpath(path)), Path(os.path.realpath(home))
    user = Path(os.path.realpath(Path.home()))
    why = ""
    if within and not is_below(folder, within):
        why = f"your folders are those in {within}"
    elif folder == user or folder in user.parents:
        why = "it holds everything you have"
    elif own == folder or folder in own.parents or own in folder.parents:
        why = "searchloop keeps its own data there"
    elif holds_keys(str(folder)):
        why = "programs keep keys there"
    elif is_system(folder):
        why = "it belongs to the system"
    if why:
        what = f"{folder} cannot be a workspace: {why}."
        raise ConfigError("bad_workspace", what, "Name the folder of one project.")
    return str(folder)


def is_below(path: Path, folder: Path) -> bool:
    """Returns True for `folder` and what really lies in it, links resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


_MEMORY = Path("/dev/shm")  # what is in it is its users', not the system's
_SYSTEM = {
    *map(Path, ("/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr")),
    *map(Path, ("/System", "/Library", "C:\\Windows", "C:\\Program Files", "C:\\ProgramData")),
}


def is_system(folder: Path) -> bool:
    """Returns True for a folder of the system and what lies in it."""
    return _MEMORY not in folder.parents and bool(_SYSTEM & {folder, *folder.parents})
