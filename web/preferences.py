"""Settings that a person changes on the page: kept in config.toml, in force from the next turn.

A value that is set above the file (a flag, the environment, .env) wins there too, so it is shown
with its origin and cannot be changed here. Keys are no business of this file, nor are addresses to
which keys are sent: whoever could change those could read the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from agent.config_file import change_config
from agent.errors import ConfigError
from agent.known_secrets import masked
from agent.settings import Environment, Setting, Settings, read_config
from web.calls import Call, OnLoop, Reply

_FILE = "config.toml"
# Needed before the file is read, or meaningful only at the start.
_FIXED = re.compile(r".*_(HOME|TOKEN|OFFLINE|URL|HOST|ENDPOINT|FIELDS|ALLOW_RANGES)")


class Configured(Protocol):
    """What can be changed while it runs."""

    @property
    def settings(self) -> Settings:
        """Those in force."""

    @property
    def runner(self) -> Any:
        """Knows the models."""

    def declared(self) -> Iterable[Setting]:
        """Every setting there is."""

    def check(self, env: Environment) -> Settings:
        """What these come to, or ConfigError."""

    def use(self, settings: Settings) -> None:
        """Puts them in force."""


class PreferencesApi:
    """GET and PATCH /api/settings."""

    def __init__(self, house: Configured, on_loop: OnLoop) -> None:
        self._house = house
        self._on_loop = on_loop

    def read(self, call: Call) -> Reply:
        """Every setting that is no secret: its value (without a password in it), its origin
        and its default."""
        return Reply({"settings": [self._shown(s) for s in self._public()]})

    def change(self, call: Call) -> Reply:
        """Changes settings by name; null puts the default back. All of them or none."""
        changes: Mapping[str, Any] = call.body["settings"]
        env, known = self._house.settings.env, {s.name: s for s in self._public()}
        for name, value in changes.items():
            if name not in known or not _changeable(known[name], env):
                raise _cannot(name, env if name in known else None)
            if value is not None and (not isinstance(value, str) or len(value) > 2000):
                raise ConfigError(
                    "bad_setting", f"{name} is no text of up to 2,000 characters.", "Correct it."
                )
        wanted = {name: value.strip() or None if value else None for name, value in changes.items()}
        path = self._house.settings.home / _FILE
        after = {k: v for k, v in (read_config(path) | wanted).items() if v is not None}
        self._house.check(env.with_layer(_FILE, after))
        if wanted.get("SEARCHLOOP_MODEL"):
            self._on_loop(self._known(wanted["SEARCHLOOP_MODEL"]))
        change_config(path, wanted)
        self._on_loop(self._adopt(env, after))
        return self.read(call)

    async def _known(self, model: str | None) -> None:
        self._house.runner.provider(model)

    async def _adopt(self, env: Environment, values: Mapping[str, str]) -> None:
        env.put(_FILE, values)
        self._house.use(self._house.check(env))

    def _public(self) -> list[Setting]:
        return [setting for setting in self._house.declared() if not setting.secret]

    def _shown(self, setting: Setting) -> dict[str, Any]:
        env = self._house.settings.env
        name = next((n for n in (setting.name, *setting.aliases) if env.get(n)), setting.name)
        return {
            "name": setting.name,
            "value": masked(env.get(name) or ""),
            "default": setting.default,
            "origin": env.origin(name),
            "help": setting.help,
            "changeable": _changeable(setting, env),
        }


def _changeable(setting: Setting, env: Environment) -> bool:
    origins = {env.origin(name) for name in (setting.name, *setting.aliases)}
    return not _FIXED.fullmatch(setting.name) and origins <= {"default", _FILE}


def _cannot(name: str, env: Environment | None) -> ConfigError:
    if env is None:
        return ConfigError("unknown_setting", f"There is no setting {name[:80]!r}.", "Check it.")
    where = env.origin(name)
    how = "Change it there" if where not in ("default", _FILE) else "Set it in .env"
    return ConfigError(
        "not_changeable",
        f"{name} cannot be changed here" + (f": it is set by {where}." if where else "."),
        f"{how}, then start searchloop again.",
    )
