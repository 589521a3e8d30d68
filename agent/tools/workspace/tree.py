"""The files of one workspace: reads them whole, writes them atomically, never leaves the folder.

Files with a second name (hard link) do not count: that may be outside.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import NamedTuple
from unicodedata import normalize

from searchloop.agent.errors import ToolError
from searchloop.agent.tools.workspace.folders import (
    FOLDER,
    READ,
    Folder,
    kind_of,
    leftover,
    mark,
    opened,
    refused,
    take_free_place,
    written,
)
from searchloop.agent.tools.workspace.paths import Parts, closed, parts_of
from searchloop.analysis.secret_files import secret

MAX_BYTES = 10_000_000  # of a file that is read or written


class FileContent(NamedTuple):
    """A file as it was read: its bytes and its status."""

    parts: Parts
    data: bytes
    status: os.stat_result

    @property
    def path(self) -> str:
        return "/".join(self.parts)


class Entry(NamedTuple):
    """Something in a folder. `size` in bytes; `secret` when it may not be read."""

    parts: Parts
    kind: str
    size: int
    secret: bool

    @property
    def path(self) -> str:
        return "/".join(self.parts)


class Tree:
    """A workspace folder. Methods block and are safe on any thread; `writing` locks writes."""

    def __init__(self, root: str, folder: type[Folder] = FOLDER) -> None:
        self.root = root
        self._folder = folder
        self.writing = threading.RLock()

    def parts(self, path: str, kind: str = "file") -> Parts:
        """Returns the parts of a path that may be used. Raises ToolError for any other."""
        parts = parts_of(path, self.root)
        if closed(parts):
            what = f"{'/'.join(parts)} belongs to version control or to searchloop."
            raise ToolError("closed_path", what, "File tools stay out of there.")
        if self._secret(parts, kind):
            name = "/".join(parts)
            what = f"{name} has the name of a secret (a key, passwords, settings with keys)."
            remedy = "Go on without it: file tools never read or change such files."
            raise ToolError("secret_file", what, remedy)
        return parts if path.isascii() else self._as_on_disk(parts)

    def _as_on_disk(self, parts: Parts) -> Parts:
        """Spells names as the folders have them: an accent may be a sign of its own."""
        found: Parts = ()
        for name in parts:
            same = [name]
            with suppress(ToolError), self.folder(found) as here:
                plain = normalize("NFC", name)
                same = [each for each in here.names() if normalize("NFC", each) == plain] or same
            found += (name if name in same else same[0],)
        return found

    def _secret(self, parts: Parts, kind: str) -> bool:
        return secret((*parts, "") if kind == "folder" else parts, self.root)

    def folder(self, parts: Sequence[str]) -> AbstractContextManager[Folder]:
        """Opens a folder for a `with` block. Raises ToolError."""
        return opened(self.root, parts, self._folder)

    def read(self, parts: Parts, most: int = MAX_BYTES) -> FileContent:
        """Reads a whole file. Raises ToolError unless it is a regular one up to `most` bytes."""
        if not parts:
            raise ToolError("wrong_kind", "That is the workspace itself, a folder.", "Name a file.")
        with self.folder(parts[:-1]) as here, self.open(here, parts) as descriptor:
            status = os.fstat(descriptor)
            if status.st_size > most:
                raise _too_large("/".join(parts), status.st_size, most)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(most + 1)
        if len(data) > most:
            raise _too_large("/".join(parts), len(data), most)
        return FileContent(parts, data, status)

    @contextmanager
    def open(self, here: Folder, parts: Parts) -> Iterator[int]:
        """Opens a regular file with one name for reading, as a descriptor. Raises ToolError."""
        path, name = "/".join(parts), parts[-1]
        try:
            kind = kind_of(here.stat(name))
            if kind != "file":
                raise refused(path, here, name, OSError(), "file")
            descriptor = here.open(name, READ)
        except OSError as error:
            raise refused(path, here, name, error, "file") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):  # swapped since it was looked at
                raise refused(path, here, name, OSError(), "file")
            if status.st_nlink > 1 and not leftover(here, status):
                what = f"{path} has a second name elsewhere (a hard link), perhaps outside."
                raise ToolError("linked_file", what, "The user can copy it to make it one file.")
            yield descriptor
        finally:
            os.close(descriptor)

    def entries(self, parts: Parts) -> list[Entry]:
        """Lists a folder, sorted, without closed entries. Raises ToolError."""
        found = []
        with self.folder(parts) as here:
            for name in here.names():
                at = (*parts, name)
                if closed((name,)):
                    continue
                with suppress(OSError):  # gone meanwhile
                    status = here.stat(name)
                    kind = kind_of(status)
                    found.append(Entry(at, kind, status.st_size, self._secret(at, kind)))
        return found

    def exists(self, parts: Parts) -> bool:
        """Returns whether something has this name. Raises ToolError for a link on the way."""
        try:
            with self.folder(parts[:-1]) as here:
                here.stat(parts[-1])
        except ToolError as error:
            if error.code != "no_such_file":
                raise
            return False
        except OSError:
            return False
        return True

    def create(self, parts: Parts, data: bytes) -> None:
        """Makes a new file and the folders above it that are missing. Raises ToolError."""
        made = self._make_folders(parts[:-1])
        try:
            with self.folder(parts[:-1]) as here, system_errors(parts):
                temporary = written(here, data, 0o666)
                try:
                    take_free_place(here, temporary, "/".join(parts))
                finally:
                    with suppress(FileNotFoundError):
                        here.unlink(temporary)
                here.sync()
        except ToolError:
            for folder in reversed(made):
                self.remove_folder(folder)
            raise

    def replace(self, was: FileContent, data: bytes, mode: int | None = None) -> None:
        """Replaces the file that was read. Raises ToolError when it is another one by now."""
        name = was.parts[-1]
        with self.folder(was.parts[:-1]) as here, system_errors(was.parts):
            kept = stat.S_IMODE(was.status.st_mode) if mode is None else mode
            temporary = written(here, data, kept & 0o777, was.status)
            try:
                if mark(here.stat(name)) != mark(was.status):
                    raise changed_since(was.path)
                here.rename(temporary, name)
            except BaseException:
                with suppress(FileNotFoundError):
                    here.unlink(temporary)
                raise
            here.sync()

    def remove(self, was: FileContent) -> None:
        """Removes the file that was read. Raises ToolError when it is another one by now."""
        with self.folder(was.parts[:-1]) as here, system_errors(was.parts):
            if mark(here.stat(was.parts[-1])) != mark(was.status):
                raise changed_since(was.path)
            here.unlink(was.parts[-1])
            here.sync()

    def remove_folder(self, parts: Parts) -> None:
        """Removes a folder if it is empty."""
        with suppress(ToolError, OSError), self.folder(parts[:-1]) as here:
            here.rmdir(parts[-1])

    def _make_folders(self, parts: Parts) -> list[Parts]:
        made = []
        for n in range(1, len(parts) + 1):
            with (
                self.folder(parts[: n - 1]) as here,
                system_errors(parts[:n]),
                suppress(FileExistsError),
            ):
                here.mkdir(parts[n - 1])
                made.append(parts[:n])
        return made


@contextmanager
def system_errors(parts: Parts) -> Iterator[None]:
    """Turns an OSError of a write into a ToolError."""
    try:
        yield
    except OSError as error:
        what = f"{'/'.join(parts)} could not be written: {error.strerror or error}."
        raise ToolError("not_written", what, "Nothing was changed.") from error


def changed_since(path: str) -> ToolError:
    """Returns the error for a file that has changed since it was read."""
    return ToolError("file_changed", f"{path} was changed meanwhile.", "Read it again first.")


def _too_large(path: str, size: int, most: int) -> ToolError:
    what = f"{path} is too large: {size:,} bytes, where {most:,} is the most."
    return ToolError("file_too_large", what, "search_files finds lines in it.")
