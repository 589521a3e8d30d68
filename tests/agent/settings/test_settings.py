"""Settings: flag > environment > .env > config.toml > default, and where each came from.

config.toml changed by a program: the lines meant, no other, and never half a file.

Files that are written whole: on the disk before they take their name, and the name after.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError, StoreError
from searchloop.agent.guard.guard import Policy, save_policy
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup
from searchloop.agent.mcp.server import change_object
from searchloop.agent.run.prompts import NamedAgents
from searchloop.agent.settings import Environment, Settings, load_environment
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.settings.keys import KeyStore
from searchloop.agent.settings.private_files import replace_private, write_private
from tests.agent.scripted import no_room
from tests.conftest import linux_only


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a config.toml, beside a folder with a .env."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('A = "config"\nB = "config"\nC = "config"\nD = "config"\n')
    (tmp_path / ".env").write_text("A=dotenv\nB=dotenv\nC=dotenv\n")
    return home


def load(home: Path, **environ: str) -> Environment:
    """The layers as a process in the folder above `home` has them."""
    process = {"SEARCHLOOP_HOME": str(home), **environ}
    return load_environment({"A": "flag"}, process, home.parent)


def test_the_layers_in_order(home: Path) -> None:
    """The nearest layer wins, and `origin` names it; `NAME=` lets the next one speak."""
    env = load(home, A="environment", B="environment", C="", EMPTY="")
    assert [env[name] for name in "ABCD"] == ["flag", "environment", "dotenv", "config"]
    origins = [env.origin(name) for name in "ABCDE"]
    assert origins == ["flag", "environment", ".env", "config.toml", "default"]
    assert env.first("E", "D", "A") == "config"
    assert (env.first("E"), env.get("EMPTY")) == (None, None)
    assert len(env) == len(dict(env.items()))


def test_home_may_come_from_the_dotenv_file(tmp_path: Path) -> None:
    """config.toml is looked for in the home that the layers above it name."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.toml").write_text('X = "found"\n')
    (tmp_path / ".env").write_text(f"SEARCHLOOP_HOME={tmp_path / 'elsewhere'}\n")
    env = load_environment({}, {}, tmp_path)
    assert env["X"] == "found"
    assert Settings.load(env).home == tmp_path / "elsewhere"


def test_a_broken_config_is_named(home: Path) -> None:
    """A config.toml that is no TOML is an error with its path and an example."""
    (home / "config.toml").write_text("MODEL = qwen\n")
    with pytest.raises(ConfigError) as caught:
        load(home)
    assert caught.value.code == "bad_config"
    assert str(home / "config.toml") in caught.value.message
    assert "SEARCHLOOP_MODEL = " in caught.value.remedy


@pytest.mark.parametrize("name", ["home/config.toml", ".env"])
def test_a_file_that_is_no_text_is_named(home: Path, name: str) -> None:
    """Bytes that are not UTF-8 are an error with the file's path."""
    (home.parent / name).write_bytes(b"A=\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        load(home)
    assert str(home.parent / name) in caught.value.message


def test_files_are_read_as_people_write_them(home: Path) -> None:
    """With an editor's mark before the text, quotes and comments, a dollar sign that is one, true
    and 5 as well as "true" and "5"; tables of config.toml are for others.
    """
    env_file = "\ufeffB=dotenv\nKEY=a$B${C}\nexport Q=\"a b\" # why\nM='x#y'\n"
    (home.parent / ".env").write_text(env_file, "utf-8")
    config = "\ufeffSEARCHLOOP_OFFLINE = true\nN = 5\n[table]\nx = 1\n"
    (home / "config.toml").write_text(config, "utf-8")
    env = load(home)
    assert [env[name] for name in ("B", "KEY", "Q", "M")] == ["dotenv", "a$B${C}", "a b", "x#y"]
    assert Settings.load(env).offline
    assert env["N"] == "5"
    assert "table" not in env


def test_the_token_is_not_shown() -> None:
    """Printing the settings shows no secret that they name."""
    env = Environment({"flag": {"SEARCHLOOP_TOKEN": "s3cret"}})
    loaded = Settings.load(env)
    assert loaded.token == "s3cret"
    assert "s3cret" not in repr(loaded)


@pytest.mark.parametrize("value", ["y", "enabled", "maybe", "oui", "2", "1 # always"])
def test_what_is_neither_on_nor_off_is_not_taken_for_off(value: str) -> None:
    """Whoever wants to be offline is told, and nothing is asked of the network."""
    with pytest.raises(ConfigError, match="neither on nor off"):
        Settings.load(Environment({"flag": {"SEARCHLOOP_OFFLINE": value}}))


@pytest.mark.parametrize("wrong", ["mysql://me:s3cret@h/db", "host=h password=s3cret", "chats.db"])
def test_a_database_that_is_none_is_refused(wrong: str) -> None:
    """It would be taken for the name of a file; the password in it is not shown."""
    with pytest.raises(ConfigError, match="SEARCHLOOP_DATABASE_URL") as caught:
        Settings.load(Environment({"flag": {"SEARCHLOOP_DATABASE_URL": wrong}}))
    assert "s3cret" not in str(caught.value)
    assert "postgresql://" in caught.value.remedy


BEFORE = """\
# my settings
SEARCHLOOP_MODEL = "ollama:qwen3:8b" # the small one
"SEARCH_ENGINES" = "ddg"

[mine]
SEARCHLOOP_MODEL = "not this one"
"""


def test_only_the_lines_meant_change(tmp_path: Path) -> None:
    """Comments, order and tables stay; a new setting stands before the tables."""
    path = tmp_path / "config.toml"
    path.write_text(BEFORE, "utf-8")
    change_config(path, {"SEARCH_ENGINES": None, "SEARCHLOOP_MODEL": 'a"b\n', "NEW": "ü"})
    assert path.read_text("utf-8") == (
        '# my settings\nSEARCHLOOP_MODEL = "a\\"b\\n"\n\nNEW = "ü"\n'
        '[mine]\nSEARCHLOOP_MODEL = "not this one"\n'
    )
    assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == ["config.toml"]


@settings(max_examples=25)  # each is synced to the disk twice
@given(st.dictionaries(st.sampled_from("ABCDE"), st.none() | st.text(max_size=20), max_size=5))
def test_what_was_written_is_read(changes: dict[str, str | None]) -> None:
    """Whatever the text, TOML gives it back, and the rest is as it was."""
    clean = {k: v and v.encode("utf-8", "replace").decode() for k, v in changes.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "config.toml"
        change_config(path, {"A": "1", "Z": "2"})
        change_config(path, clean)
        wanted = {"A": "1", "Z": "2"} | clean
        kept = {name: value for name, value in wanted.items() if value is not None}
        assert tomllib.loads(path.read_text("utf-8")) == kept


@pytest.mark.parametrize("text", [b"A = \n", b'A = """\nB = 1\n"""\n', b"A = [\n1,\n]\n", b"\x80"])
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: bytes) -> None:
    """Broken, or a setting over several lines: refused, with every byte in place."""
    path = tmp_path / "config.toml"
    path.write_bytes(text)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="cannot be changed"):
        change_config(path, {"A": "x"})
    assert path.read_bytes() == before


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


@linux_only
@pytest.mark.parametrize("name", WRITERS)
def test_a_power_cut_leaves_the_old_or_the_new(tmp_path: Path, name: str) -> None:
    """The content is on the disk before the name is changed, and the name when it returns."""
    done = disk_calls(lambda: WRITERS[name](tmp_path), tmp_path)
    assert done == ["sync file", "rename", "sync folder"]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@linux_only
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


AS_ANOTHER = """
import os, sys
from pathlib import Path
from searchloop.agent.errors import AgentError
from searchloop.agent.run.prices import load_prices
from searchloop.agent.settings import private_files, keys, read_config
from searchloop.web.gate.access import KeptToken
home, config, own = (Path(path) for path in sys.argv[1:])
os.geteuid() or os.seteuid(65534)  # root may read everything
for read in (
    lambda: keys.KeyStore(home), lambda: load_prices(home), KeptToken(home).read,
    lambda: read_config(config), lambda: private_files.read_object(own, "bad", "It"),
):
    try:
        read()
    except AgentError as error:
        print(error.remedy)
"""


@linux_only
def test_a_file_of_another_user_is_neither_broken_nor_passed_over(tmp_path: Path) -> None:
    """As after one start with sudo: nobody is told to remove keys, and "offline" is not lost."""
    paths = [tmp_path / f for f in ("config.toml", "own.json", "keys.json", "token", "prices.toml")]
    for path in paths:
        path.touch(mode=0)
    command = [sys.executable, "-c", AS_ANOTHER, str(tmp_path), *map(str, paths[:2])]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    remedy = "It belongs to another user: make it readable for you, or set SEARCHLOOP_HOME."
    assert told == [remedy] * 5
