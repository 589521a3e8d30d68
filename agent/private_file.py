"""A file of the user's data folder, written whole or not at all, for its owner only."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from agent.errors import StoreError


def replace_private(path: Path, text: str) -> None:
    """The file in one step, old or new, mode 0600; its folder is made. Raises OSError.

    A power cut leaves one of the two as well, and the new one once this returns.
    """
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
    """The names in a folder are on the disk; Windows and some file systems have no such call."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """The same, with the remedy for settings. Raises StoreError."""
    try:
        replace_private(path, text)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        code = "disk_full" if full else "read_only"
        remedy = "Free some space, then try again." if full else "Make its folder writable."
        raise StoreError(code, f"{path} cannot be written: {error}.", remedy) from error
