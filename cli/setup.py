"""Runs `searchloop setup`: chooses engines, readers and providers, saves keys, tries each one once.

A key is never an argument, because other users can see those.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from getpass import getpass
from pathlib import Path
from typing import Any, Literal

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.providers import load, names, settings_of
from searchloop.agent.settings import (
    LOWEST,
    Environment,
    Setting,
    Settings,
    default_home,
    load_environment,
    read_config,
)
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.settings.keys import KeyStore
from searchloop.agent.tools.backend import error_words
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ModelInfo
from searchloop.analysis.told import did_you_mean, one_of
from searchloop.cli import FAILED, OK
from searchloop.cli.arguments import output, pair, tell, warn
from searchloop.cli.search import ask_backend, try_engine
from searchloop.compose import check_settings, every_setting, sent_to
from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.readers import find_services

Kind = Literal["engine", "reader", "provider"]
# An address that is made for being asked, and where every reader finds text.
TEST_URL = "https://example.com/"
_LISTS: Mapping[Kind, str] = {"engine": "SEARCH_ENGINES", "reader": "SEARCH_READERS"}
_HEADS: Mapping[Kind, str] = {
    "engine": "Search engines",
    "reader": "Readers elsewhere, for pages that need a browser; each is told what it shall read",
    "provider": "Models",
}


@dataclass(frozen=True, slots=True)
class Part:
    """An engine, a reader or a provider. `needs` names the settings it cannot work without."""

    kind: Kind
    name: str
    settings: tuple[Setting, ...]
    needs: tuple[str, ...]
    untested: bool = False

    @property
    def key(self) -> Setting | None:
        """Returns the setting that holds its key, if it takes one."""
        return next((setting for setting in self.settings if setting.secret), None)

    def missing(self, env: Mapping[str, str], *, wanted: bool = False) -> list[Setting]:
        """Lists the needed settings without a value under any of their names; with `wanted` its key
        as well, which it may do without.
        """
        own = [s for s in self.settings if s.name in self.needs or (wanted and s is self.key)]
        return [s for s in own if not any(env.get(n) for n in (s.name, *s.aliases))]


def find_parts(kind: Kind) -> dict[str, Part]:
    """Returns every part of this kind by name."""
    if kind == "provider":
        found = [Part(kind, name, tuple(settings_of(name)), ()) for name in names()]
    else:
        plugins = (find_engines() if kind == "engine" else find_services()).values()
        own = {p.name: tuple(Setting(**asdict(s)) for s in p.settings) for p in plugins}
        found = [
            Part(kind, p.name, own[p.name], p.needs, getattr(p, "untested", False)) for p in plugins
        ]
    return {part.name: part for part in found if part.settings or kind != "provider"}


def _try(part: Part, url: str) -> tuple[bool, str]:
    """Asks the part once, as it will be asked later; returns if it works, and what it said."""
    if part.kind == "engine":
        fault, results = try_engine(part.name)
        found = "a result" if results else "no result, and no fault either"
        return not fault, fault or f"it answers, with {found}"
    if part.kind == "reader":
        page = ask_backend("/api/open-page", {"url": url, "reader": part.name})
        if page["status"] == "ok":
            return True, f"it read {page['original_length']} characters of {url}"
        return False, error_words(page["error"]) or page["status"]
    models = asyncio.run(_listed(part.name))
    ready = [model for model in models if model.available]
    if ready:
        return True, f"it has {len(ready)} models, e.g. {ready[0].id}"
    why = next((f"{m.missing} {m.remedy or ''}".strip() for m in models if m.missing), "")
    return False, why or "it lists no model"


async def _listed(provider: str) -> list[ModelInfo]:
    settings = Settings.load()
    async with aclosing(Transport(offline=settings.offline)) as transport:
        return await load(provider, settings.env, transport).models()


def _change(values: Mapping[str, str]) -> None:
    """Saves settings that are no keys. Drops a key whose address changes, and says so."""
    declared = {setting.name: setting for setting in every_setting()}
    for name in values:
        if name not in declared:
            near = did_you_mean(name, declared)
            what = f"There is no setting {name[:60]!r}."
            raise ConfigError("unknown_setting", what, f"{near}See `searchloop config`.")
        if declared[name].secret:
            what = f"{name} is a key, and keys do not belong on the command line."
            why = "Other users of the machine can see it there"
            how = f"{why}: use --key-stdin, and delete this one from your shell's history."
            raise ConfigError("key_in_arguments", what, how)
    env = load_environment()
    wanted = {name: value or None for name, value in values.items()}
    after = {k: v for k, v in (read_config(_config(env)) | wanted).items() if v is not None}
    check_settings(env.with_layer(LOWEST, after))
    change_config(_config(env), wanted)
    env = load_environment()
    for name in values:
        _tell_saved((name,), str(_config(env)), env, LOWEST)
    for gone in _store(env).drop_strayed(env):
        warn(f"{gone} was forgotten: it was saved for another address. Save it again.")


def _save_key(setting: Setting, value: str, *, in_file: bool) -> str:
    """Saves a key and returns the place: the keyring or the name of a file."""
    env = load_environment()
    place = _store(env).save(setting.name, value, sent_to(setting.name), env, file=in_file)
    where = "the system's keyring" if place == "keyring" else str(default_home(env) / place)
    _tell_saved((setting.name, *setting.aliases), where, load_environment(), place, LOWEST)
    return place


def _tell_saved(names: tuple[str, ...], where: str, env: Environment, *origins: str) -> None:
    warn(f"{names[0]} is saved in {where}.")
    for name in names:
        if env.origin(name) not in ("default", *origins):
            warn(f"It does not hold now: {env.origin(name)} sets {name} as well.")


def _use(part: Part) -> None:
    """Puts a part into the list of those that are used, if there is such a list."""
    name, env = _LISTS.get(part.kind, ""), load_environment()
    chosen = [one.strip().lower() for one in (env.get(name) or "").split(",") if one.strip()]
    # Without a list, every engine that is set up is asked.
    if not name or part.name in chosen or (part.kind == "engine" and not chosen):
        return
    if env.origin(name) not in (LOWEST, "default"):
        warn(f"Add {part.name} to {name}: {env.origin(name)} sets it.")
        return
    order = [part.name, *chosen] if part.kind == "engine" else [*(chosen or ["local"]), part.name]
    _change({name: ",".join(order)})


def _tried(part: Part, url: str) -> dict[str, Any]:
    """Asks the part once and says what came of it."""
    try:
        works, said = _try(part, url)
    except AgentError as error:
        works, said = False, str(error)
    word = "works" if works else "does not work"
    warn(f"The {part.kind} {part.name} {word}: {said.rstrip('.')}.")
    return {"works": works, "said": said}


def _fill(part: Part, *, in_file: bool) -> None:
    """Asks for what the part needs, a key without echo, and saves it."""
    for setting in part.settings:
        if setting.name not in part.needs and setting != part.key:
            continue
        ask = getpass if setting.secret else input
        value = ask(f"  {setting.help} ({setting.name}, Enter = as it is): ").strip()
        if value and setting.secret:
            _save_key(setting, value, in_file=in_file)
        elif value:
            _change({setting.name: value})


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    add = parser.add_argument
    part = parser.add_mutually_exclusive_group().add_argument
    part("--engine", metavar="NAME", help="set up this search engine")
    part("--reader", metavar="NAME", help="set up this reader")
    part("--provider", metavar="NAME", help="set up this provider of models")
    add("--key-stdin", action="store_true", help="read its key from standard input, one line")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, not a key")
    add("--forget", action="append", default=[], metavar="NAME", help="delete this saved key")
    add("--file", action="store_true", help="do not use the system's keyring")
    add("--no-test", dest="test", action="store_false", help="do not try it once")
    add("--test-url", metavar="URL", default=TEST_URL, help="the page that a reader is tried on")
    output(parser)


def run(args: argparse.Namespace) -> int:
    """Does what the options say; without any, says what is set up."""
    part = _named(args)
    if args.key_stdin and part is None:
        raise ConfigError("no_part", "Whose key is it?", "Add --engine, --reader or --provider.")
    if args.set:
        _change({name.strip(): value.strip() for name, value in map(pair, args.set)})
    for name in args.forget:
        forgotten = _store(load_environment()).forget(name)
        warn(f"{name} is forgotten." if forgotten else f"There was no saved {name}.")
    if part is None:
        return _report(args)
    done: dict[str, Any] = {"kind": part.kind, "name": part.name}
    env = load_environment()
    if args.key_stdin:
        if part.key is None:
            raise ConfigError("no_key", f"{part.name} takes no key.", "See `searchloop config`.")
        done["key"] = {"setting": part.key.name}
        done["key"]["place"] = _save_key(part.key, sys.stdin.readline(), in_file=args.file)
    elif sys.stdin.isatty() and args.output == "text" and part.missing(env, wanted=True):
        _fill(part, in_file=args.file)
    if missing := part.missing(load_environment()):
        lacks = ", ".join(setting.name for setting in missing)
        how = "--key-stdin" if missing[0].secret else f"--set {missing[0].name}=..."
        raise ConfigError("missing_setting", f"{part.name} lacks {lacks}.", f"Add {how}.")
    _use(part)
    if args.test:
        done["test"] = _tried(part, args.test_url)
    tell(args, done)
    return OK if done.get("test", {}).get("works", True) else FAILED


def _report(args: argparse.Namespace) -> int:
    """Prints what is set up, by kind, and no key."""
    states = {k: {p.name: _state(p) for p in find_parts(k).values()} for k in _HEADS}
    lines, shown = list[str](), not (args.set or args.forget)
    for kind, head in _HEADS.items() if shown else ():
        lines += [f"{head}:", *(f"  {name:<14} {said}" for name, said in states[kind].items())]
    if shown:
        lines.append("\nSet one up: `searchloop setup --engine NAME` asks for what it needs.")
    told = {"parts": states, "saved": [*_store(load_environment()).names()]}
    return tell(args, told, *lines)


def _named(args: argparse.Namespace) -> Part | None:
    """Returns the part that the options name. Raises ConfigError for an unknown one."""
    kind = next((each for each in _HEADS if getattr(args, each)), None)
    if kind is None:
        return None
    name, parts = getattr(args, kind), find_parts(kind)
    if name not in parts:
        what = f"There is no {kind} named {name[:60]!r}."
        raise ConfigError(f"unknown_{kind}", what, one_of(name, parts))
    return parts[name]


def _state(part: Part) -> str:
    """Says that the part is ready, or what it lacks."""
    env = load_environment()
    store, key = _store(env), part.key
    if key and not env.get(key.name) and (moved := store.strayed(key.name, env)):
        return f"its saved key is not used: {moved} leads elsewhere than when it was saved"
    if missing := part.missing(env):
        return "needs " + ", ".join(setting.name for setting in missing)
    if key is None or part.kind == "engine":
        return "ready, untested" if part.untested else "ready"
    with_key = any(env.get(name) for name in (key.name, *key.aliases))
    return f"ready, with {key.name}" if with_key else f"without {key.name}"


def _config(env: Environment) -> Path:
    return default_home(env) / LOWEST


def _store(env: Environment) -> KeyStore:
    assert env.key_store is not None  # load_environment gives one
    return env.key_store


ARGUMENTS = {"setup": _arguments}
