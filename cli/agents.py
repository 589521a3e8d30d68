"""Runs `searchloop agents` and `projects`: lists, shows, makes, changes and removes them."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.projects import Project
from searchloop.agent.run.prompts import NamedAgent, NamedAgents, change_project, make_project
from searchloop.agent.run.question import change_session
from searchloop.agent.run.question.files import NewFile, add_files, checked_files
from searchloop.agent.run.takeover import LeaseRenewal
from searchloop.agent.run.undo import delete_session
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import Backend, backend_for
from searchloop.agent.transport.transport import Transport
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
from searchloop.compose import search_app

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


_FIELDS = ("instructions", "model", "agent", "search", "folders")
_EVERY = 100_000  # sessions


def _projects_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_projects)
    output(parser)
    about = {"list": "those there are", "show": "show one", "create": "make one"}
    about |= {"edit": "change one", "delete": "delete one; --chats says what becomes of its chats"}
    about |= {"add": "add files", "remove": "remove a file", "move": "move chats into one"}
    for name, action in actions(parser, _projects, **about).items():
        add = action.add_argument
        if name != "list":
            add("name", metavar="NAME", help="its name or id" + (", or none" * (name == "move")))
        if name == "edit":
            add("--name", dest="fresh", metavar="NAME", help="its new name")
        if name in ("create", "edit"):
            same = "empty = as the chat"
            add("--instructions", help="what models are told; @FILE reads a file, - stdin")
            add("--model", help=f"provider:model of new chats; {same}")
            add("--agent", help=f"agent of new chats; {same}")
            add("--search", choices=(*SEARCHES, ""), help=f"search in new chats; {same}")
            words = "keep searches in the library to this folder, repeatable; empty = all"
            add("--folder", dest="folders", action="append", metavar="DIR", help=words)
        elif name == "delete":
            add("--chats", choices=("keep", "archive", "delete"), help="what becomes of its chats")
        elif name == "move":
            add("sessions", nargs="+", metavar="ID")
        elif name in ("add", "remove"):
            add("files", nargs="+", metavar="FILE")


def _projects(args: argparse.Namespace) -> int:
    """Does what the action says; lists without one."""
    settings = Settings.load()
    with closing(EventLog(settings.store)) as log:
        action = args.action or "list"
        if action == "list":
            found = log.projects.all()
            lines = [_project_line(each) for each in found] or ["No projects."]
            return tell(args, {"projects": [each.as_dict() for each in found]}, *lines)
        if action == "create":
            made = make_project(log, settings, {"name": args.name, **_fields(args)})
            return _told(args, made)
        if action == "move":
            return _move(args, log, settings)
        project = log.projects.named(args.name)
        backend = backend_for(settings, Transport(offline=settings.offline), search_app(settings))
        if action == "delete":
            return _delete(args, log, settings, project, backend)
        if action == "add":
            files = [NewFile.of(name) for name in args.files]
            project = add_files(log, project.id, asyncio.run(checked_files(files, backend)))
        elif action == "remove":
            project = _without(args.files, log, project)
        elif action == "edit":
            named = {"name": args.fresh} if args.fresh is not None else {}
            project = change_project(log, settings, project.id, {**_fields(args), **named})
        return _told(args, project)


def _fields(args: argparse.Namespace) -> dict[str, Any]:
    given = {n: getattr(args, n) or None for n in _FIELDS if getattr(args, n) is not None}
    if given.get("folders"):
        given["folders"] = [_folder(each) for each in args.folders]
    if given.get("instructions"):
        given["instructions"] = text_of(args.instructions)
    return given


def _folder(name: str) -> str:
    """Returns a folder that is written as a path as a full one; a name stays as it is."""
    is_path = name.startswith(("~", ".")) or "/" in name
    return str(Path(name).expanduser().resolve()) if is_path else name


def _without(names: list[str], log: EventLog, project: Project) -> Project:
    for name in names:
        found = [f.digest for f in project.files if name in (f.name, f.digest)]
        if not found:
            what = f"The project {project.name!r} has no file {name[:60]!r}."
            raise ConfigError("no_attachment", what, "`searchloop projects show` lists them.")
        project = log.projects.remove_file(project.id, found[0])
    return project


def _move(args: argparse.Namespace, log: EventLog, settings: Settings) -> int:
    project = None if args.name == "none" else log.projects.named(args.name).id
    for session in args.sessions:
        log.session(session)
    for session in args.sessions:
        change_session(log, settings, session, {"project": project})
    moved = number(len(args.sessions), "chat")
    return tell(args, {"project": project, "sessions": args.sessions}, f"Moved {moved}.")


def _delete(
    args: argparse.Namespace, log: EventLog, settings: Settings, project: Project, backend: Backend
) -> int:
    if project.chats and not args.chats:
        what = f"The project {project.name!r} has {number(project.chats, 'chat')}."
        remedy = "Say what becomes of them: --chats keep, archive or delete."
        raise ConfigError("chats_undecided", what, remedy)
    for session in log.sessions(limit=_EVERY, project=project.id):
        if args.chats == "delete":
            asyncio.run(LeaseRenewal.onlooker(log).cancel(session.id))
            asyncio.run(delete_session(log, settings, backend, session.id))
        else:
            kept = {"archived": True} if args.chats == "archive" else {}
            change_session(log, settings, session.id, {**kept, "project": None})
    log.projects.delete(project.id)
    return tell(args, {"deleted": project.id}, f"Deleted {one_line(project.name)}.")


def _project_line(project: Project) -> str:
    return f"{project.id}  {one_line(project.name, 40):<40} {number(project.chats, 'chat')}"


def _told(args: argparse.Namespace, project: Project) -> int:
    files = [f"  {one_line(each.label(), 200)}" for each in project.files]
    usual = [f"{n}: {getattr(project, n)}" for n in _FIELDS[1:-1] if getattr(project, n)]
    usual += [f"searches the library in: {one_line(each, 200)}" for each in project.folders]
    words = safe(project.instructions or "(no instructions)")
    head = ["Files:", *files] if files else []
    return tell(args, project.as_dict(), _project_line(project), *usual, *head, "", words)


ARGUMENTS = {"agents": _arguments, "projects": _projects_arguments}
