"""Opened folders: goes from the workspace to a file step by step and follows no link.

On POSIX each step is relative to a file descriptor, so a folder swapped for a link changes nothing.
Elsewhere each step checks the path before and after.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.tools.workspace.paths import TEMPORARY

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
    """Returns "file", "folder", "link", "pipe", "socket" or "device"."""
    if getattr(status, "st_file_attributes", 0) & _REPARSE:
        return "link"
    return next((kind for test, kind in _KINDS if test(status.st_mode)), "device")


class Folder:
    """An open folder as a file descriptor (POSIX). Names are single names in it; raises OSError."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor
        self._from: dict[str, Any] = {"dir_fd": descriptor}
        self._both: dict[str, Any] = {"src_dir_fd": descriptor, "dst_dir_fd": descriptor}
        self._unfollowed: dict[str, Any] = {"follow_symlinks": False}

    @classmethod
    def at(cls, path: str) -> Folder:
        """Opens the folder at a path that the user named."""
        return cls(os.open(path, READ | os.O_DIRECTORY))

    def _at(self, name: str) -> str:
        """Returns the path of a name for a call that gets `_from` or `_both` as well."""
        return name

    def enter(self, name: str) -> Folder:
        """Opens the folder of this name; a link is no folder."""
        return Folder(os.open(name, READ | os.O_DIRECTORY, dir_fd=self._fd))

    def names(self) -> list[str]:
        """Returns its names, sorted."""
        return sorted(os.listdir(self._fd))

    def stat(self, name: str) -> os.stat_result:
        """Returns the status of the thing itself, not of what a link leads to."""
        return os.stat(self._at(name), follow_symlinks=False, **self._from)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Returns a file descriptor; does not follow a link."""
        return os.open(name, flags, mode, dir_fd=self._fd)

    def rename(self, old: str, new: str) -> None:
        """Renames `old`, which replaces what is at `new`."""
        os.replace(self._at(old), self._at(new), **self._both)

    def link(self, old: str, new: str) -> None:
        """Gives a file a second name. Raises FileExistsError when that is taken."""
        os.link(self._at(old), self._at(new), **self._both, **self._unfollowed)

    def unlink(self, name: str) -> None:
        """Removes a file."""
        os.unlink(self._at(name), **self._from)

    def mkdir(self, name: str) -> None:
        """Makes a folder."""
        os.mkdir(self._at(name), **self._from)

    def rmdir(self, name: str) -> None:
        """Removes an empty folder."""
        os.rmdir(self._at(name), **self._from)

    def sync(self) -> None:
        """Flushes renames and removals to the disk."""
        with suppress(OSError):  # some file systems know no such thing
            os.fsync(self._fd)

    def close(self) -> None:
        """Closes the folder."""
        os.close(self._fd)


class PathFolder(Folder):
    """A folder as a path that each step checks, for systems without directory descriptors."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from, self._both, self._unfollowed = {}, {}, {}
        self._id = self._checked()

    @classmethod
    def at(cls, path: str) -> Folder:
        return cls(Path(os.path.realpath(path)))

    def _checked(self) -> tuple[int, int]:
        """Returns device and inode of the folder. Raises OSError when the path leads elsewhere."""
        status = os.lstat(self._path)
        real = os.path.realpath(self._path)
        if kind_of(status) != "folder" or not _same(real, str(self._path)):
            raise NotADirectoryError(f"{self._path} is no folder of its own")
        return status.st_dev, status.st_ino

    def _at(self, name: str) -> str:
        if self._checked() != self._id:
            raise NotADirectoryError(f"{self._path} was replaced")
        return str(self._path / name)

    def enter(self, name: str) -> Folder:
        return PathFolder(Path(self._at(name)))

    def names(self) -> list[str]:
        return sorted(os.listdir(self._at("")))

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        path = self._at(name)
        descriptor = os.open(path, flags, mode)
        try:
            same = os.path.samestat(os.fstat(descriptor), os.lstat(self._at(name)))
            if not same or not _same(os.path.realpath(path), path):
                raise NotADirectoryError(f"{path} was replaced")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def sync(self) -> None:  # Windows has nothing to call here
        pass

    def close(self) -> None:
        pass


def _same(a: str, b: str) -> bool:
    """Returns whether two paths differ in case only; a short name of Windows does not match."""
    return a.casefold() == b.casefold()


FOLDER: type[Folder] = Folder if os.open in os.supports_dir_fd else PathFolder


@contextmanager
def opened(root: str, parts: Sequence[str], folder: type[Folder]) -> Iterator[Folder]:
    """Opens the folder `parts` below `root`. Raises ToolError if something else is on the way."""
    try:
        here = folder.at(root)
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
    """Returns the error for a file or folder that the system refused."""
    try:
        kind = kind_of(here.stat(name))
    except OSError:
        kind = ""
    if kind == "link":
        what, remedy = f"{path} is a link; links are not followed.", "Name the file itself."
        return ToolError("link_refused", what, remedy)
    look = "list_directory shows what is there."
    if kind and kind != wanted:
        return ToolError("wrong_kind", f"{path} is a {kind}, not a {wanted}.", look)
    if isinstance(error, FileNotFoundError):
        return ToolError("no_such_file", f"There is no {wanted} {path}.", look)
    what = f"{path} cannot be used: {error.strerror or error}."
    return ToolError("file_refused", what, "The user has to let searchloop use it.")


def mark(status: os.stat_result) -> tuple[int, ...]:
    """Returns what identifies a file and its state: device, inode, size, time."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def written(here: Folder, data: bytes, mode: int, owner: os.stat_result | None = None) -> str:
    """Writes a temporary file to the disk and returns its name; `owner` sets owner and `mode`."""
    name = f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
    descriptor = here.open(name, NEW, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if owner is not None and hasattr(os, "fchown"):
            with suppress(OSError):  # only the superuser can give files away
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
        if owner is not None and hasattr(os, "fchmod"):  # Windows has it from Python 3.13 on
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            here.unlink(name)
        raise
    finally:
        os.close(descriptor)
    return name


def take_free_place(here: Folder, temporary: str, path: str) -> None:
    """Renames a finished file to the end of `path`. Raises ToolError when something is there."""
    name = path.rpartition("/")[2]
    try:
        here.link(temporary, name)
        return
    except FileExistsError as error:
        raise exists_already(path) from error
    except OSError:
        pass  # a file system without links
    try:
        os.close(here.open(name, NEW))
    except FileExistsError as error:
        raise exists_already(path) from error
    here.rename(temporary, name)


def leftover(here: Folder, status: os.stat_result) -> bool:
    """Removes the temporary name that a killed process left; returns if that was the only one."""
    found = False
    with suppress(OSError):
        for name in here.names():
            if name.startswith(TEMPORARY) and os.path.samestat(here.stat(name), status):
                here.unlink(name)
                found = True
    return found and status.st_nlink == 2


def exists_already(path: str) -> ToolError:
    """Returns the error for a new file where something is already."""
    what = f"There is already something at {path}."
    return ToolError("file_exists", what, "Change it with replace_in_file, or take another name.")
