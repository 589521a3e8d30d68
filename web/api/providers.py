"""Handlers for who answers: each provider with its key, its test, and the address of an own server.

No answer contains a key. An address can be changed only where no vendor has one, as of Ollama or of
another server, and never while the environment brings the key, which the new address would receive.
A saved key is bound to its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.providers import names, settings_of
from searchloop.agent.settings import LOWEST, Environment, Setting
from searchloop.agent.settings.keys import KeyStore, checked_key
from searchloop.agent.transport.exchange import origin_of
from searchloop.analysis.told import one_of
from searchloop.web.api.calls import Call, Handlers, Reply, check_right
from searchloop.web.api.openapi import route
from searchloop.web.api.settings import save_settings, shown_parts, shown_setting

_ADDRESSES = ("_BASE_URL", "_HOST")
_OWN = ("default", LOWEST)


class ProvidersApi(Handlers):
    """/api/keys and /api/providers: saves, tests and deletes keys."""

    @route("get", "/api/keys", "Keys")
    def show(self, call: Call) -> Reply:
        """Lists which keys are set, and where."""
        return Reply({"keys": [self._shown(setting) for setting in self._secrets()]})

    @route("put", "/api/keys/{name}", "Keys", "NewKey")
    def save(self, call: Call) -> Reply:
        """Saves a key in the system's keyring, or in a file that only the user can read."""
        name, env = self._named(call), self._services.settings.env
        self._store().save(name, call.body["value"], self._services.key_addresses(name), env)
        return self._put_in_force(call)

    @route("delete", "/api/keys/{name}", "Keys")
    def delete(self, call: Call) -> Reply:
        """Deletes a saved key. One that is set elsewhere stays."""
        self._store().forget(self._named(call))
        return self._put_in_force(call)

    def _put_in_force(self, call: Call) -> Reply:
        services = self._services
        self._on_loop.do(lambda: services.use(services.check(services.settings.env)))
        return self.show(call)

    def _store(self) -> KeyStore:
        store = self._services.settings.env.key_store
        if store is None:
            raise ConfigError("no_key_store", "No key can be saved here.", "Set it in .env.")
        return store

    def _secrets(self) -> list[Setting]:
        # The page's own token is nobody's key, and a database's address is no key at all.
        secret = [setting for setting in self._services.declared() if setting.secret]
        return [setting for setting in secret if setting.name.endswith("_KEY")]

    def _named(self, call: Call) -> str:
        name = call.path["name"]
        if name not in {setting.name for setting in self._secrets()}:
            raise ConfigError("unknown_key", f"There is no key {name[:80]!r}.", "GET /api/keys.")
        return name

    def _shown(self, setting: Setting) -> dict[str, Any]:
        env = self._services.settings.env
        store = env.key_store
        value, common = shown_parts(setting, env)
        saved = bool(store and store.place(setting.name))
        strayed = store.strayed(setting.name, env) if store else None
        return {**common, "set": bool(value), "saved": saved, "strayed": strayed}

    @route("get", "/api/providers", "Providers")
    def providers(self, call: Call) -> Reply:
        """Lists the providers that have a key or an address, as the settings describe them."""
        found = [self._row(name) for name in names()]
        return Reply({"providers": [row for row in found if row["key"] or row["address"]]})

    @route("post", "/api/providers/{name}/test", "ProviderTested", "ProviderTest")
    def test(self, call: Call) -> Reply:
        """Asks a provider for its models, with a new key or address if one is sent.

        With `save` those are saved if it answers. An error says why it does not.
        """
        key, address = _parts(call.path["name"])
        changes: dict[str, str] = {}
        if "address" in call.body:
            self._check_address(call, address)
            changes[address.name] = (call.body["address"] or "").strip()  # type: ignore[union-attr]
        if call.body.get("key"):
            if key is None:
                raise ConfigError("unknown_key", "This provider has no key.", "Leave it out.")
            changes[key.name] = checked_key(key.name, call.body["key"])
        trial = self._services.runner.registry.trial(call.path["name"], changes)
        found = self._on_loop(trial)
        save = bool(call.body.get("save") and changes)
        if save:
            self._save(changes, key, address)
        return Reply({"models": len(found), "saved": save})

    def _save(
        self, changes: Mapping[str, str], key: Setting | None, address: Setting | None
    ) -> None:
        services = self._services
        if address and address.name in changes:
            wanted = {address.name: changes[address.name] or None}
            save_settings(services, self._on_loop, wanted)
        if key and key.name in changes:
            env = services.settings.env
            sent_to = services.key_addresses(key.name)
            self._store().save(key.name, changes[key.name], sent_to, env)
            self._on_loop.do(lambda: services.use(services.check(services.settings.env)))

    def _check_address(self, call: Call, address: Setting | None) -> None:
        check_right("operator", call.person)
        if address is None or not self._movable(call.path["name"]):
            what = "The address of this provider cannot be changed here."
            raise ConfigError("not_changeable", what, "Set it where the server is started.")

    def _movable(self, name: str) -> bool:
        key, address = _parts(name)
        env = self._services.settings.env
        if address is None or env.person or not _own_address(address):
            return False
        kept = {env.origin(n) for n in (address.name, *address.aliases)} <= set(_OWN)
        return kept and not (key and env.get(key.name) and not self._shown(key)["saved"])

    def _row(self, name: str) -> dict[str, Any]:
        env: Environment = self._services.settings.env
        key, address = _parts(name)
        where = shown_setting(address, env) if address else None
        if address and where:
            own = where["value"] or _own_address(address)
            where = {**where, "changeable": self._movable(name)} if own else None
        rest = [s for s in settings_of(name) if not s.secret and not s.name.endswith(_ADDRESSES)]
        more = [shown_setting(setting, env) for setting in rest]
        shown = self._shown(key) if key else None
        return {"name": name, "key": shown, "address": where, "more": more}


def _parts(name: str) -> tuple[Setting | None, Setting | None]:
    """Returns the key and the address that a provider declares. Raises ConfigError."""
    if name not in names():
        what = f"There is no provider {name[:80]!r}."
        raise ConfigError("unknown_provider", what, one_of(name, names()))
    declared = settings_of(name)
    key = next((s for s in declared if s.secret and s.name.endswith("_KEY")), None)
    return key, next((s for s in declared if s.name.endswith(_ADDRESSES)), None)


def has_key(model: str, env: Mapping[str, str]) -> bool:
    """Returns whether the provider of a model has a key; a server of the user's own needs none."""
    name = model.partition(":")[0]
    key = _parts(name)[0] if name in names() else None  # else a program brings it along
    return bool(key and env.get(key.name))


def _own_address(address: Setting) -> bool:
    """Returns True for a server of the user's own: there is no vendor's address."""
    default = address.default
    origin = origin_of(default if "://" in default else f"http://{default}") if default else None
    return not default or bool(origin and origin.here)
