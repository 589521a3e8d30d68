"""Killed while a store is copied, brought up to date or restored: the old one or the new one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, check, restore
from tests.agent.log.test_upkeep import filled, first_version, told
from tests.agent.run.test_faults import CHANGES, Fault
from tests.crash.disk import Disk
from tests.crash.harness import Zygote
from tests.crash.tidying import do

STORE, COPY = "s.sqlite3", "copy"
Looked = Callable[[Path], None]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Where a piece of work is done up to a point, at which it is killed."""
    with Zygote("tests.crash.tidying") as made:
        yield made


def dies(zygote: Zygote, work: str, store: Path, copy: Path | None, fatal: int) -> bool:
    """Whether it was killed; False if it was done before."""
    order = {"work": work, "store": str(store), "copy": copy and str(copy), "fatal": fatal}
    ended = zygote.live(**order)
    assert ended["killed"] or ended["code"] == 0
    return bool(ended["killed"])


def finds_no_room(work: str, store: Path, copy: Path | None, fatal: int) -> bool:
    """The same, but from that point on the disk is full, which is told."""
    fault = Fault(CHANGES, sqlite3.SQLITE_FULL, True, fatal)
    with Disk(fault):
        try:
            do({"work": work, "store": str(store), "copy": copy and str(copy)})
            told = "done"
        except StoreError as error:
            told = error.code
    assert told in ("done", "disk_full")
    assert list(store.parent.glob(".*.half*")) == []  # it takes no room
    return fault.hit


class Way(NamedTuple):
    """How work breaks off, and how many of its points are passed over."""

    at: Callable[[str, Path, Path | None, int], bool]
    step: int


@pytest.fixture(
    params=[
        *(("killed", 17), ("full", 7)),
        *(pytest.param((name, 1), marks=pytest.mark.torture) for name in ("killed", "full")),
    ],
    ids=lambda given: f"{given[0]} {given[1]}",
)
def way(request: pytest.FixtureRequest, zygote: Zygote) -> Way:
    """Killed, or without room."""
    name, step = request.param
    return Way(partial(dies, zygote) if name == "killed" else finds_no_room, step)


def all_of(path: Path) -> object:
    """What a store holds."""
    with closing(EventLog(path)) as log:
        return told(log)


def test_a_copy_is_whole_or_not_there(tmp_path: Path, way: Way) -> None:
    """What is there before it is whole is in nobody's way; the store is as it was."""
    filled(tmp_path / STORE).close()
    before = all_of(tmp_path / STORE)

    def look(home: Path) -> None:
        target = home / COPY
        assert all_of(home / STORE) == before
        if not target.exists():
            assert backup(home / STORE, target) == 2
        assert all_of(target) == before

    assert broken(tmp_path, way, "backup", look) > 15


def test_a_store_is_brought_up_to_date_or_not(tmp_path: Path, way: Way) -> None:
    """A store of the first version: whoever opens it next finds all there is."""
    first_version(tmp_path / STORE)
    shutil.copytree(tmp_path, tmp_path / "other")
    before = all_of(tmp_path / "other" / STORE)
    shutil.rmtree(tmp_path / "other")

    def look(home: Path) -> None:
        assert all_of(home / STORE) == before
        assert check(home / STORE) == []

    assert broken(tmp_path, way, "open", look) > 15


def test_a_copy_comes_back_session_by_session(tmp_path: Path, way: Way) -> None:
    """A session is there whole or not at all, and doing it again does the rest."""
    log = filled(tmp_path / STORE)
    backup(tmp_path / STORE, tmp_path / COPY)
    before = told(log)
    log.delete_session(log.sessions()[0].id)
    log.close()

    def look(home: Path) -> None:
        found = all_of(home / STORE)
        assert isinstance(found, list)
        assert all(session in before for session in found)
        restore(home / STORE, home / COPY)
        assert all_of(home / STORE) == before
        assert check(home / STORE) == []

    assert broken(tmp_path, way, "restore", look) > 15


def test_a_damaged_store_is_kept_until_it_is_read(tmp_path: Path, way: Way) -> None:
    """One whose newest events are in its log of changes: under its own name or another all of it is
    there, and doing it again, with that name, does the rest.
    """
    made = tmp_path / "made"
    made.mkdir()
    log = filled(made / STORE)
    session = log.sessions()[0].id
    log.append(session, [("notice", {"text": "middle" + "x" * 3000})] * 12)
    log.close()
    with closing(EventLog(made / STORE)) as log:
        log.append(session, [("notice", {"text": "newest"})])
        for side in ("", "-wal"):
            shutil.copy(made / f"{STORE}{side}", tmp_path)
    shutil.rmtree(made)
    whole = (tmp_path / STORE).read_bytes()
    (tmp_path / STORE).write_bytes(whole.replace(b"middle", b"muddle", 1))
    made.mkdir()
    for side in ("", "-wal"):
        shutil.copy(tmp_path / f"{STORE}{side}", made)
    assert restore(made / STORE, None).gaps == 1
    renewed = all_of(made / STORE)
    shutil.rmtree(made)

    def look(home: Path) -> None:
        with suppress(ConfigError):  # it is whole: there is nothing to restore
            restore(home / STORE, None)
        aside = min(home.glob(f"{STORE}.damaged*[0-9]"))
        restore(home / STORE, aside)
        assert all_of(home / STORE) == renewed
        assert check(home / STORE) == []

    assert broken(tmp_path, way, "restore", look, 3) > 60


def broken(template: Path, way: Way, work: str, look: Looked, factor: int = 1) -> int:
    """Each `factor` times `step`th point in turn, each on a copy of what lies there; how many
    points there are.
    """
    step = 1 if way.step == 1 else way.step * factor
    fatal = 1 + step // 2
    while True:
        home = template.with_name(f"{template.name}-{fatal}")
        shutil.copytree(template, home)
        copy = home / COPY if work == "backup" or (home / COPY).exists() else None
        hit = way.at(work, home / STORE, copy, fatal)
        look(home)
        shutil.rmtree(home)
        if not hit:
            return fatal
        fatal += step
