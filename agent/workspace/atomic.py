"""Making a file whole: written beside its place, brought to the disk, then put there."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from agent.errors import ToolError
from agent.workspace.folders import NEW, Folder
from agent.workspace.names import TEMPORARY


def mark(status: os.stat_result) -> tuple[int, ...]:
    """What tells a file, and a state of it, from any other."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def written(here: Folder, data: bytes, mode: int, owner: os.stat_result | None = None) -> str:
    """The name of a new file with this content, which is on the disk.

    With `owner` it belongs to whom that file belonged, and `mode` is exact; else the umask counts.
    """
    name = f"{TEMPORARY}{secrets.token_hex(8)}.tmp"
    descriptor = here.open(name, NEW, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if owner is not None and hasattr(os, "fchmod"):
            with suppress(OSError):  # only the superuser can give files away
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
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
    """Gives a finished file the name at the end of `path`. ToolError when something has it."""
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
    """Whether the second name was one of ours, left by a process that was killed; it is removed."""
    found = False
    with suppress(OSError):
        for name in here.names():
            if name.startswith(TEMPORARY) and os.path.samestat(here.stat(name), status):
                here.unlink(name)
                found = True
    return found and status.st_nlink == 2


def exists_already(path: str) -> ToolError:
    """There is something where a new file should be."""
    what = f"There is already something at {path}."
    return ToolError("file_exists", what, "Change it with replace_in_file, or take another name.")
