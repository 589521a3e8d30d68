"""The line that is typed in a chat: Tab completes, the arrows bring back what was typed before.

What was typed is kept in SEARCHLOOP_HOME, for the user alone. A temporary chat leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchloop.agent.errors import StoreError
from searchloop.agent.settings.private_files import write_private

HISTORY = "chat-history"
_MOST = 1000  # lines
_LONGEST = 2000  # characters of a line that is kept

Choices = Mapping[str, Callable[[], Iterable[str]]]


class LineEditor:
    """Reads lines from a person. `choices` returns, by command, what may follow it.

    `readline` is the module of that name; some systems have none, or one of another maker.
    """

    def __init__(self, home: Path | None, choices: Choices, readline: Any = None) -> None:
        self._file = home and home / HISTORY  # None: nothing is kept
        self._choices = choices
        self._known: dict[str, list[str]] = {}
        self._readline = readline
        self._lines: list[str] = []

    def open(self) -> None:
        """Loads what was typed before, and binds Tab."""
        if self._readline is None:
            with suppress(ImportError):
                import readline

                self._readline = readline
        if self._file:
            with suppress(OSError, UnicodeDecodeError):
                self._lines = self._file.read_text("utf-8").splitlines()[-_MOST:]
        if editor := self._readline:
            editor.set_auto_history(False)  # answers to other questions are no lines of the chat
            for line in self._lines:
                editor.add_history(line)
            editor.set_completer_delims(" \n")
            editor.set_completer(self._complete)
            apple = "libedit" in (editor.__doc__ or "")
            editor.parse_and_bind("bind ^I rl_complete" if apple else "tab: complete")
            if not apple:  # Alt+Enter types what continues a line: a backslash and Enter
                editor.parse_and_bind(r'"\e\C-m": "\\\C-m"')

    def add(self, line: str) -> None:
        """Remembers a line, and keeps it for the next start."""
        line = " ".join(line.split())
        if not line or len(line) > _LONGEST or line in self._lines[-1:]:
            return
        self._lines = [*self._lines, line][-_MOST:]
        if self._readline:
            self._readline.add_history(line)
        if self._file:
            with suppress(StoreError):  # a chat goes on without its history
                write_private(self._file, "".join(f"{each}\n" for each in self._lines))

    def completions(self, line: str) -> list[str]:
        """Returns what the last word of the line may become; none outside of commands."""
        if not line.startswith("/") or line.startswith("//"):
            return []
        command, blank, rest = line[1:].partition(" ")
        if not blank:
            return sorted(f"/{name} " for name in self._choices if name.startswith(command))
        word = rest.rpartition(" ")[2]
        if command not in self._known and command in self._choices:
            self._known[command] = list(self._choices[command]())
        offered = self._known.get(command, [])
        if offered == [PATHS]:
            return paths(word)
        return sorted(each for each in offered if each.startswith(word))

    def _complete(self, word: str, number: int) -> str | None:
        line = self._readline.get_line_buffer()[: self._readline.get_endidx()]
        found = self.completions(line)
        return found[number] if number < len(found) else None


PATHS = "\0paths"  # stands for the files that there are


def paths(word: str) -> list[str]:
    """Returns the files and folders that a word may become, folders with their separator."""
    folder, name = os.path.split(word)
    found = list[str]()
    with suppress(OSError):
        for entry in os.scandir(os.path.expanduser(folder) or "."):
            if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
                end = os.sep if entry.is_dir() else ""
                found.append(os.path.join(folder, entry.name) + end)
    return sorted(found)
