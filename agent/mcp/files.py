"""Small JSON files in SEARCHLOOP_HOME: readable by the user alone, replaced whole or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import StoreError
from agent.private_file import replace_private

T = TypeVar("T")
_LOCK = threading.Lock()


def read_object(path: Path) -> dict[str, Any]:
    """The object in the file; an empty one when there is no file. Raises StoreError."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(
            "bad_file", f"{path} cannot be read: {error}.", "Correct it, or move it away."
        ) from error
    if not isinstance(value, dict):
        raise StoreError("bad_file", f"{path} holds no object.", "Correct it, or move it away.")
    return value


def change_object(path: Path, change: Callable[[dict[str, Any]], T]) -> T:
    """Reads, changes in place and writes; what `change` returns. Raises StoreError."""
    with _LOCK:
        value = read_object(path)
        result = change(value)
        write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        return result


def write_text(path: Path, text: str) -> None:
    """Replaces the file in one step; mode 0600. A link stays one. Raises StoreError."""
    path = path.resolve()
    try:
        replace_private(path, text)
    except OSError as error:
        words = f"{path} cannot be written: {error.strerror or error}."
        raise StoreError(
            "store_failed", words, "Check the disk and the folder's rights."
        ) from error
