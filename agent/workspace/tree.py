"""The files of one workspace: read whole, written atomically, never outside.

A write makes a new file beside the old one, brings it to the disk and then takes its place: whoever
is killed in between leaves the old file or the new one. Only regular files with one name are used:
a second name (hard link) may belong to a file outside.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from agent.errors import ToolError
from agent.workspace.atomic import leftover, mark, take_free_place, written
from agent.workspace.folders import FOLDER, READ, Folder, kind_of, opened, refused
from agent.workspace.names import Parts, closed, parts_of, secret

MAX_BYTES = 10_000_000  # of a file that is read or written
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was read: its bytes and what it was then."""

    parts: Parts
    data: bytes
    status: os.stat_result

    @property
    def path(self) -> str:
        """As the model writes it."""
        return "/".join(self.parts)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder. `size` in bytes; `secret` when it may not be read."""

    parts: Parts
    kind: str
    size: int
    secret: bool

    @property
    def path(self) -> str:
        """As the model writes it."""
        return "/".join(self.parts)


class Tree:
    """A workspace folder. Every method blocks; all of them may be called from any thread."""

    def __init__(
        self, root: str, allowed: Sequence[str] = (), folder: type[Folder] = FOLDER
    ) -> None:
        self.root = root
        self._allowed = tuple(allowed)
        self._folder = folder
        self._writing = threading.RLock()

    def parts(self, path: str) -> Parts:
        """The parts of a path that may be used. Raises ToolError for any other."""
        parts = parts_of(path, self.root)
        if closed(parts):
            what = f"{'/'.join(parts)} belongs to version control or to searchloop."
            raise ToolError("closed_path", what, "File tools stay out of there.")
        if secret(parts, self._allowed):
            raise ToolError(
                "secret_file",
                f"{'/'.join(parts)} has the name of a secret (a key, a password, an environment).",
                "Go on without it. Only the user can allow it, with SEARCHLOOP_SECRET_FILES.",
            )
        return parts

    def is_secret(self, parts: Sequence[str]) -> bool:
        """Whether this is refused for its name."""
        return secret(parts, self._allowed)

    @contextmanager
    def folder(self, parts: Sequence[str]) -> Iterator[Folder]:
        """The opened folder. Raises ToolError."""
        with opened(self.root, parts, self._folder) as here:
            yield here

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else of this process writes meanwhile."""
        with self._writing:
            yield

    def read(self, parts: Parts, most: int = MAX_BYTES) -> Found:
        """The whole file. Raises ToolError for anything but a regular file up to `most` bytes."""
        if not parts:
            raise ToolError("wrong_kind", "That is the workspace itself, a folder.", "Name a file.")
        with self.folder(parts[:-1]) as here, self.open(here, parts) as descriptor:
            status = os.fstat(descriptor)
            if status.st_size > most:
                raise _too_large("/".join(parts), status.st_size, most)
            data = _all_of(descriptor, most + 1)
        if len(data) > most:
            raise _too_large("/".join(parts), len(data), most)
        return Found(parts, data, status)

    @contextmanager
    def open(self, here: Folder, parts: Parts) -> Iterator[int]:
        """A regular file with one name, as a file descriptor to read from. Raises ToolError."""
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
        """What is in a folder, sorted, but for what is closed. Raises ToolError."""
        found = []
        inside = secret(parts)
        with self.folder(parts) as here:
            for name in here.names():
                at = (*parts, name)
                if closed((name,)):
                    continue
                hidden = (inside or secret((name,))) and self.is_secret(at)
                with suppress(OSError):  # gone meanwhile
                    status = here.stat(name)
                    found.append(Entry(at, kind_of(status), status.st_size, hidden))
        return found

    def exists(self, parts: Parts) -> bool:
        """Whether there is anything of this name. Raises ToolError where a link is on the way."""
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

    def missing_folders(self, parts: Parts) -> list[Parts]:
        """The folders above a file that are not there, the upper first."""
        above = [parts[:n] for n in range(1, len(parts))]
        return [folder for folder in above if not self.exists(folder)]

    def create(self, parts: Parts, data: bytes) -> None:
        """A new file, and the folders above it that are missing. Raises ToolError."""
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

    def replace(self, was: Found, data: bytes, mode: int | None = None) -> None:
        """New content for the file that was read; refused when it is another by now."""
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

    def remove(self, was: Found) -> None:
        """Takes the file that was read away; refused when it is another by now."""
        with self.folder(was.parts[:-1]) as here, system_errors(was.parts):
            if mark(here.stat(was.parts[-1])) != mark(was.status):
                raise changed_since(was.path)
            here.unlink(was.parts[-1])
            here.sync()

    def remove_folder(self, parts: Parts) -> None:
        """Takes an empty folder away; one that is not empty stays."""
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
    """What the system says against a write, as ToolError."""
    try:
        yield
    except OSError as error:
        what = f"{'/'.join(parts)} could not be written: {error.strerror or error}."
        raise ToolError("not_written", what, "Nothing was changed.") from error


def changed_since(path: str) -> ToolError:
    """A file is not what it was when it was read."""
    return ToolError("file_changed", f"{path} was changed meanwhile.", "Read it again first.")


def _too_large(path: str, size: int, most: int) -> ToolError:
    return ToolError(
        "file_too_large",
        f"{path} is too large: {size:,} bytes, where {most:,} is the most.",
        "search_files finds lines in it.",
    )


def _all_of(descriptor: int, most: int) -> bytes:
    pieces, left = [], most
    while left > 0 and (piece := os.read(descriptor, min(left, _CHUNK))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
