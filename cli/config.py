"""`searchloop config`: the settings in force and where each came from."""

from __future__ import annotations

import argparse

from agent.known_secrets import masked
from agent.settings import default_home, load_environment
from cli.main import OK
from cli.text import one_line
from web.compose import every_setting


def run(args: argparse.Namespace) -> int:
    """One setting a line: NAME = value, and with --origin where it was set."""
    env = load_environment()
    for setting in every_setting():
        names_ = (setting.name, *setting.aliases)
        name = next((n for n in names_ if env.get(n)), setting.name)
        value = env.get(name) or setting.default
        if name == "SEARCHLOOP_HOME":
            value = value or str(default_home(env))
        secret = setting.secret and env.get(name)
        shown = "(set, not shown)" if secret else masked(value) or "(not set)"
        origin = f"  # {env.origin(name)}" if args.origin else ""
        print(f"{name} = {one_line(shown, 200)}{origin}")
    return OK
