"""`searchloop mcp`: the servers whose tools models may use."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.mcp import McpServers, edit
from agent.mcp.login import log_in
from agent.settings import Settings
from cli.main import FAILED, OK
from cli.text import as_json, number, one_line, safe


def run(args: argparse.Namespace) -> int:
    """One action."""
    settings = Settings.load()
    return asyncio.run(_ACTIONS[args.action](args, settings))


async def _with(args: argparse.Namespace, settings: Settings, work: Any) -> Any:
    """What `work` makes of the servers, which are let go of afterwards."""
    source = McpServers(settings)
    try:
        return await work(source)
    finally:
        await source.aclose()


def _folder(args: argparse.Namespace) -> str | None:
    return str(Path(args.workspace).expanduser().resolve()) if args.workspace else None


async def _list(args: argparse.Namespace, settings: Settings) -> int:
    found = McpServers(settings).overview(_folder(args))
    if args.output == "json":
        print(as_json(found))
        return OK
    for server in found["servers"]:
        marks = [m for m in ("disabled", "private") if server[m]]
        print(f"{one_line(server['name'], 24):<24} {_command(server)}  {' '.join(marks)}".rstrip())
    for problem in found["problems"]:
        place = f"{problem['file']}:{problem['line']}:{problem['column']}"
        print(safe(f"{place}: {problem['message']} {problem['remedy']}"), file=sys.stderr)
    if found["untrusted"]:
        print(safe(f"{found['untrusted']['file']} is not used until you trust it:"))
        _show_commands(found["untrusted"]["commands"])
        print(safe(f"  searchloop mcp trust {args.workspace}"))
    if not any(found[key] for key in ("servers", "problems", "untrusted")):
        print(f"No servers. They are read from {found['file']}.")
    return FAILED if found["problems"] else OK


def _command(server: Mapping[str, Any]) -> str:
    return one_line(" ".join(server["command"]), 200)


def _show_commands(commands: list[dict[str, Any]]) -> None:
    for each in commands:
        print(f"  {one_line(each['name'], 24)}: {_command(each)}")


async def _add(args: argparse.Namespace, settings: Settings) -> int:
    raw, servers = edit.pasted(_text(args))
    edit.add(settings.home / "mcp.json", raw, replace=args.replace)
    if args.output == "json":
        print(as_json({"added": [server.name for server in servers]}))
        return OK
    for server in servers:
        verb = "runs" if server.kind == "stdio" else "asks"
        print(
            f"Added {one_line(server.name, 64)}, which {verb}: {one_line(' '.join(server.shown))}"
        )
    print(f"Try it: searchloop mcp test {one_line(servers[0].name, 64)}")
    return OK


def _text(args: argparse.Namespace) -> str:
    """The JSON of the servers to add."""
    if args.json:
        return sys.stdin.read() if args.json == "-" else Path(args.json).read_text("utf-8")
    if not args.name or bool(args.url) == bool(args.command):
        raise ConfigError(
            "bad_request",
            "A server needs a name, and a command or an address.",
            "For example: searchloop mcp add files -- npx -y PACKAGE FOLDER",
        )
    server: dict[str, Any] = {"url": args.url} if args.url else {"command": args.command[0]}
    if args.command:
        server["args"] = args.command[1:]
    for key, pairs in (("env", args.env), ("headers", args.header)):
        if pairs:
            server[key] = dict(_pair(text) for text in pairs)
    server |= {key: getattr(args, key) for key in ("effect", "cwd") if getattr(args, key)}
    if args.private:
        server["private"] = True
    return json.dumps({"mcpServers": {args.name: server}})


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError("bad_request", f"{text!r} is not NAME=VALUE.", "Write NAME=VALUE.")
    return name, value


async def _remove(args: argparse.Namespace, settings: Settings) -> int:
    McpServers(settings).remove(args.name)
    print(as_json({"removed": args.name}) if args.output == "json" else "Removed.")
    return OK


async def _test(args: argparse.Namespace, settings: Settings) -> int:
    told = await _with(args, settings, lambda s: s.test(args.name, _folder(args)))
    if args.output == "json":
        print(as_json(told))
    elif told["state"] == "ready":
        tools = [tool for tool in told["tools"] if tool["enabled"]]
        named = " ".join(word for word in (told["title"], told["version"]) if word)
        protocol = one_line(told["protocol"], 20)
        print(f"It works: {one_line(named or told['name'])}, MCP {protocol}.")
        print(f"{number(len(tools), 'tool')}, about {told['tokens']} tokens in each request.")
    else:
        error = told["error"] or {"message": f"It is {told['state']}.", "remedy": ""}
        print(safe(f"{error['message']} {error['remedy']}".strip()), file=sys.stderr)
        if told["stderr"]:
            print("It wrote:", file=sys.stderr)
            print(safe(told["stderr"].rstrip()), file=sys.stderr)
    return OK if told["state"] == "ready" else FAILED


async def _tools(args: argparse.Namespace, settings: Settings) -> int:
    told = await _with(args, settings, lambda s: s.test(args.name, _folder(args)))
    if args.output == "json":
        print(as_json({"tools": told["tools"], "error": told["error"]}))
    elif told["error"]:
        print(safe(f"{told['error']['message']} {told['error']['remedy']}"), file=sys.stderr)
    else:
        for tool in told["tools"]:
            state = "suspended" if tool["suspended"] else "on" if tool["enabled"] else "off"
            state = "unusable" if tool["unusable"] else state
            about = one_line(tool["unusable"] or tool["description"], 60)
            print(f"{tool['offered_as']:<40} {state:<9} {tool['effect']:<7} {about}")
        for odd in told["oddities"]:
            print(safe(odd), file=sys.stderr)
    return FAILED if told["error"] else OK


async def _approve(args: argparse.Namespace, settings: Settings) -> int:
    async def work(source: McpServers) -> int:
        told = await source.test(args.name, _folder(args))
        tool = next((t for t in told["tools"] if t["name"] == args.tool), None)
        if tool is None or told["error"]:
            error = told["error"] or {"message": f"It has no tool {args.tool!r}.", "remedy": ""}
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

    code: int = await _with(args, settings, work)
    return code


async def _trust(args: argparse.Namespace, settings: Settings) -> int:
    source = McpServers(settings)
    folder = _folder(args) or str(Path.cwd())
    waits = source.catalogue.find(folder).untrusted
    if waits is None:
        print("There is nothing to trust: no .mcp.json, or you trust it already.")
        return OK
    print(safe(f"{waits.file} runs or asks:"))
    _show_commands([{"name": name, "command": command} for name, command in waits.commands])
    if not args.yes and not _asked("Trust it, as long as it does not change?"):
        return FAILED
    source.catalogue.trust(folder, waits.hash)
    print("Trusted.")
    return OK


async def _login(args: argparse.Namespace, settings: Settings) -> int:
    server = McpServers(settings).named(args.name, _folder(args))

    def show(address: str) -> None:
        print(f"Log in here: {safe(address)}", file=sys.stderr)
        if not args.no_browser:
            webbrowser.open(address)

    await log_in(server, settings.home, show, offline=settings.offline)
    print("Logged in.")
    return OK


async def _enable(args: argparse.Namespace, settings: Settings) -> int:
    on = args.action == "enable"
    changes: dict[str, Any] = {"disabled": not on}
    if args.tool:
        changes = {"tools": {args.tool: {"enabled": on}}}
    edit.switch(settings.home / "mcp.json", args.name, changes)
    print(f"{one_line(args.tool or args.name, 64)} is {'on' if on else 'off'}.")
    return OK


def _asked(question: str) -> bool:
    if not sys.stdin.isatty():
        print("Not done: nobody can be asked here. Add --yes to agree.", file=sys.stderr)
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


_ACTIONS = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "test": _test,
    "tools": _tools,
    "approve": _approve,
    "trust": _trust,
    "login": _login,
    "enable": _enable,
    "disable": _enable,
}
