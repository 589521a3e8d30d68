"""Runs `searchloop agents`: lists, shows, makes, changes and removes them. Lists `projects`."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.run.prompts import NamedAgent, NamedAgents
from searchloop.agent.settings import Settings
from searchloop.cli.arguments import (
    MODES,
    SEARCHES,
    actions,
    number,
    one_line,
    output,
    safe,
    tell,
    text_of,
)

_TEXTS = ("description", "system", "model", "mode", "search")
_LISTS = ("tools", "servers")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    output(parser)
    about = {"list": "those there are", "show": "show one", "create": "make one"}
    about |= {"edit": "change one", "delete": "delete one, or restore a built-in one"}
    for name, action in actions(parser, run, **about).items():
        if name != "list":
            action.add_argument("name", metavar="NAME")
        if name in ("create", "edit"):
            add, same = action.add_argument, "empty = as the session"
            add("--description", help="what it is for, in one line")
            add("--system", help="what the model is told; @FILE reads a file, - stdin")
            add("--model", help=f"provider:model it prefers; {same}")
            add("--mode", choices=(*MODES, ""), help=f"its mode; {same}")
            add("--search", choices=SEARCHES, help="search at the start (default: off)")
            add("--tools", metavar="LIST", help="tools it may use: patterns, all or none")
            add("--servers", metavar="LIST", help="MCP servers: patterns, all or none")


def run(args: argparse.Namespace) -> int:
    """Does what the action says; lists without one."""
    presets = NamedAgents(Settings.load().home)
    action = args.action or "list"
    if action == "list":
        found = presets.all()
        told = {"agents": [preset.as_dict() for preset in found]}
        return tell(args, told, *map(agent_line, found))
    if action == "delete":
        presets.delete(args.name)
        return tell(args, {"deleted": args.name}, f"Removed {args.name}.")
    if action == "create":
        preset = presets.create(args.name, _given(args))
    elif action == "edit":
        changes = _given(args)
        if not changes:
            what = "Nothing to change was named."
            raise ConfigError("bad_request", what, "See `searchloop agents edit -h`.")
        preset = presets.change(args.name, changes)
    else:
        preset = presets.get(args.name)
    return tell(args, preset.as_dict(), _whole(preset))


def agent_line(preset: NamedAgent) -> str:
    """Formats a preset in one line."""
    mark = " (built in)" if preset.builtin else " (changed)" if preset.changed else ""
    return f"{preset.name:<14} {one_line(preset.description, 90)}{mark}"


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Reads the fields given; `all` stands for no restriction, `none` for an empty list."""
    given = {name: getattr(args, name) for name in _TEXTS if getattr(args, name) is not None}
    if "system" in given:
        given["system"] = text_of(given["system"])
    for name in ("model", "mode"):
        if given.get(name) == "":
            given[name] = None
    for name in _LISTS:
        text = getattr(args, name)
        if text is not None:
            items = [each.strip() for each in text.split(",") if each.strip()]
            given[name] = None if items == ["all"] else [] if items == ["none"] else items
    return given


def _whole(preset: NamedAgent) -> str:
    def listed(names: tuple[str, ...] | None) -> str:
        return "all" if names is None else ", ".join(names) or "none"

    rows = [
        ("name", preset.name + (" (built in)" if preset.builtin else "")),
        ("description", preset.description),
        ("model", preset.model or "as the session"),
        ("mode", preset.mode or "as the session"),
        ("search", preset.search),
        ("tools", listed(preset.tools)),
        ("MCP servers", listed(preset.servers)),
    ]
    lines = [f"{name + ':':<13} {one_line(value, 300)}" for name, value in rows]
    return "\n".join([*lines, "", safe(preset.system or "(no system prompt)")])


def _projects_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_projects)
    output(parser)


def _projects(args: argparse.Namespace) -> int:
    """Lists the projects; the page and the API make and change them."""
    with closing(EventLog(Settings.load().store)) as log:
        found = log.projects.all()
    lines = [f"{p.id}  {one_line(p.name, 40):<40} {number(p.chats, 'chat')}" for p in found]
    told = {"projects": [each.as_dict() for each in found]}
    return tell(args, told, *(lines or ["No projects. The page makes them."]))


ARGUMENTS = {"agents": _arguments, "projects": _projects_arguments}
