"""Files that only their user may read: written whole or not at all, and durably.

JSON files in SEARCHLOOP_HOME are read here, with one sentence for what is wrong with them.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError, StoreError

_NOT_YOURS = "It belongs to another user: make it readable for you, or set SEARCHLOOP_HOME."


def replace_private(path: Path, text: str) -> None:
    """Writes the file atomically and durably, mode 0600; makes its folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flushes a folder's names to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """Writes the file as `replace_private` does. Raises StoreError, with a remedy."""
    try:
        replace_private(path, text)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        code = "disk_full" if full else "read_only"
        remedy = "Free some space, then try again." if full else "Make its folder writable."
        raise StoreError(code, f"{path} cannot be written: {error}.", remedy) from error


def remedy_for(error: Exception | str, otherwise: str) -> str:
    """Returns what to do about a file that cannot be read, `otherwise` if it is a broken one."""
    return _NOT_YOURS if isinstance(error, PermissionError) else otherwise


def read_object(path: Path, code: str, what: str) -> dict[str, Any] | None:
    """Returns the JSON object in a file, None if there is no file.

    Raises ConfigError(`code`), whose message calls the file `what`.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
        if not isinstance(value, dict):
            raise ValueError("it is not an object")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        remedy = remedy_for(error, f"Correct {path}, or remove it.")
        raise ConfigError(code, f"{what} cannot be read: {error}.", remedy) from error
    return value


def write_object(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a file for `read_object`. Raises StoreError."""
    write_private(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
