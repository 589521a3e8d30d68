"""Changes settings in config.toml, and no other line of it; notices changes by other processes."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import LOWEST
from searchloop.agent.settings.keys import FILE
from searchloop.agent.settings.private_files import write_private

_LOCK = threading.Lock()
_TABLE = re.compile(r"\s*\[")


def change_config(path: Path, changes: Mapping[str, str | None]) -> None:
    """Sets settings in the file; None removes one. Raises ConfigError, StoreError."""
    with _LOCK:
        try:
            old = path.read_text("utf-8-sig")
        except FileNotFoundError:
            old = ""
        except (OSError, UnicodeDecodeError) as error:
            raise _refused(path, str(error)) from error
        new = _changed(old, changes)
        try:
            before, after = tomllib.loads(old), tomllib.loads(new)
        except tomllib.TOMLDecodeError as error:
            raise _refused(path, str(error)) from error
        kept = {name: value for name, value in before.items() if name not in changes}
        wanted = kept | {name: value for name, value in changes.items() if value is not None}
        if after != wanted:
            raise _refused(path, "a setting in it cannot be changed by a program")
        write_private(path, new)


def _changed(old: str, changes: Mapping[str, str | None]) -> str:
    lines = old.splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    head, tables = lines[:end], lines[end:]
    for name, value in changes.items():
        own = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=")
        places = [i for i, line in enumerate(head) if own.match(line)]
        # JSON's way to write text is TOML's, but for one character.
        quoted = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        written = [] if value is None else [f"{name} = {quoted}\n"]
        if places:
            head[places[0] : places[0] + 1] = written
        elif written:
            if head and not head[-1].endswith("\n"):
                head[-1] += "\n"
            head += written
    return "".join([*head, *tables])


def _refused(path: Path, why: str) -> ConfigError:
    what = f"{path} cannot be changed: {why}."
    return ConfigError("bad_config", what, "Correct it by hand, then try again.")


_State = tuple[tuple[int, int, int] | None, ...]


class SavedFiles:
    """keys.json and config.toml of `home`. A look at both costs some microseconds."""

    def __init__(self, home: Path) -> None:
        self._paths = (home / FILE, home / LOWEST)
        self._seen = self._state()

    def changed(self) -> bool:
        """Returns whether one of them has changed since the last call."""
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
