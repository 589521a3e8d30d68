"""Saved keys: where they are, who may read them, and to whom they are sent."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment, load_environment
from searchloop.agent.settings.keys import Address, KeyStore

KEY = "k-0123456789"
BRAVE = Address(("BRAVE_BASE_URL", "BRAVE_URL"), "https://api.brave.example/res/v1")


class FakeRing:
    """A keyring in memory; `fault` is raised by every call."""

    def __init__(self, fault: Exception | None = None, forgetful: bool = False) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.fault = fault
        self.forgetful = forgetful
        self.reads = 0

    def get_password(self, service: str, name: str) -> str | None:
        self.reads += 1
        if self.fault:
            raise self.fault
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        if self.fault:
            raise self.fault
        if not self.forgetful:
            self.held[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.held[service, name]


def store(home: Path, ring: FakeRing | None = None) -> KeyStore:
    """The keys of this home, with or without a keyring."""
    return KeyStore(home, lambda: ring)


def saved(home: Path, ring: FakeRing | None = None) -> KeyStore:
    """The same with one key."""
    keys = store(home, ring)
    keys.save("BRAVE_API_KEY", f" {KEY}\n", [BRAVE], {})
    return keys


def test_without_a_keyring_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    """Plain JSON, found by the next process; its mode is mended when somebody opened it."""
    home = tmp_path / "home"
    keys = saved(home)
    assert (keys.place("BRAVE_API_KEY"), keys.names()) == ("keys.json", ("BRAVE_API_KEY",))
    file = home / "keys.json"
    names, default = BRAVE
    sent_to = {"names": [*names], "default": default, "origin": "https://api.brave.example:443"}
    known = {"place": "file", "value": KEY, "sent_to": [sent_to]}
    assert json.loads(file.read_text()) == {"BRAVE_API_KEY": known}
    assert (file.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == (0o600, 0o700)
    file.chmod(0o644)
    again = store(home)
    assert again.value("BRAVE_API_KEY", {}) == KEY
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY not in repr(again.__dict__["_keys"])


def test_in_the_keyring_the_file_holds_no_key(tmp_path: Path) -> None:
    """Only which keys there are and where they go; the keyring is read when a key is asked for."""
    ring = FakeRing()
    assert saved(tmp_path, ring).place("BRAVE_API_KEY") == "keyring"
    assert KEY not in (tmp_path / "keys.json").read_text()
    ring.reads = 0
    env = Environment({"environment": {"A": "1"}}, store(tmp_path, ring))
    assert (env.get("A"), env.get("B"), ring.reads) == ("1", None, 0)
    assert (env["BRAVE_API_KEY"], env["BRAVE_API_KEY"], ring.reads) == (KEY, KEY, 1)
    assert env.origin("BRAVE_API_KEY") == "keyring"


@pytest.mark.parametrize("ring", [FakeRing(RuntimeError("locked")), FakeRing(forgetful=True)])
def test_a_keyring_that_does_not_work_is_not_used(tmp_path: Path, ring: FakeRing) -> None:
    """What it did not take, or did not keep, goes into the file."""
    keys = saved(tmp_path, ring)
    assert (keys.place("BRAVE_API_KEY"), keys.value("BRAVE_API_KEY", {})) == ("keys.json", KEY)


def test_a_keyring_that_fails_later_is_a_missing_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The program goes on without the key; the log says which, and never what it is."""
    ring = FakeRing()
    saved(tmp_path, ring)
    ring.fault = RuntimeError(f"cannot give {KEY}")
    with caplog.at_level(logging.WARNING):
        assert store(tmp_path, ring).value("BRAVE_API_KEY", {}) == ""
    assert "BRAVE_API_KEY" in caplog.text
    assert KEY not in caplog.text
    assert store(tmp_path, None).value("BRAVE_API_KEY", {}) == ""


@pytest.mark.parametrize(
    ("address", "usable"),
    [
        ("", True),
        ("https://api.brave.example/res/v1", True),
        ("https://API.brave.example:443/other/", True),
        ("https://api.brave.example:8443/", False),
        ("http://api.brave.example/", False),
        ("https://api.brave.example.evil.example/", False),
        ("http://[bad", False),
    ],
)
@pytest.mark.parametrize("name", ["BRAVE_BASE_URL", "BRAVE_URL"])
def test_a_key_goes_where_it_was_saved_for(
    tmp_path: Path, name: str, address: str, usable: bool
) -> None:
    """Whoever changes an address, in any layer and under any name, gets no key."""
    keys = saved(tmp_path)
    env = Environment({"environment": {name: address}, "config.toml": {}}, keys)
    assert env.get("BRAVE_API_KEY") == (KEY if usable else None)
    assert keys.strayed("BRAVE_API_KEY", env) == (None if usable else "BRAVE_BASE_URL")
    assert ("BRAVE_API_KEY" in dict(env)) is usable
    assert keys.drop_strayed(env) == (() if usable else ("BRAVE_API_KEY",))
    assert keys.names() == (("BRAVE_API_KEY",) if usable else ())
    assert (KEY in (tmp_path / "keys.json").read_text()) is usable


def test_the_layer_between_dotenv_and_config(tmp_path: Path) -> None:
    """A key in the environment or .env is nearer, one in config.toml is not."""
    saved(tmp_path)
    (tmp_path / "config.toml").write_text('BRAVE_API_KEY = "old"\nTAVILY_API_KEY = "config"\n')
    process = {"SEARCHLOOP_HOME": str(tmp_path)}
    env = load_environment({}, process, tmp_path)
    assert (env["BRAVE_API_KEY"], env.origin("BRAVE_API_KEY")) == (KEY, "keys.json")
    assert (env["TAVILY_API_KEY"], env.origin("TAVILY_API_KEY")) == ("config", "config.toml")
    assert len(env) == len(dict(env))
    near = load_environment({}, {**process, "BRAVE_API_KEY": "near"}, tmp_path)
    assert (near["BRAVE_API_KEY"], near.origin("BRAVE_API_KEY")) == ("near", "environment")


def test_forgotten_is_gone(tmp_path: Path) -> None:
    """From the file and from the keyring; a second time there is nothing."""
    ring = FakeRing()
    keys = saved(tmp_path, ring)
    assert keys.forget("BRAVE_API_KEY")
    assert not keys.forget("BRAVE_API_KEY")
    assert (ring.held, keys.names(), store(tmp_path, ring).names()) == ({}, (), ())
    saved(tmp_path, ring).save("BRAVE_API_KEY", "k-9876543210", [], {}, file=True)
    assert ring.held == {}


def test_two_processes_lose_no_key(tmp_path: Path) -> None:
    """Each writes what the other has saved in the meantime."""
    one, two = store(tmp_path), store(tmp_path)
    one.save("A_KEY", "a-0123", [], {})
    two.save("B_KEY", "b-0123", [], {})
    assert one.forget("B_KEY")
    assert (one.names(), store(tmp_path).names()) == (("A_KEY",), ("A_KEY",))


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "ключ", "x" * 5_000, "a\x00b"])
def test_what_is_no_key_is_refused(tmp_path: Path, value: str) -> None:
    """It is not repeated in the error, since it may be one with a slip in it."""
    with pytest.raises(ConfigError) as refused:
        store(tmp_path).save("BRAVE_API_KEY", value, [], {})
    assert refused.value.code == "bad_key"
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"A": 1}', '{"A": {"place": "file"}}', "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    """With what to do, and without what is in it."""
    (tmp_path / "keys.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        store(tmp_path)
    assert (caught.value.code, str(tmp_path) in caught.value.message) == ("bad_keys", True)
