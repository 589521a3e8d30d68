"""Keys that a person saves on the page: written and forgotten here, and never given out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from agent.errors import ConfigError
from agent.keys import Address, KeyStore
from agent.settings import Environment, Setting, Settings
from web.calls import Call, OnLoop, Reply


class Keyed(Protocol):
    """What keys are for."""

    @property
    def settings(self) -> Settings:
        """Those in force."""

    def declared(self) -> Iterable[Setting]:
        """Every setting there is."""

    def sent_to(self, name: str) -> tuple[Address, ...]:
        """Where the key of this setting goes."""

    def check(self, env: Environment) -> Settings:
        """What these settings come to."""

    def use(self, settings: Settings) -> None:
        """Puts them in force."""


class KeysApi:
    """GET /api/keys, PUT and DELETE /api/keys/{name}."""

    def __init__(self, house: Keyed, on_loop: OnLoop) -> None:
        self._house = house
        self._on_loop = on_loop

    def show(self, call: Call) -> Reply:
        """Which keys there are and who set them; of none a single letter."""
        return Reply({"keys": [self._shown(setting) for setting in self._secrets()]})

    def save(self, call: Call) -> Reply:
        """Keeps a key in the system's keyring, or in a file that only the user can read."""
        name, env = self._named(call), self._house.settings.env
        self._store().save(name, call.body["value"], self._house.sent_to(name), env)
        self._on_loop(self._adopt())
        return self.show(call)

    def forget(self, call: Call) -> Reply:
        """Forgets a saved key; one that is set elsewhere stays."""
        self._store().forget(self._named(call))
        self._on_loop(self._adopt())
        return self.show(call)

    async def _adopt(self) -> None:
        self._house.use(self._house.check(self._house.settings.env))

    def _store(self) -> KeyStore:
        store = self._house.settings.env.key_store
        if store is None:
            raise ConfigError("no_key_store", "No key can be saved here.", "Set it in .env.")
        return store

    def _secrets(self) -> list[Setting]:
        # The page's own token is no key of anybody's, and a database's address is no key at all.
        secret = [setting for setting in self._house.declared() if setting.secret]
        return [setting for setting in secret if setting.name.endswith("_KEY")]

    def _named(self, call: Call) -> str:
        name = call.path["name"]
        if name not in {setting.name for setting in self._secrets()}:
            raise ConfigError("unknown_key", f"There is no key {name[:80]!r}.", "GET /api/keys.")
        return name

    def _shown(self, setting: Setting) -> dict[str, Any]:
        env = self._house.settings.env
        name = next((n for n in (setting.name, *setting.aliases) if env.get(n)), setting.name)
        store = env.key_store
        return {
            "name": setting.name,
            "help": setting.help,
            "set": bool(env.get(name)),
            "origin": env.origin(name),
            "saved": bool(store and store.place(setting.name)),
            "strayed": store.strayed(setting.name, env) if store else None,
        }
