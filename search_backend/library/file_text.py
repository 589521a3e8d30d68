"""One file of a folder: whether it is read at all, and its text.

Names decide first (pictures, secrets), then the bytes: what is no binary data is text, whatever its
suffix. Large files and archives are read in a worker process.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from searchloop.analysis.secret_files import secret
from searchloop.search_backend import readers
from searchloop.search_backend.readers import (
    brought_readers,
    container_of,
    find_readers,
    kind_of,
    reader_for_name,
)
from searchloop.search_backend.text.clean import binary_share
from searchloop.search_backend.types import Page, SearchBackendError

MOST_BYTES = 10 * 2**20
HIDDEN, LINK = "a hidden file", "a symbolic link"
NOT_READ = "not a kind of file that is read"
MAY_COME_BACK = ("cannot be read", "larger than")  # the old text of such a file stays
_OTHER_COPY = "Save it as text or without a password."
SECRET = "holds keys or passwords"
_MEDIA = ("image/", "audio/", "video/", "font/")
# Programs and archives, of which some would pass for text in their first bytes.
_OTHER = frozenset(
    (
        *(".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".iso", ".dmg"),
        *(".exe", ".dll", ".so", ".o", ".a", ".class", ".pyc", ".wasm", ".bin", ".lock"),
        *(".db", ".sqlite", ".sqlite3", ".map", ".svg", ".ps", ".eps"),
    )
)
_PROGRAMS = frozenset((".ts", ".mts", ".cts"))  # which servers and `mimetypes` take for films
_SECRET_TEXT = re.compile(rb"\A[\s\xef\xbb\xbf]*-----BEGIN [A-Z ]*PRIVATE KEY")

ReadPage = Callable[..., Page]


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a folder; `skipped` is the reason if it is not read.

    `path` is relative to the folder, `mtime` in nanoseconds; `folder` marks a whole folder.
    """

    path: str
    file: Path
    skipped: str = ""
    mtime: int = 0
    size: int = 0
    inode: int = 0
    folder: bool = False


def found_file(path: str, file: Path, stat: os.stat_result, *, named: bool = False) -> Found:
    """Judges a file by name and size; one that the user `named` may be hidden or of any kind."""
    why = "" if named else _hindrance(file.name)
    if not why and secret((file.name,)):
        why = SECRET
    if not why and stat.st_size > MOST_BYTES:
        why = f"larger than {MOST_BYTES // 2**20} MB"
    return Found(path, file, why, stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _hindrance(name: str) -> str:
    if name.startswith("."):
        return HIDDEN
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _PROGRAMS or reader_for_name(name):
        return ""
    kind = mimetypes.guess_type(name)[0] or ""
    return NOT_READ if suffix in _OTHER or kind.startswith(_MEDIA) else ""


def load(found: Found, body: bytes, read: ReadPage) -> Page:
    """Returns the file as text. Raises SearchBackendError(code "unreadable")."""
    if _SECRET_TEXT.match(body[:200]):
        raise SearchBackendError("unreadable", SECRET)
    reader = reader_for_name(found.file.name)
    content_type = min(reader.types) if reader else "text/plain"
    if not any(one.knows for one in brought_readers()):  # their code runs in a worker alone
        known = any(one.knows(body) for one in find_readers() if one.knows)
        what, told = container_of(body) or "a binary file", reader is not None and reader.knows
        if not known and (not told or "a password" in what) and binary_share(body[:8192]):
            raise SearchBackendError("unreadable", what, _OTHER_COPY)
        if kind_of(body, content_type) == "text/plain":
            read = readers.read  # in linear time: no work for another process
    page = read(body, url=found.file.absolute().as_uri(), content_type=content_type)
    if page.error is not None and page.status != "ok":
        raise SearchBackendError("unreadable", page.error.message, page.error.remedy)
    if not page.text.strip():
        raise SearchBackendError("unreadable", "no text in it")
    return page
