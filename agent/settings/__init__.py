"""Settings: reads them once into frozen values; nothing else in agent/ reads the environment.

Order: flag > environment > `.env` > saved keys > `config.toml` in SEARCHLOOP_HOME > default.

Others may import: config_file, keys, private_files, secrets, usual_model.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings.keys import KeyStore
from searchloop.agent.settings.private_files import remedy_for
from searchloop.agent.types import DEFAULT_LIMITS, SEARCHES, Limits
from searchloop.analysis.told import one_of

LOWEST = "config.toml"
SHARED = "config.toml of the server"  # the layer below LOWEST, where people have homes of their own
BUILTIN = "builtin:extractive"  # needs no server, key or network
DATABASES = ("postgresql://", "postgres://")  # how the address of one begins
IN_MEMORY = ":memory:"  # the place of a log that ends with its program


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what `.env.example` says of it, and the other names it goes by."""

    name: str
    help: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    secret: bool = False


_ROWS = tomllib.loads(Path(__file__).with_name("settings.toml").read_text("utf-8"))
SETTINGS = tuple(Setting(name, **row) for name, row in _ROWS.items())


class Environment(Mapping[str, str]):
    """Maps every setting to its value, from the highest layer that has it, or a saved key."""

    def __init__(
        self,
        layers: Mapping[str, Mapping[str, str]],
        key_store: KeyStore | None = None,
        person: str = "",
    ) -> None:
        """`person` is the one among several whose settings these are."""
        self._layers = dict(layers)
        self.key_store = key_store
        self.person = person

    def __getitem__(self, name: str) -> str:
        if found := self._found(name):
            return found[1]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        named = {name for values in self._layers.values() for name in values if values[name]}
        saved = self.key_store.names() if self.key_store else ()
        return iter(named | {name for name in saved if self._found(name)})

    def __len__(self) -> int:
        return len(set(self))

    def origin(self, name: str) -> str:
        """Returns the layer that gave the value, `keyring`, `keys.json` or `default`."""
        found = self._found(name)
        return found[0] if found else "default"

    def _found(self, name: str) -> tuple[str, str] | None:
        """Returns (layer, value). A person's own key goes before one that all may use."""
        if self.person and (own := self._saved(name)):
            return own
        for layer, values in self._layers.items():
            if layer == LOWEST and (key := self._saved(name)):
                return key
            if value := values.get(name):
                return layer, value
        return self._saved(name)

    def _saved(self, name: str) -> tuple[str, str] | None:
        store = self.key_store
        value = store.value(name, self) if store else ""
        return (store.place(name), value) if store and value else None

    def put(self, layer: str, values: Mapping[str, str]) -> None:
        """Replaces a layer, for all who hold this environment."""
        self._layers[layer] = values

    def with_layer(self, layer: str, values: Mapping[str, str]) -> Environment:
        """Returns a copy with this layer."""
        return Environment({**self._layers, layer: values}, self.key_store, self.person)

    def of_person(self, person: str, home: Path) -> Environment:
        """Returns a person's settings: what the server is started with, then their own files."""
        flags = {**self._layers.get("flag", {}), "SEARCHLOOP_HOME": str(home)}
        layers = {**self._layers, "flag": flags}
        shared = layers.pop(LOWEST, {})
        layers |= {LOWEST: read_config(home / LOWEST), SHARED: shared}
        return Environment(layers, KeyStore(home), person)

    def first(self, *names: str) -> str | None:
        """Returns the value of the first of these names that is set."""
        return next((self[n] for n in names if self.get(n)), None)


def load_environment(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Environment:
    """Reads the layers. Raises ConfigError for a broken file."""
    process = dict(os.environ if environ is None else environ)
    dotenv = _read_dotenv((cwd or Path.cwd()) / ".env")
    layers = {"flag": flags or {}, "environment": process, ".env": dotenv}
    home = default_home(Environment(layers))
    return Environment({**layers, LOWEST: read_config(home / "config.toml")}, KeyStore(home))


def default_home(env: Mapping[str, str]) -> Path:
    """Returns SEARCHLOOP_HOME, else the user's data folder."""
    if env.get("SEARCHLOOP_HOME"):
        return Path(env["SEARCHLOOP_HOME"]).expanduser()
    base = env.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "searchloop"


def _read_dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        values = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
        return {k: v for k, v in values.items() if v}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("bad_dotenv", f"{path} cannot be read: {error}.", "Fix it.") from error


def read_config(path: Path) -> dict[str, str]:
    """Reads the settings in config.toml. Raises ConfigError when it is not TOML."""
    try:
        data = tomllib.loads(path.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        what = f"{path} cannot be read: {error}."
        remedy = remedy_for(error, 'Write one setting a line: SEARCHLOOP_MODEL = "ollama:qwen3:8b"')
        raise ConfigError("bad_config", what, remedy) from error
    return {key: str(value) for key, value in data.items() if not isinstance(value, dict | list)}


_ON, _OFF = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}


def is_on(value: str | None) -> bool:
    return (value or "").strip().lower() in _ON


def _offline(env: Mapping[str, str]) -> bool:
    """A word that is neither on nor off is not taken for off: then something would leave."""
    value = (env.get("SEARCHLOOP_OFFLINE") or "").strip().lower()
    if value not in _ON | _OFF:
        what = f"SEARCHLOOP_OFFLINE is neither on nor off: {value[:40]!r}."
        raise ConfigError("bad_config", what, "Set SEARCHLOOP_OFFLINE to 1 or 0.")
    return value in _ON


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent needs to know, once. `env` stays for providers, which name their own keys."""

    env: Environment
    home: Path
    model: str
    offline: bool
    backend_url: str | None
    token: str | None = field(default=None, repr=False)
    limits: Limits = DEFAULT_LIMITS
    search: str = "off"
    database: str | None = field(default=None, repr=False)

    @property
    def files(self) -> Path | None:
        """The folder that holds all folders a person may name; None: any of the machine's."""
        return self.home.parent / "files" if self.env.person else None

    @property
    def store(self) -> Path | str:
        return self.database or self.home / "sessions.sqlite3"

    @classmethod
    def load(cls, env: Environment | None = None) -> Settings:
        """Reads `env`, or else the process environment, `.env` and `config.toml`."""
        env = env or load_environment()
        return cls(
            env=env,
            home=default_home(env),
            model=env.get("SEARCHLOOP_MODEL") or BUILTIN,
            offline=_offline(env),
            backend_url=env.get("SEARCH_BACKEND_URL") or None,
            token=env.get("SEARCHLOOP_TOKEN") or None,
            limits=_limits(env),
            search=_search(env),
            database=_database(env),
        )


def _search(env: Mapping[str, str]) -> str:
    value = (env.get("SEARCHLOOP_SEARCH") or "off").strip().lower()
    if value not in SEARCHES:
        what = f"SEARCHLOOP_SEARCH is {value!r}."
        raise ConfigError("bad_search", what, one_of(value, SEARCHES))
    return value


def _database(env: Mapping[str, str]) -> str | None:
    """Checks the address; it may hold a password, so no error shows it."""
    name = "SEARCHLOOP_DATABASE_URL"
    address = (env.get(name) or "").strip()
    if address and not address.startswith(DATABASES):
        what = f"{name} is not the address of a PostgreSQL database."
        remedy = "Write postgresql://USER:PASSWORD@HOST/NAME, or remove it: then a file is used."
        raise ConfigError("bad_database", what, remedy)
    return address or None


def _limits(env: Mapping[str, str]) -> Limits:
    """Parses SEARCHLOOP_LIMITS (`steps=12,cost_usd=0.50`). Raises ConfigError."""
    found: dict[str, Any] = {}
    known = Limits._fields
    for entry in (env.get("SEARCHLOOP_LIMITS") or "").split(","):
        name, equals, text = (part.strip() for part in entry.partition("="))
        if not entry.strip():
            continue
        if not equals or name not in known or name in found:
            what = f"SEARCHLOOP_LIMITS has an entry that cannot be used: {entry.strip()[:60]!r}."
            remedy = f"Write each of {', '.join(known)} at most once, for example steps=12."
            raise ConfigError("bad_limits", what, remedy)
        try:
            value = float(text) if (any_number := name in ("seconds", "cost_usd")) else int(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            what = f"{name} is {text[:40]!r}, not a whole number above 0."
            if any_number:
                what = f"{name} is {text[:40]!r}, not a number above 0."
            raise ConfigError("bad_limit", what, "Correct or remove it in SEARCHLOOP_LIMITS.")
        found[name] = value
    return Limits(**found)
