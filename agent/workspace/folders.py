"""Opened folders: every step from the workspace to a file is taken by hand and follows no link.

On POSIX a folder is a file descriptor, and the next step is taken relative to it: whoever swaps a
folder for a link meanwhile changes nothing for us. Where the system has no such calls (Windows), a
folder is its path, checked before and after each step; that leaves a gap which only another program
of the same user could use.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, Self

from agent.errors import ToolError

_BINARY = getattr(os, "O_BINARY", 0)
_QUIET = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us waiting
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
READ = os.O_RDONLY | _QUIET | _BINARY
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _QUIET | _BINARY
_REPARSE = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: a link or junction of Windows
_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
)


def kind_of(status: os.stat_result) -> str:
    """file, folder, link, pipe, socket or device."""
    if getattr(status, "st_file_attributes", 0) & _REPARSE:
        return "link"
    return next((kind for test, kind in _KINDS if test(status.st_mode)), "device")


class Folder(Protocol):
    """An open folder; names are single names inside it. Errors are OSError."""

    def enter(self, name: str) -> Self:
        """The folder of this name; a link is no folder."""

    def names(self) -> list[str]:
        """What is in it, sorted."""

    def stat(self, name: str) -> os.stat_result:
        """Of the thing itself, not of what a link leads to."""

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A file descriptor; a link is not followed."""

    def rename(self, old: str, new: str) -> None:
        """Takes the place of what is there."""

    def link(self, old: str, new: str) -> None:
        """Gives a file a second name; FileExistsError when that is taken."""

    def unlink(self, name: str) -> None:
        """Removes a file."""

    def mkdir(self, name: str) -> None:
        """Makes a folder."""

    def rmdir(self, name: str) -> None:
        """Removes an empty folder."""

    def sync(self) -> None:
        """Renames and removals are on the disk when this returns."""

    def close(self) -> None:
        """Ends it."""


class DescriptorFolder:
    """A folder as a file descriptor (POSIX)."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor

    @classmethod
    def at(cls, path: str) -> Self:
        """The folder at a path that the user named."""
        return cls(os.open(path, READ | os.O_DIRECTORY))

    def enter(self, name: str) -> Self:
        """See Folder."""
        return type(self)(os.open(name, READ | os.O_DIRECTORY, dir_fd=self._fd))

    def names(self) -> list[str]:
        """See Folder."""
        return sorted(os.listdir(self._fd))

    def stat(self, name: str) -> os.stat_result:
        """See Folder."""
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """See Folder."""
        return os.open(name, flags, mode, dir_fd=self._fd)

    def rename(self, old: str, new: str) -> None:
        """See Folder."""
        os.replace(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def link(self, old: str, new: str) -> None:
        """See Folder."""
        os.link(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        """See Folder."""
        os.unlink(name, dir_fd=self._fd)

    def mkdir(self, name: str) -> None:
        """See Folder."""
        os.mkdir(name, dir_fd=self._fd)

    def rmdir(self, name: str) -> None:
        """See Folder."""
        os.rmdir(name, dir_fd=self._fd)

    def sync(self) -> None:
        """See Folder."""
        with suppress(OSError):  # some file systems know no such thing
            os.fsync(self._fd)

    def close(self) -> None:
        """See Folder."""
        os.close(self._fd)


class PathFolder:
    """A folder as a path that is checked at each step, where there are no descriptors to go by."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._id = self._checked()

    @classmethod
    def at(cls, path: str) -> Self:
        """The folder at a path that the user named."""
        return cls(Path(os.path.realpath(path)))

    def _checked(self) -> tuple[int, int]:
        """Which folder it is; OSError when the path leads elsewhere by now."""
        status = os.lstat(self._path)
        real = os.path.realpath(self._path)
        if kind_of(status) != "folder" or not _same(real, str(self._path)):
            raise NotADirectoryError(f"{self._path} is no folder of its own")
        return status.st_dev, status.st_ino

    def _at(self, name: str) -> Path:
        if self._checked() != self._id:
            raise NotADirectoryError(f"{self._path} was replaced")
        return self._path / name

    def enter(self, name: str) -> Self:
        """See Folder."""
        return type(self)(self._at(name))

    def names(self) -> list[str]:
        """See Folder."""
        return sorted(os.listdir(self._at("")))

    def stat(self, name: str) -> os.stat_result:
        """See Folder."""
        return os.lstat(self._at(name))

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """See Folder."""
        path = self._at(name)
        descriptor = os.open(path, flags, mode)
        try:
            opened, there = os.fstat(descriptor), os.lstat(self._at(name))
            same = (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
            if not same or not _same(os.path.realpath(path), str(path)):
                raise NotADirectoryError(f"{path} was replaced")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def rename(self, old: str, new: str) -> None:
        """See Folder."""
        os.replace(self._at(old), self._at(new))

    def link(self, old: str, new: str) -> None:
        """See Folder."""
        os.link(self._at(old), self._at(new))

    def unlink(self, name: str) -> None:
        """See Folder."""
        os.unlink(self._at(name))

    def mkdir(self, name: str) -> None:
        """See Folder."""
        os.mkdir(self._at(name))

    def rmdir(self, name: str) -> None:
        """See Folder."""
        os.rmdir(self._at(name))

    def sync(self) -> None:
        """See Folder; Windows has nothing to call here."""

    def close(self) -> None:
        """See Folder."""


def _same(a: str, b: str) -> bool:
    """Whether two paths are spelt the same but for case; a short name of Windows is not."""
    return a.casefold() == b.casefold()


FOLDER: type[DescriptorFolder] | type[PathFolder] = (
    DescriptorFolder if os.open in os.supports_dir_fd else PathFolder
)


@contextmanager
def opened(root: str, parts: Sequence[str], folder: type[Folder]) -> Iterator[Folder]:
    """The folder `parts` below `root`. Raises ToolError where something else is on the way."""
    try:
        here: Folder = folder.at(root)  # type: ignore[attr-defined]
    except OSError as error:
        what = f"The workspace {root} cannot be opened: {error.strerror or error}."
        raise ToolError("no_workspace", what, "The user has to name another folder.") from error
    try:
        for n, name in enumerate(parts, 1):
            try:
                deeper = here.enter(name)
            except OSError as error:
                raise refused("/".join(parts[:n]), here, name, error, "folder") from error
            here.close()
            here = deeper
        yield here
    finally:
        here.close()


def refused(path: str, here: Folder, name: str, error: OSError, wanted: str) -> ToolError:
    """Why a file or folder cannot be used, after the system refused it."""
    try:
        kind = kind_of(here.stat(name))
    except OSError:
        kind = ""
    if kind == "link":
        what, remedy = f"{path} is a link; links are not followed.", "Name the file itself."
        return ToolError("link_refused", what, remedy)
    if kind and kind != wanted:
        return ToolError("wrong_kind", f"{path} is a {kind}, not a {wanted}.", "See what is there.")
    if isinstance(error, FileNotFoundError):
        look = "list_directory shows what is there."
        return ToolError("no_such_file", f"There is no {wanted} {path}.", look)
    what = f"{path} cannot be used: {error.strerror or error}."
    return ToolError("file_refused", what, "The user has to see to it.")
