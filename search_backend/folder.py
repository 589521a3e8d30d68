"""Walk a folder for files that can be read as text, and say why the others are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from search_backend.errors import SearchBackendError
from search_backend.readers import Reader, read, reader_for_name
from search_backend.types import Page

MOST_BYTES = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the folder: either it can be read, or `skipped` says why not."""

    path: str
    file: Path
    skipped: str = ""


def walk(root: Path) -> Iterator[Found]:
    """Every file below `root` (or `root` itself) by name, without following links."""
    if root.is_file():
        yield Found(root.name, root, _reason(root, named=True))
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            yield Found(file.relative_to(root).as_posix(), file, _reason(file))


def load(found: Found, body: bytes) -> Page:
    """The file as text. Raises SearchBackendError(code "unreadable") with the reason."""
    if b"\0" in body[:8192] and not body.startswith(b"%PDF-"):
        raise SearchBackendError("unreadable", "a binary file")
    reader: Reader | None = reader_for_name(found.file.name)
    content_type = sorted(reader.types)[0] if reader else "text/plain"
    page = read(body, url=found.file.as_uri(), content_type=content_type)
    if page.error is not None and page.status == "error":
        raise SearchBackendError("unreadable", page.error.message, page.error.remedy)
    if not page.text.strip():
        raise SearchBackendError("unreadable", "no text in it")
    return page


def _reason(file: Path, *, named: bool = False) -> str:
    if file.is_symlink() and not named:
        return "a symbolic link"
    if file.name.startswith(".") and not named:
        return "a hidden file"
    if not named and reader_for_name(file.name) is None:
        return "not a kind of file that is read"
    try:
        size = file.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"larger than {MOST_BYTES // 2**20} MB" if size > MOST_BYTES else ""
