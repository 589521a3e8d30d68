"""`searchloop config`: the settings in force and where each came from."""

from __future__ import annotations

import argparse
from importlib import import_module

from agent.providers import names
from agent.settings import SETTINGS, Setting, default_home, load_environment
from cli.main import OK
from cli.text import one_line
from search_backend.engines import find_engines
from search_backend.settings import SETTINGS as BACKEND_SETTINGS


def run(args: argparse.Namespace) -> int:
    """One setting a line: NAME = value, and with --origin where it was set."""
    env = load_environment()
    for setting in every_setting():
        names_ = (setting.name, *setting.aliases)
        name = next((n for n in names_ if env.get(n)), setting.name)
        value = env.get(name) or setting.default
        if name == "SEARCHLOOP_HOME":
            value = value or str(default_home(env))
        shown = "(set, not shown)" if setting.secret and env.get(name) else value or "(not set)"
        origin = f"  # {env.origin(name)}" if args.origin else ""
        print(f"{name} = {one_line(shown, 200)}{origin}")
    return OK


def every_setting() -> list[Setting]:
    """The settings of the agent, of each provider, of the search backend and of each engine."""
    found = {s.name: s for s in SETTINGS}
    for provider in names():
        module = import_module(f"agent.providers.{provider.replace('-', '_')}")
        found.update({s.name: s for s in module.SETTINGS})
    for name, default, help in BACKEND_SETTINGS:
        found.setdefault(name, Setting(name, help, default))
    for engine in find_engines().values():
        for own in engine.settings:
            setting = Setting(own.name, own.help, own.default, own.aliases, own.secret)
            found.setdefault(own.name, setting)
    return list(found.values())
