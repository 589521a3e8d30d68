"""A store's file made beside the old one, which it replaces once it is whole.

Whatever moment the process dies at, there is the old store or the new one under the name; whoever
opens it next ends what was begun.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from agent.errors import ConfigError, StoreError
from agent.private_file import sync_folder
from agent.store.contract import Database
from agent.store.faults import fault, sqlite_errors

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SIDES = ("-wal", "-shm", "-journal")
_UNFINISHED = "unfinished"  # a table that only a copy has that is being made
_AGAIN = "Name another, or make one with `searchloop sessions backup FILE`."


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Where to make what is to replace `path`. What somebody left there is gone, and so is what
    could not be made: it takes no room.
    """
    half = path.with_name(f".{path.name}.half")
    _remove(half)
    try:
        yield half
    except BaseException:
        _remove(half)
        raise


def _remove(path: Path) -> None:
    for side in ("", *_SIDES):
        Path(f"{path}{side}").unlink(missing_ok=True)


def begin_copy(half: Path) -> None:
    """Before anything else is in it: it is a half copy, by whatever name. Raises StoreError."""
    with sqlite_errors(half):
        os.close(os.open(half, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(half)) as db:
            db.execute(f"CREATE TABLE {_UNFINISHED} (x INTEGER)")
            db.commit()


def end_copy(copy: Database) -> None:
    """It is whole."""
    with copy.transaction() as db:
        db.execute(f"DROP TABLE {_UNFINISHED}")


def check_copy(copy: Path, source: Path) -> None:
    """Raises ConfigError when `copy`, which was read from `source`, is none, or half of one.

    One that is damaged may be either: whoever opens it sees.
    """
    try:
        with closing(sqlite3.connect(copy)) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError:
        return
    if _UNFINISHED in tables:
        raise ConfigError("half_copy", f"{source} is a copy that was never finished.", _AGAIN)
    if "sessions" not in tables:
        raise ConfigError("no_copy", f"{source} is no copy of sessions.", _AGAIN)


def check_closed(path: Path) -> None:
    """Raises StoreError when a store that was closed is not all in its file."""
    rest = Path(f"{path}-wal")
    if rest.exists() and rest.stat().st_size:
        raise fault("disk_full", path, "not all of it could be written")
    for side in _SIDES:
        Path(f"{path}{side}").unlink(missing_ok=True)


def replace_store(path: Path, new: Path) -> Path:
    """Puts a whole store that was closed in the place of another; where that one is now.

    Raises OSError, and StoreError when `new` is not whole.
    """
    check_closed(new)
    aside = next(_twins(path), None) or _unused(path)
    for side in ("-wal", ""):  # the file itself last: with it all of them are there
        if Path(f"{path}{side}").exists() and not Path(f"{aside}{side}").exists():
            _also(Path(f"{path}{side}"), Path(f"{aside}{side}"))
    with _locked(new):
        os.replace(new, _whole(path))
        sync_folder(path.parent)
        _put(path)
    return aside


def finish(path: Path) -> bool:
    """Ends a `replace_store` of a process that died; False when there is none to be ended.

    Of several who try at once one does it, and the others wait for that.
    """
    whole = _whole(path)
    with suppress(FileNotFoundError), _locked(whole) as found:
        if os.path.samestat(whole.stat(), found):
            return _finished(path, whole)
    return False


@contextmanager
def _locked(path: Path) -> Iterator[os.stat_result]:
    """In here nobody else replaces a store by this file, whatever it is called by now."""
    with path.open("rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield os.fstat(file.fileno())


def _finished(path: Path, whole: Path) -> bool:
    if next(_twins(path), None) is None:
        whole.unlink()  # it was of another store, which is not here any more
        return False
    _put(path)
    return True


def _whole(path: Path) -> Path:
    return path.with_name(f".{path.name}.whole")


def _put(path: Path) -> None:
    """The log of the old store goes first: beside the new one it would be taken for its own."""
    for side in _SIDES:
        Path(f"{path}{side}").unlink(missing_ok=True)
    os.replace(_whole(path), path)
    sync_folder(path.parent)


def _twins(path: Path) -> Iterator[Path]:
    """Other names of the same file, which a `replace_store` gave it."""
    return (p for p in path.parent.glob(f"{path.name}.damaged-*") if p.samefile(path))


def _unused(path: Path) -> Path:
    name = f"{path.name}.damaged-{datetime.now():%Y%m%d-%H%M%S}"
    names = (path.with_name(f"{name}{more}") for more in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(each for each in names if not each.exists())


def _also(path: Path, name: Path) -> None:
    """Gives a file a second name; its content, where a file has but one."""
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


def unreadable(source: Path, error: StoreError) -> StoreError:
    """A copy of which nothing can be read."""
    return StoreError("damaged", f"{source} cannot be read ({error.__cause__ or error}).", _AGAIN)
