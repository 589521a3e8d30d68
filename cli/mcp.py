"""Runs `searchloop mcp`: the servers whose tools models may use."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import threading
import webbrowser
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.mcp import McpServers
from searchloop.agent.mcp import config as edit
from searchloop.agent.mcp.login import log_in
from searchloop.agent.settings import Settings
from searchloop.analysis.told import did_you_mean
from searchloop.cli import FAILED, OK
from searchloop.cli.arguments import (
    number,
    one_line,
    output,
    pair,
    read_file,
    safe,
    tell,
    warn,
    whole,
)

_NAMED_ACTIONS = (
    ("remove", "forget a server"),
    ("test", "start a server; say what comes of it, and list its tools"),
    ("approve", "look at a changed tool and use it again"),
    ("login", "log in to a server in the browser"),
    ("enable", "switch a server on, or one of its tools"),
    ("disable", "switch a server off, or one of its tools"),
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run, workspace=None)
    output(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="show the servers and what is wrong with them")
    add = actions.add_parser("add", help="add a server: NAME -- COMMAND ARGUMENT..., or --url")
    add.add_argument("name", nargs="?", metavar="NAME")
    add.add_argument("--url", help="address of a server that speaks Streamable HTTP")
    add.add_argument("--json", metavar="FILE", help='"mcpServers" JSON from a file (- = stdin)')
    for option, help in (("--env", "a variable it gets"), ("--header", "sent to its address")):
        add.add_argument(option, action="append", default=[], metavar="NAME=VALUE", help=help)
    add.add_argument("--cwd", metavar="DIR", help="folder to run it in")
    effects = ("read", "network", "write", "exec")
    add.add_argument("--effect", choices=effects, help="what its tools do (default: exec)")
    add.add_argument("--private", action="store_true", help="its results are your private data")
    add.add_argument("--replace", action="store_true", help="replace a server of this name")
    for name, help in _NAMED_ACTIONS:
        actions.add_parser(name, help=help).add_argument("name", metavar="NAME")
    served = actions.add_parser("serve", help="let other programs search, read and check with us")
    served.add_argument("--http", action="store_true", help="over HTTP at /mcp, not on stdin")
    served.add_argument("--port", type=whole(0, 65535), default=8321, help="for --http; 0 = any")
    served.add_argument("--search", choices=("auto", "offline", "off"), help="what they may search")
    actions.choices["login"].add_argument("--no-browser", action="store_true", help="only show it")
    actions.choices["approve"].add_argument("tool", metavar="TOOL")
    for name in ("enable", "disable"):
        actions.choices[name].add_argument("tool", nargs="?", metavar="TOOL")
    trust = actions.add_parser("trust", help="use a project's .mcp.json, as it is now")
    trust.add_argument("workspace", nargs="?", metavar="DIR", help="default: this folder")
    for name in ("trust", "approve"):
        actions.choices[name].add_argument("--yes", action="store_true", help="do not ask")
    for name, action in actions.choices.items():
        if name == "serve":
            continue
        output(action)
        if name != "trust":
            action.add_argument("--workspace", metavar="DIR", help="with this folder's .mcp.json")


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    if args.action == "serve":
        from searchloop.cli.serve import serve_mcp

        return serve_mcp(args)
    settings = Settings.load()
    return asyncio.run(_ACTIONS[args.action or "list"](args, settings))


def _folder(args: argparse.Namespace) -> str | None:
    if not args.workspace:
        return None
    if not (folder := Path(args.workspace).expanduser().resolve()).is_dir():
        raise ConfigError("no_folder", f"There is no folder {folder}.", "Check the path.")
    return str(folder)


async def _list(args: argparse.Namespace, settings: Settings) -> int:
    found = McpServers(settings).overview(_folder(args))
    lines = list[str]()
    for server in found["servers"]:
        marks = " ".join(mark for mark in ("disabled", "private") if server[mark])
        lines.append(f"{one_line(server['name'], 24):<24} {_command(server)}  {marks}".rstrip())
    if found["untrusted"]:
        lines.append(safe(f"{found['untrusted']['file']} is not used until you trust it:"))
        lines += _commands(found["untrusted"]["commands"])
        lines.append(safe(f"  searchloop mcp trust {shlex.quote(args.workspace)}"))
    if not lines and not found["problems"]:
        lines.append(f"No servers. They are read from {found['file']}.")
    for problem in found["problems"]:
        place = problem["file"]
        warn(f"{place}: {problem['message']} {problem['remedy']}")
    tell(args, found, *lines)
    return FAILED if found["problems"] else OK


def _command(server: Mapping[str, Any]) -> str:
    return one_line(" ".join(server["command"]), 200)


def _commands(commands: list[dict[str, Any]]) -> list[str]:
    return [f"  {one_line(each['name'], 24)}: {_command(each)}" for each in commands]


async def _add(args: argparse.Namespace, settings: Settings) -> int:
    raw, servers = edit.pasted(_text(args))
    edit.add(settings.home / "mcp.json", raw, replace=args.replace)
    verbs = {"stdio": "runs", "http": "asks"}
    named = [
        (one_line(s.name, 64), verbs[s.kind], one_line(" ".join(s.shown), 300)) for s in servers
    ]
    lines = [f"Added {name}, which {verb}: {shown}" for name, verb, shown in named]
    lines.append(f"Try it: searchloop mcp test {shlex.quote(named[0][0])}")
    return tell(args, {"added": [server.name for server in servers]}, *lines)


def _text(args: argparse.Namespace) -> str:
    """Returns the JSON of the servers to add."""
    if args.json:
        return read_file(args.json)
    if not args.name or bool(args.url) == bool(args.program):
        what = "A server needs a name, and a command or an address."
        how = "For example: searchloop mcp add files -- npx -y PACKAGE FOLDER"
        raise ConfigError("bad_request", what, how)
    command = {"command": args.program[0], "args": args.program[1:]} if args.program else {}
    pairs = {"env": dict(map(pair, args.env)), "headers": dict(map(pair, args.header))}
    others = {key: getattr(args, key) for key in ("url", "effect", "cwd", "private")}
    server = {key: value for key, value in (command | pairs | others).items() if value}
    return json.dumps({"mcpServers": {args.name: server}})


async def _remove(args: argparse.Namespace, settings: Settings) -> int:
    McpServers(settings).remove(args.name)
    return tell(args, {"removed": args.name}, "Removed.")


async def _test(args: argparse.Namespace, settings: Settings) -> int:
    async with aclosing(McpServers(settings)) as source:
        told = await source.test(args.name, _folder(args))
    lines = list[str]()
    if told["state"] == "ready":
        tools = [tool for tool in told["tools"] if tool["enabled"]]
        named = " ".join(word for word in (told["title"], told["version"]) if word)
        protocol = one_line(told["protocol"], 20)
        lines += [f"It works: {one_line(named or told['name'])}, MCP {protocol}."]
        lines += [f"{number(len(tools), 'tool')}, about {told['tokens']} tokens in each request."]
        lines += [*map(_tool, told["tools"]), *map(safe, told["oddities"])]
    elif args.output == "text":
        error = told["error"] or {"message": f"It is {told['state']}.", "remedy": ""}
        warn(f"{error['message']} {error['remedy']}".strip())
        if told["stderr"]:
            warn(f"It wrote:\n{told['stderr'].rstrip()}")
    tell(args, told, *lines)
    return OK if told["state"] == "ready" else FAILED


def _tool(tool: Mapping[str, Any]) -> str:
    state = "suspended" if tool["suspended"] else "on" if tool["enabled"] else "off"
    state = "unusable" if tool["unusable"] else state
    about = one_line(tool["unusable"] or tool["description"], 60)
    return f"{tool['offered_as']:<40} {state:<9} {tool['effect']:<7} {about}"


async def _approve(args: argparse.Namespace, settings: Settings) -> int:
    async with aclosing(McpServers(settings)) as source:
        told = await source.test(args.name, _folder(args))
        tool = next((t for t in told["tools"] if t["name"] == args.tool), None)
        if tool is None or told["error"]:
            names = [each["name"] for each in told["tools"]]
            remedy = did_you_mean(args.tool, names) or f"It has: {', '.join(names) or 'none'}."
            lacks = {"message": f"It has no tool {args.tool!r}.", "remedy": remedy}
            error = told["error"] or lacks
            raise ConfigError("no_tool", error["message"], error["remedy"])
        if not tool["suspended"]:
            print("It is as you approved it.")
            return OK
        print(safe(tool["suspended"]["diff"]))
        if not args.yes and not _asked("Use it as it is now?"):
            return FAILED
        await source.approve(args.name, args.tool, tool["definition"], _folder(args))
        print("Approved.")
        return OK


async def _trust(args: argparse.Namespace, settings: Settings) -> int:
    source = McpServers(settings)
    folder = _folder(args) or str(Path.cwd())
    waits = source.catalogue.find(folder).untrusted
    if waits is None:
        print("There is nothing to trust: no .mcp.json, or you trust it already.")
        return OK
    print(safe(f"{waits.file} runs or asks:"))
    asked = [{"name": name, "command": command} for name, command in waits.commands]
    print("\n".join(_commands(asked)))
    if not args.yes and not _asked("Trust it, as long as it does not change?"):
        return FAILED
    source.catalogue.trust(folder, waits.hash)
    print("Trusted.")
    return OK


async def _login(args: argparse.Namespace, settings: Settings) -> int:
    server = McpServers(settings).named(args.name, _folder(args))

    def show(address: str) -> None:
        warn(f"Log in here: {address}")
        if not args.no_browser:
            # A command in $BROWSER may end with the browser only.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    await log_in(server, settings.home, show, offline=settings.offline)
    print("Logged in.")
    return OK


async def _enable(args: argparse.Namespace, settings: Settings) -> int:
    on = args.action == "enable"
    changes = {"tools": {args.tool: {"enabled": on}}} if args.tool else {"disabled": not on}
    edit.switch(settings.home / "mcp.json", args.name, changes)
    print(f"{one_line(args.tool or args.name, 64)} is {'on' if on else 'off'}.")
    return OK


def _asked(question: str) -> bool:
    if not sys.stdin.isatty():
        warn("Not done: nobody can be asked here. Add --yes to agree.")
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


_ACTIONS = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "test": _test,
    "approve": _approve,
    "trust": _trust,
    "login": _login,
    "enable": _enable,
    "disable": _enable,
}
ARGUMENTS = {"mcp": _arguments}
