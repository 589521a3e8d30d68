"""A disk between SQLite and its files, which records what it is told and fails on demand.

It is a VFS of SQLite's own making with a few of its functions replaced, so everything above it is
real: https://www.sqlite.org/c3ref/vfs.html and https://www.sqlite.org/c3ref/io_methods.html. The
structures below are those of the two pages, to the functions that every version has.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, ClassVar

_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
_MOVE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_SHARE = CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int)
_TAKE = 2  # SQLITE_SHM_LOCK


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("path_size", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _OPEN),
        ("delete", _DELETE),
        *((f"rest{n}", c_void_p) for n in range(14)),
    ]


class _Methods(Structure):
    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", _MOVE),
        ("write", _MOVE),
        ("truncate", _TRUNCATE),
        ("sync", _SYNC),
        ("size", c_void_p),
        ("lock", _SYNC),
        *((f"rest{n}", c_void_p) for n in range(6)),
        ("share", _SHARE),
        *((f"last{n}", c_void_p) for n in range(4)),
    ]


class _File(Structure):
    _fields_ = [("methods", c_void_p)]


@dataclass(frozen=True)
class Op:
    """What a file was told: `made`, `write` at, `truncate` to, `sync`, `delete`; or a `mark`."""

    kind: str
    path: str = ""
    at: int = 0
    data: bytes = b""
    note: Any = None


def _library() -> ctypes.CDLL:
    """The SQLite that this Python uses."""
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [POINTER(_Vfs), c_int]
    library.sqlite3_vfs_unregister.argtypes = [POINTER(_Vfs)]
    return library


class Disk:
    """While it is entered, databases of this process that are opened are on it.

    `record` is every change in order. With `fault` nothing is recorded: that is asked before each
    operation, by its kind, and may give an error code for it.
    """

    _kept: ClassVar[
        list[Disk]
    ] = []  # C has pointers into each of them for as long as a file is open

    def __init__(self, fault: Callable[[str], int] | None = None) -> None:
        self._kept.append(self)
        self.record: list[Op] = []
        self._fault = fault
        self._lock = threading.Lock()
        self._library = _library()
        self._real: Any = self._library.sqlite3_vfs_find(None).contents
        self._paths: dict[int, str] = {}
        self._methods: dict[int, _Methods] = {}
        self._vfs = _Vfs()
        ctypes.memmove(ctypes.byref(self._vfs), ctypes.byref(self._real), ctypes.sizeof(_Vfs))
        self._vfs.name = f"disk-{id(self)}".encode()
        self._vfs.open, self._vfs.delete = _OPEN(self._open), _DELETE(self._delete)

    def mark(self, note: Any) -> None:
        """Notes down that something is so from here on."""
        with self._lock:
            self.record.append(Op("mark", note=note))

    def __enter__(self) -> Disk:
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        return self

    def __exit__(self, *rest: object) -> None:
        """Databases that are open stay on it; what is opened from now on is not."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._real), 1)
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _met(self, kind: str) -> int:
        if self._fault is None:
            return 0
        with self._lock:
            return self._fault(kind)

    def _told(self, op: Op) -> None:
        if op.path and self._fault is None:
            with self._lock:
                self.record.append(op)

    def _open(self, vfs: int, name: int | None, file: int, flags: int, given: int | None) -> int:
        path = ctypes.string_at(name).decode() if name else ""
        made = bool(path) and not os.path.exists(path)
        code = self._met("open") or self._real.open(vfs, name, file, flags, given)
        opened = _File.from_address(file)
        if code:
            opened.methods = None
        elif opened.methods:
            self._paths[file] = path
            opened.methods = ctypes.addressof(self._around(opened.methods))
            if made:
                self._told(Op("made", path))
        return int(code)

    def _delete(self, vfs: int, name: int, sync: int) -> int:
        path = ctypes.string_at(name).decode()
        code = self._met("delete") or self._real.delete(vfs, name, sync)
        if not code:
            self._told(Op("delete", path, at=sync))
        return int(code)

    def _around(self, address: int) -> _Methods:
        """The functions of an open file, with ours before some of them."""
        known = self._methods.get(address)
        if known is not None:
            return known
        real = _Methods.from_address(address)
        ours = _Methods()
        ctypes.memmove(ctypes.byref(ours), address, ctypes.sizeof(_Methods))

        def read(file: int, into: int, count: int, at: int) -> int:
            return int(self._met("read") or real.read(file, into, count, at))

        def write(file: int, data: int, count: int, at: int) -> int:
            code = self._met("write") or real.write(file, data, count, at)
            if not code:
                self._told(Op("write", self._paths[file], at, ctypes.string_at(data, count)))
            return int(code)

        def truncate(file: int, size: int) -> int:
            code = self._met("truncate") or real.truncate(file, size)
            if not code:
                self._told(Op("truncate", self._paths[file], size))
            return int(code)

        def sync(file: int, how: int) -> int:
            code = self._met("sync") or real.sync(file, how)
            if not code:
                self._told(Op("sync", self._paths[file]))
            return int(code)

        def lock(file: int, how: int) -> int:
            return int(self._met("lock") or real.lock(file, how))

        def share(file: int, at: int, count: int, how: int) -> int:
            return int((how & _TAKE and self._met("lock")) or real.share(file, at, count, how))

        ours.read, ours.write, ours.truncate = _MOVE(read), _MOVE(write), _TRUNCATE(truncate)
        ours.sync, ours.lock = _SYNC(sync), _SYNC(lock)
        ours.share = _SHARE(share)
        self._methods[address] = ours
        return ours
