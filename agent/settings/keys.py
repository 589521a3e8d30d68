"""Saves keys in the system's keyring (extra `keyring`), else in keys.json, for its user only.

A key is bound to the addresses it is sent to: once one of them leads to another server, the key is
not used any more.
keys.json: {NAME: {"place": "keyring" | "file", "value"?, "sent_to": [{names, default, origin}]}}
"""

# An editor may not have the extra that this module needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings.private_files import remedy_for, write_object

FILE = "keys.json"
LONGEST = 4_096

_log = logging.getLogger(__name__)


class Ring(Protocol):
    """The system's keyring, as the package `keyring` offers it. Every call may raise anything."""

    def get_password(self, service: str, name: str) -> str | None: ...

    def set_password(self, service: str, name: str, value: str) -> None: ...

    def delete_password(self, service: str, name: str) -> None: ...


class Address(NamedTuple):
    """A setting (under any of its names) that says where a key is sent, and what it is if unset."""

    names: tuple[str, ...]
    default: str = ""

    def origin(self, env: Mapping[str, str]) -> str:
        """Returns scheme://host:port of the address in force, however it is written."""
        value = next((v for name in self.names if (v := env.get(name))), self.default)
        try:
            parts = urlsplit(value if "://" in value else f"http://{value}")
            port = parts.port or {"https": 443}.get(parts.scheme, 80)
        except ValueError:
            return value
        return f"{parts.scheme}://{parts.hostname}:{port}" if value else ""


@dataclass(frozen=True, slots=True)
class SavedKey:
    """A key, empty if the keyring has it, and the origin of each of its addresses when saved."""

    place: str
    value: str = field(default="", repr=False)
    sent_to: tuple[tuple[Address, str], ...] = ()

    def strayed(self, env: Mapping[str, str]) -> str | None:
        """Returns the setting that leads elsewhere now, if one does."""
        moved = (a.names[0] for a, origin in self.sent_to if a.origin(env) != origin)
        return next(moved, None)


def system_ring() -> Ring | None:
    """Returns the system's keyring; None without the package or a keyring that works."""
    if util.find_spec("keyring") is None:
        return None
    import keyring

    with suppress(Exception):
        # Without a desktop there is a stand-in of priority 0 that fails at every call.
        if keyring.get_keyring().priority > 0:
            return cast(Ring, keyring)
    return None


def checked_key(name: str, value: str) -> str:
    """Returns a key without blanks around it. Raises ConfigError for what can be none."""
    value = value.strip()
    if not value or len(value) > LONGEST or not value.isascii() or not value.isprintable():
        what = f"What was given for {name} is no key."
        remedy = f"Give one line of at most {LONGEST} plain characters."
        raise ConfigError("bad_key", what, remedy)
    return value


class KeyStore:
    """The keys saved in `home`, for any thread. Raises ConfigError for a broken keys.json."""

    def __init__(self, home: Path, ring: Callable[[], Ring | None] = system_ring) -> None:
        self._path = home / FILE
        self._service = f"searchloop {home}"
        self._find_ring = ring
        self._lock = threading.RLock()
        self._keys = _read(self._path)
        self._fetched: dict[str, str] = {}

    def names(self) -> tuple[str, ...]:
        """Returns the settings that have a saved key, usable or not."""
        return tuple(self._keys)

    def place(self, name: str) -> str:
        """Returns "keyring" or "keys.json"; empty when there is no key."""
        saved = self._keys.get(name)
        return "" if saved is None else "keyring" if saved.place == "keyring" else FILE

    def strayed(self, name: str, env: Mapping[str, str]) -> str | None:
        """Returns the address setting that keeps the saved key from being used."""
        saved = self._keys.get(name)
        return saved.strayed(env) if saved else None

    def value(self, name: str, env: Mapping[str, str]) -> str:
        """Returns the saved key for this setting; empty when none may be used."""
        saved = self._keys.get(name)
        if saved is None or saved.strayed(env):
            return ""
        return saved.value or self._fetch(name)

    def save(
        self,
        name: str,
        value: str,
        sent_to: Iterable[Address],
        env: Mapping[str, str],
        *,
        file: bool = False,
    ) -> str:
        """Saves the key for the addresses in force; returns its place. Raises AgentError."""
        value = checked_key(name, value)
        bound = tuple((address, address.origin(env)) for address in sent_to)
        with self._lock:
            self._keys = _read(self._path)  # another process may have saved one as well
            ringed = not file and self._to_ring(name, value)
            if not ringed:
                self._from_ring(name)
            saved = SavedKey("keyring" if ringed else "file", "" if ringed else value, bound)
            self._write({**self._keys, name: saved})
            self._fetched[name] = value
        return self.place(name)

    def forget(self, name: str) -> bool:
        """Deletes a saved key; False when there was none. Raises StoreError."""
        with self._lock:
            self._keys = _read(self._path)
            if name not in self._keys:
                return False
            self._from_ring(name)
            self._fetched.pop(name, None)
            self._write({n: saved for n, saved in self._keys.items() if n != name})
        return True

    def drop_strayed(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Forgets the keys whose address was changed, and names them. Raises StoreError."""
        gone = tuple(name for name, saved in self._keys.items() if saved.strayed(env))
        for name in gone:
            self.forget(name)
        return gone

    def reload(self) -> None:
        """Reads what another process saved. Raises ConfigError, and keeps what was known then."""
        with self._lock:
            self._keys = _read(self._path)
            self._fetched.clear()

    def _fetch(self, name: str) -> str:
        with self._lock:
            if name not in self._fetched:
                self._fetched[name] = ""
                try:
                    ring = self._find_ring()
                    found = ring.get_password(self._service, name) if ring else None
                except Exception as error:
                    found = None
                    _log.warning("the keyring did not give %s: %s", name, type(error).__name__)
                else:
                    if not found:
                        _log.warning("the keyring has no %s any more; save it again", name)
                self._fetched[name] = found or ""
            return self._fetched[name]

    def _to_ring(self, name: str, value: str) -> bool:
        """Returns whether the keyring keeps it, read back: some take what they do not keep."""
        try:
            ring = self._find_ring()
            if ring is None:
                return False
            ring.set_password(self._service, name, value)
            return ring.get_password(self._service, name) == value
        except Exception as error:
            _log.warning("the keyring did not take %s: %s", name, type(error).__name__)
            return False

    def _from_ring(self, name: str) -> None:
        saved = self._keys.get(name)
        if saved is not None and saved.place == "keyring":
            with suppress(Exception):  # gone already, or not ours to delete
                ring = self._find_ring()
                if ring is not None:
                    ring.delete_password(self._service, name)

    def _write(self, keys: Mapping[str, SavedKey]) -> None:
        shape = {
            name: {
                "place": saved.place,
                **({"value": saved.value} if saved.value else {}),
                "sent_to": [{**a._asdict(), "origin": origin} for a, origin in saved.sent_to],
            }
            for name, saved in keys.items()
        }
        write_object(self._path, shape)
        self._keys = dict(keys)


def _read(path: Path) -> dict[str, SavedKey]:
    try:
        data = json.loads(path.read_bytes())
        keys = {str(name): _saved(one) for name, one in data.items()}
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = error if isinstance(error, OSError) else "it is not what was written there"
        remedy = remedy_for(error, "Remove it and save the keys again with `searchloop setup`.")
        what = f"{path} cannot be read or made private: {why}."
        raise ConfigError("bad_keys", what, remedy) from error
    return keys


def _saved(one: Mapping[str, Any]) -> SavedKey:
    bound = tuple(
        (Address(tuple(map(str, a["names"])), str(a["default"])), str(a["origin"]))
        for a in one["sent_to"]
    )
    return SavedKey(str(one["place"]), str(one.get("value", "")), bound)
