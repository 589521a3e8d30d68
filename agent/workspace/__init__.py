"""Files of a folder that the user named: read, searched, changed, and changed back.

A session without a workspace has no file tools. Where a name leads is decided by `names` (words
only) and `folders` (steps on the disk); what was there before a turn is kept by `journal`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.session import Session
from agent.settings import Settings
from agent.tools import Preview, Run, ServerState, Tool, ToolContext
from agent.types import Effect, ToolResult, ToolSpec
from agent.workspace import journal
from agent.workspace.reading import (
    LIST_DIRECTORY,
    READ_FILE,
    SEARCH_FILES,
    list_directory,
    read_file,
    search_files,
)
from agent.workspace.tree import Tree
from agent.workspace.writing import CREATE_FILE, REPLACE_IN_FILE, Writer

Answer = tuple[str, dict[str, Any]]

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


class Workspace:
    """The file tools of sessions that have a workspace.

    `home` is where previous contents are kept; `allowed` are patterns of files that may be read
    though they bear the name of a secret.
    """

    def __init__(self, home: Path, allowed: Sequence[str] = ()) -> None:
        self._home = home
        self._allowed = tuple(allowed)
        self._trees: dict[str, Tree] = {}

    @classmethod
    def of(cls, settings: Settings) -> Workspace:
        """As the settings say."""
        names = settings.env.get("SEARCHLOOP_SECRET_FILES", "").split(",")
        return cls(settings.home, [name.strip() for name in names if name.strip()])

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Those of one turn; what it changes can be undone together."""
        if not session.workspace:
            return ()
        tree = self._trees.setdefault(session.workspace, Tree(session.workspace, self._allowed))
        writer = Writer(tree, journal.Turn(self._home, session.id))
        return (
            _reading("read_file", READ_FILE, lambda given: read_file(tree, given)),
            _reading("list_directory", LIST_DIRECTORY, lambda given: list_directory(tree, given)),
            _reading("search_files", SEARCH_FILES, lambda given: search_files(tree, given)),
            _writing("create_file", CREATE_FILE, writer),
            _writing("replace_in_file", REPLACE_IN_FILE, writer),
        )

    def servers(self, session: Session) -> Mapping[str, ServerState]:
        """None."""
        return {}

    def notices(self, session: Session) -> Sequence[Mapping[str, str]]:
        """None."""
        return ()

    def secrets(self, workspace: str | None) -> Mapping[str, str]:
        """None."""
        return {}

    async def aclose(self) -> None:
        """Nothing was started."""

    def undo(self, session_id: str, but_for: Container[str] = ()) -> list[str]:
        """Takes back what the last turn with changes did; the paths. See `journal.undo`."""
        return journal.undo(self._home, session_id, self._allowed, but_for)

    def forget(self, session_id: str) -> None:
        """Removes what is kept of a session that is deleted."""
        journal.forget(self._home, session_id)


def _reading(name: str, schema: Mapping[str, Any], read: Callable[..., Answer]) -> Tool:
    spec = ToolSpec(name, _WORDS[name], schema, "read")
    return Tool(spec, _run(name, read), seconds=30.0, origin="ours", private=True)


def _writing(name: str, schema: Mapping[str, Any], writer: Writer) -> Tool:
    effect: Effect = "write"
    spec = ToolSpec(name, _WORDS[name], schema, effect)

    async def preview(arguments: Mapping[str, Any]) -> str:
        return str(await _on_thread(lambda: writer.show(name, arguments)))

    shown: Preview = preview
    run = _run(name, lambda arguments: writer.do(name, arguments))
    return Tool(spec, run, seconds=30.0, origin="ours", preview=shown)


def _run(name: str, work: Callable[[Mapping[str, Any]], Answer]) -> Run:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        text, details = await _on_thread(lambda: work(arguments))
        return ToolResult(context.call_id, name, text, details=details)

    return run


async def _on_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_BLOCKING, work)


def checked_folder(name: str, home: Path) -> str:
    """The real path of a folder that can be a workspace. Raises ConfigError for any other.

    `home` is where searchloop keeps its own data, which no workspace may hold.
    """
    path = Path(name).expanduser() if "\0" not in name else Path()
    if not path.is_absolute() or not path.is_dir():
        what = f"{name[:200]!r} is not a folder."
        raise ConfigError("bad_workspace", what, "Give the full path of a folder.")
    folder, own = Path(os.path.realpath(path)), Path(os.path.realpath(home))
    user = Path(os.path.realpath(Path.home()))
    why = ""
    if folder == user or folder in user.parents:
        why = "it holds everything you have"
    elif own == folder or folder in own.parents or own in folder.parents:
        why = "searchloop keeps its own data there"
    elif _MEMORY not in folder.parents and any(
        folder == each or each in folder.parents for each in _SYSTEM
    ):
        why = "it belongs to the system"
    if why:
        what = f"{folder} cannot be a workspace: {why}."
        raise ConfigError("bad_workspace", what, "Name the folder of one project.")
    return str(folder)


_MEMORY = Path("/dev/shm")  # what is in it is its users', not the system's
_SYSTEM = tuple(
    map(
        Path,
        (
            *("/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr"),
            *("/System", "/Library", "C:\\Windows", "C:\\Program Files", "C:\\ProgramData"),
        ),
    )
)
