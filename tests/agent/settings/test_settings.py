"""Settings: flag > environment > .env > config.toml > default, and where each came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment, Settings, load_environment


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
    """The nearest layer wins, and `origin` names it."""
    env = load(home, A="environment", B="environment")
    assert [env[name] for name in "ABCD"] == ["flag", "environment", "dotenv", "config"]
    origins = [env.origin(name) for name in "ABCDE"]
    assert origins == ["flag", "environment", ".env", "config.toml", "default"]
    assert env.first("E", "D", "A") == "config"
    assert env.first("E") is None


def test_an_empty_value_is_no_value(home: Path) -> None:
    """`NAME=` in one layer lets the next one speak, and never appears as a setting."""
    env = load(home, B="", C="", EMPTY="")
    assert env["B"] == "dotenv"
    assert env.get("EMPTY") is None
    assert "EMPTY" not in dict(env)
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


def test_a_byte_order_mark_is_no_part_of_a_name(home: Path) -> None:
    """Files saved by an editor that writes such a mark are read like any other."""
    (home.parent / ".env").write_bytes(b"\xef\xbb\xbfB=dotenv\n")
    (home / "config.toml").write_bytes(b'\xef\xbb\xbfC = "config"\n')
    env = load(home)
    assert (env["B"], env["C"]) == ("dotenv", "config")


def test_dotenv_values_are_taken_as_they_are(home: Path) -> None:
    """Quotes and comments as usual; a dollar sign in a key is a dollar sign."""
    (home.parent / ".env").write_text("KEY=a$B${C}\nexport Q=\"a b\" # why\nN='x#y'\n")
    env = load(home)
    assert (env["KEY"], env["Q"], env["N"]) == ("a$B${C}", "a b", "x#y")


def test_config_values_of_any_plain_type(home: Path) -> None:
    """true and 5 work as well as "true" and "5"; tables are for others."""
    (home / "config.toml").write_text("SEARCHLOOP_OFFLINE = true\nN = 5\n[table]\nx = 1\n")
    env = load(home)
    assert Settings.load(env).offline
    assert env["N"] == "5"
    assert "table" not in env


def test_the_token_is_not_shown() -> None:
    """Printing the settings shows no secret that they name."""
    env = Environment({"flag": {"SEARCHLOOP_TOKEN": "s3cret"}})
    settings = Settings.load(env)
    assert settings.token == "s3cret"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize("wrong", ["mysql://me:s3cret@h/db", "host=h password=s3cret", "chats.db"])
def test_a_database_that_is_none_is_refused(wrong: str) -> None:
    """It would be taken for the name of a file; the password in it is not shown."""
    with pytest.raises(ConfigError, match="SEARCHLOOP_DATABASE_URL") as caught:
        Settings.load(Environment({"flag": {"SEARCHLOOP_DATABASE_URL": wrong}}))
    assert "s3cret" not in str(caught.value)
    assert "postgresql://" in caught.value.remedy
