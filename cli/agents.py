"""`searchloop agents`: named presets of a session - listed, shown, made, changed, removed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.presets import Preset, Presets
from agent.settings import Settings
from cli.main import OK
from cli.text import as_json, one_line, safe

_TEXTS = ("description", "system", "model", "mode", "search")
_LISTS = ("tools", "servers")


def run(args: argparse.Namespace) -> int:
    """Does what the action says; without one it lists."""
    presets = Presets(Settings.load().home)
    action = args.action or "list"
    if action == "list":
        found = presets.all()
        if args.output == "json":
            print(as_json({"agents": [preset.as_dict() for preset in found]}))
        else:
            print("\n".join(agent_line(preset) for preset in found))
        return OK
    if action == "delete":
        presets.delete(args.name)
        print(as_json({"deleted": args.name}) if args.output == "json" else f"Removed {args.name}.")
        return OK
    if action == "create":
        preset = presets.create(args.name, _given(args))
    elif action == "edit":
        preset = presets.change(args.name, _changes(args))
    else:
        preset = presets.get(args.name)
    print(as_json(preset.as_dict()) if args.output == "json" else _whole(preset))
    return OK


def agent_line(preset: Preset) -> str:
    """An agent in one line."""
    mark = " (built in)" if preset.builtin else " (changed)" if preset.changed else ""
    return f"{preset.name:<14} {one_line(preset.description, 90)}{mark}"


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    changes = _given(args)
    if not changes:
        raise ConfigError("bad_request", "Nothing to change was named.", "See `agents edit -h`.")
    return changes


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """What the command line says; `all` stands for no restriction, `none` for an empty list."""
    given = {name: getattr(args, name) for name in _TEXTS if getattr(args, name) is not None}
    if given.get("system") == "-":
        given["system"] = sys.stdin.read()
    elif given.get("system", "").startswith("@"):
        given["system"] = _file(given["system"][1:])
    for name in ("model", "mode"):
        if given.get(name) == "":
            given[name] = None
    for name in _LISTS:
        text = getattr(args, name)
        if text is not None:
            items = [each.strip() for each in text.split(",") if each.strip()]
            given[name] = None if items == ["all"] else [] if items == ["none"] else items
    return given


def _file(name: str) -> str:
    try:
        return Path(name).read_text("utf-8")
    except UnicodeDecodeError as error:
        what = f"{name} is not UTF-8 text."
        raise ConfigError("bad_file", what, "Convert it to UTF-8 first.") from error


def _whole(preset: Preset) -> str:
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
