"""A file of the user's data folder, written whole or not at all, for its owner only."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agent.errors import StoreError


def replace_private(path: Path, text: str) -> None:
    """The file in one step, old or new, mode 0600; its folder is made. Raises OSError."""
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


def write_private(path: Path, text: str) -> None:
    """The same, with the remedy for settings. Raises StoreError."""
    try:
        replace_private(path, text)
    except OSError as error:
        raise StoreError(
            "read_only", f"{path} cannot be written: {error}.", "Make its folder writable."
        ) from error
