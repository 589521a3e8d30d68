"""`searchloop setup`: choose engines, readers and providers, save their keys, ask each one once.

Keys are typed without echo or come on standard input, never as an argument: other users see those.
They go into the system's keyring, else into a file that only the user can read. Everything else
goes into config.toml. Exit code 1 when what was set up does not answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from getpass import getpass
from pathlib import Path
from typing import Any

from agent.config_file import change_config
from agent.errors import ConfigError
from agent.keys import KeyStore
from agent.settings import LOWEST, Environment, Setting, default_home, load_environment, read_config
from cli.main import FAILED, OK
from cli.parts import TEST_URL, Kind, Part, chosen, find_part, find_parts, try_part
from cli.text import as_json, one_line, safe
from web.compose import check_settings, every_setting, sent_to

_LISTS: Mapping[Kind, str] = {"engine": "SEARCH_ENGINES", "reader": "SEARCH_READERS"}
_HEADS: Mapping[Kind, str] = {
    "engine": "Search engines",
    "reader": "Readers elsewhere, for pages that need a browser; each is told what it shall read",
    "provider": "Models",
}


@dataclass(slots=True)
class Setup:
    """One run. `ask` and `ask_secret` put a question to the user, `tell` says what happened."""

    ask: Callable[[str], str] = input
    ask_secret: Callable[[str], str] = getpass
    tell: Callable[[str], None] = field(default=lambda text: print(safe(text), file=sys.stderr))
    in_file: bool = False
    test_url: str = TEST_URL

    def change(self, values: Mapping[str, str]) -> None:
        """Settings that are no keys. A key whose address changes is dropped, and that is said."""
        declared = {setting.name: setting for setting in every_setting()}
        for name in values:
            if name not in declared:
                raise ConfigError("unknown_setting", f"There is no setting {name[:60]!r}.", _SEE)
            if declared[name].secret:
                raise ConfigError(
                    "key_in_arguments",
                    f"{name} is a key, and keys do not belong on the command line.",
                    "Other users of the machine can see it there: use --key-stdin, and take this "
                    "one out of your shell's history.",
                )
        env = load_environment()
        wanted = {name: value or None for name, value in values.items()}
        after = {k: v for k, v in (read_config(_config(env)) | wanted).items() if v is not None}
        check_settings(env.with_layer(LOWEST, after))
        change_config(_config(env), wanted)
        env = load_environment()
        for name in values:
            self.tell(f"{name} is saved in {_config(env)}.")
            if env.origin(name) not in (LOWEST, "default"):
                self.tell(f"It does not hold now: {env.origin(name)} sets {name} as well.")
        for gone in _store(env).drop_strayed(env):
            self.tell(f"{gone} was forgotten: it was saved for another address. Save it again.")

    def save_key(self, setting: Setting, value: str) -> str:
        """Where the key is now."""
        env = load_environment()
        place = _store(env).save(setting.name, value, sent_to(setting.name), env, file=self.in_file)
        where = "the system's keyring" if place == "keyring" else str(default_home(env) / place)
        self.tell(f"{setting.name} is saved in {where}.")
        for name in (setting.name, *setting.aliases):
            if (origin := load_environment().origin(name)) not in ("default", place, LOWEST):
                self.tell(f"It does not hold now: {origin} sets {name} as well.")
        return place

    def use(self, part: Part) -> None:
        """Puts a part into the list of those that are asked, where there is such a list."""
        name = _LISTS.get(part.kind)
        env = load_environment()
        if name is None or part.name in chosen(env, name):
            return
        if part.kind == "engine" and not env.get(name):
            return  # without a list, every engine that is set up is asked
        if env.origin(name) not in (LOWEST, "default"):
            self.tell(f"Add {part.name} to {name}: {env.origin(name)} sets it.")
            return
        before = chosen(env, name) or ["local"]
        order = [part.name, *before] if part.kind == "engine" else [*before, part.name]
        self.change({name: ",".join(order)})

    def try_out(self, part: Part) -> dict[str, Any]:
        """Asks the part once and says what came of it."""
        outcome = try_part(part, self.test_url)
        word = "works" if outcome.works else "does not work"
        self.tell(f"The {part.kind} {part.name} {word}: {outcome.said.rstrip('.')}.")
        return {"works": outcome.works, "said": outcome.said}

    def walk(self) -> int:
        """Goes through all kinds with the user."""
        code = OK
        for kind in ("engine", "reader", "provider"):
            self.tell(f"\n{_HEADS[kind]}:")
            parts = find_parts(kind)
            for part in parts.values():
                self.tell(f"  {part.name:<14} {_state(part)}")
            while name := self.ask(f"Set up which {kind}? (Enter = go on) ").strip().lower():
                if name not in parts:
                    self.tell(f"There is no {kind} {one_line(name, 60)}.")
                    continue
                if not self._fill(parts[name]):
                    code = FAILED
        return code

    def _fill(self, part: Part) -> bool:
        """Asks for what the part needs, saves it, and tries it out."""
        for setting in _wanted(part):
            ask = self.ask_secret if setting.secret else self.ask
            value = ask(f"  {setting.help} ({setting.name}, Enter = as it is): ").strip()
            if not value:
                continue
            try:
                if setting.secret:
                    self.save_key(setting, value)
                else:
                    self.change({setting.name: value})
            except ConfigError as error:
                self.tell(f"{error.message} {error.remedy}")
        if part.missing(load_environment()):
            self.tell(f"The {part.kind} {part.name} {_state(part)}.")
            return True
        self.use(part)
        return bool(self.try_out(part)["works"])


def run(args: argparse.Namespace) -> int:
    """Does what the options say; without any, asks."""
    setup = Setup(in_file=args.file, test_url=args.test_url)
    part = _named(args)
    if args.key_stdin and part is None:
        raise ConfigError("no_part", "Whose key is it?", "Add --engine, --reader or --provider.")
    if args.set:
        setup.change(_pairs(args.set))
    for name in args.forget:
        forgotten = _store(load_environment()).forget(name)
        setup.tell(f"{name} is forgotten." if forgotten else f"There was no saved {name}.")
    if part is None:
        if args.set or args.forget or args.output == "json" or not sys.stdin.isatty():
            return _report(args)
        with suppress(EOFError):  # Ctrl-D: that was all
            return setup.walk()
        return OK
    done: dict[str, Any] = {"kind": part.kind, "name": part.name}
    if args.key_stdin:
        if part.key is None:
            raise ConfigError("no_key", f"{part.name} takes no key.", _SEE)
        done["key"] = {"setting": part.key.name}
        done["key"]["place"] = setup.save_key(part.key, sys.stdin.readline())
    if missing := part.missing(load_environment()):
        lacks = ", ".join(setting.name for setting in missing)
        how = "--key-stdin" if missing[0].secret else f"--set {missing[0].name}=..."
        raise ConfigError("missing_setting", f"{part.name} lacks {lacks}.", f"Add {how}.")
    setup.use(part)
    if args.test:
        done["test"] = setup.try_out(part)
    if args.output == "json":
        print(as_json(done))
    return OK if done.get("test", {}).get("works", True) else FAILED


def _report(args: argparse.Namespace) -> int:
    """What is set up, by kind; no key is shown."""
    kinds: tuple[Kind, ...] = ("engine", "reader", "provider")
    states = {kind: {p.name: _state(p) for p in find_parts(kind).values()} for kind in kinds}
    if args.output == "json":
        print(as_json({"parts": states, "saved": list(_store(load_environment()).names())}))
    elif not (args.set or args.forget):
        for kind in kinds:
            print(f"{_HEADS[kind]}:")
            for name, state in states[kind].items():
                print(f"  {name:<14} {state}")
        print("\nSet one up: searchloop setup --engine NAME --key-stdin < FILE")
    return OK


def _named(args: argparse.Namespace) -> Part | None:
    kinds: tuple[Kind, ...] = ("engine", "reader", "provider")
    named = [find_part(kind, getattr(args, kind)) for kind in kinds if getattr(args, kind)]
    if len(named) > 1:
        raise ConfigError("two_parts", "One thing is set up at a time.", "Name one of them.")
    return named[0] if named else None


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError("bad_pair", "--set wants NAME=VALUE.", "NAME= takes it away.")
        pairs[name.strip()] = value.strip()
    return pairs


def _state(part: Part) -> str:
    """Ready, or what it lacks."""
    env = load_environment()
    store, key = _store(env), part.key
    if key and not env.get(key.name) and (moved := store.strayed(key.name, env)):
        return f"its saved key is not used: {moved} leads elsewhere than when it was saved"
    if missing := part.missing(env):
        return "needs " + ", ".join(setting.name for setting in missing)
    if key is None or part.kind == "engine":
        return "ready"
    with_key = any(env.get(name) for name in (key.name, *key.aliases))
    return f"ready, with {key.name}" if with_key else f"without {key.name}"


def _wanted(part: Part) -> list[Setting]:
    """What the user is asked for: the needed settings, and the key."""
    needed = [setting for setting in part.settings if setting.name in part.needs]
    return [*needed, *([part.key] if part.key and part.key not in needed else [])]


def _config(env: Environment) -> Path:
    return default_home(env) / LOWEST


def _store(env: Environment) -> KeyStore:
    assert env.key_store is not None  # load_environment gives one
    return env.key_store


_SEE = "See `searchloop config`."
