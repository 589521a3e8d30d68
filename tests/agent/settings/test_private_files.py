"""Files that are written whole: on the disk before they take their name, and the name after."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import StoreError
from searchloop.agent.guard.guard import Policy, save_policy
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup
from searchloop.agent.mcp.server import change_object
from searchloop.agent.run.prompts import NamedAgents
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.settings.keys import KeyStore
from searchloop.agent.settings.private_files import replace_private, write_private
from tests.agent.scripted import no_room

OPEN_FILES = Path("/proc/self/fd")


def disk_calls(action: Callable[[], object], home: Path) -> list[str]:
    """What is synced and renamed below `home`, in order."""
    seen: list[str] = []

    def called(frame: Any, event: str, function: Any) -> None:
        name = getattr(function, "__name__", "")
        if event != "c_call" or getattr(function, "__module__", "") != "posix":
            return
        if name in ("replace", "rename", "link"):
            seen.append("rename")
        elif name == "fsync":
            there = [os.path.realpath(link) for link in OPEN_FILES.iterdir()]
            ours = [path for path in there if path.startswith(os.path.realpath(home))]
            seen.append("sync file" if any(map(os.path.isfile, ours)) else "sync folder")

    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


def a_key(home: Path) -> None:
    """Saves a key where there is no keyring."""
    KeyStore(home, lambda: None).save("OPENAI_API_KEY", "k" * 20, (), {})


WRITERS: dict[str, Callable[[Path], object]] = {
    "any": lambda home: replace_private(home / "any", "text"),
    "config.toml": lambda home: change_config(home / "config.toml", {"A": "b"}),
    "policy.json": lambda home: save_policy(home, Policy()),
    "keys.json": a_key,
    "mcp.json": lambda home: change_object(home / "mcp.json", dict.copy),
    "agents/mine.json": lambda home: NamedAgents(home).create("mine", {}),
}


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="needs /proc to see what is open")
@pytest.mark.parametrize("name", WRITERS)
def test_a_power_cut_leaves_the_old_or_the_new(tmp_path: Path, name: str) -> None:
    """The content is on the disk before the name is changed, and the name when it returns."""
    done = disk_calls(lambda: WRITERS[name](tmp_path), tmp_path)
    assert done == ["sync file", "rename", "sync folder"]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="needs /proc to see what is open")
def test_a_copy_is_there_when_it_is_said_to_be(tmp_path: Path) -> None:
    """A backup takes its name when SQLite has closed it, and the name is brought to the disk."""
    EventLog(tmp_path / "s.sqlite3").close()
    done = disk_calls(lambda: backup(tmp_path / "s.sqlite3", tmp_path / "copy"), tmp_path)
    assert done[-2:] == ["rename", "sync folder"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """What cannot be written changes nothing and leaves nothing beside it."""
    (tmp_path / "limit").write_text("x" * 10)
    write_private(tmp_path / "own", "old")
    with no_room(tmp_path / "limit"), pytest.raises(StoreError) as caught:
        write_private(tmp_path / "own", "new " * 100)
    assert caught.value.code == "disk_full"
    assert (tmp_path / "own").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"limit", "own"}
