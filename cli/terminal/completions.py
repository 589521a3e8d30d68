"""Completes commands, options, files and names in the user's shell.

The script of a shell asks `searchloop completions --names KIND` when Tab is pressed, so that it
knows the models, sessions, agents and engines that there are at that moment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping

from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.mcp import McpServers
from searchloop.agent.providers import names as providers
from searchloop.agent.run.prompts import NamedAgents
from searchloop.agent.settings import Settings
from searchloop.cli import OK
from searchloop.cli.terminal.examples import subparsers
from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.readers import find_services

_FILES = ("files", "schema", "path", "batch", "file", "bundle", "report", "source")
_FOLDERS = ("workspace", "folder", "folders", "cwd")
# Names of arguments, and of those of one command, with the kind of what they name.
_NAMED = {
    **dict.fromkeys(("model", "check_with"), "models"),
    **dict.fromkeys(("session", "sessions"), "sessions"),
    **{kind: f"{kind}s" for kind in ("agent", "project", "engine", "reader", "provider")},
    "agents name": "agents",
    "mcp name": "servers",
}
# What bash splits at colons, the names of models have in them.
_BASH = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}"


NAMES: Mapping[str, Callable[[BareAgent], Iterable[str]]] = {
    "models": lambda agent: [each.id for each in agent.models() if each.available],
    "sessions": lambda agent: [each.id for each in agent.log.sessions()],
    "agents": lambda agent: [each.name for each in NamedAgents(agent.settings.home).all()],
    "projects": lambda agent: [each.name for each in agent.log.projects.all()],
    "servers": lambda agent: [s["name"] for s in McpServers(agent.settings).overview()["servers"]],
    "engines": lambda agent: find_engines(),
    "readers": lambda agent: ["local", *find_services()],
    "providers": lambda agent: providers(),
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_completions)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish", "powershell"))
    what.add_argument("--names", choices=NAMES, help=argparse.SUPPRESS)


def _completions(args: argparse.Namespace) -> int:
    """Prints a script for a shell, or the names of a kind for the script.

    It is made for this version: whoever installs another one writes it anew.
    """
    if args.names:
        settings = Settings.load()
        with BareAgent(settings, search_backend=None, store=settings.store) as agent:
            found = [name for name in NAMES[args.names](agent) if name.split() == [name]]
        print("\n".join(found))
        return OK
    import shtab

    files = {**dict.fromkeys(_FILES, shtab.FILE), **dict.fromkeys(_FOLDERS, shtab.DIRECTORY)}
    whole = args.every_command()
    for prog, each in (("", whole), *subparsers(whole)):
        for action in each._actions:
            kind = _NAMED.get(f"{' '.join(prog.split()[1:2])} {action.dest}", action.dest)
            kind = _NAMED.get(kind, kind)
            if kind in NAMES:
                command = f"searchloop completions --names {kind} 2>/dev/null"
                action.complete = shtab.cmd(command)
            elif action.dest in files and action.nargs != 0:
                action.complete = files[action.dest]
    print(shtab.complete(whole, args.shell, preamble=_BASH if args.shell == "bash" else ""))
    return OK


ARGUMENTS = {"completions": _arguments}
