"""The words of the command line, as data; no command is imported here."""

from __future__ import annotations

import argparse
from typing import Any

from cli import parser_chat, parser_search
from cli.main import VERSION
from cli.options import output, port, subcommand

_EFFECTS = ("read", "network", "write", "exec")
_MCP_ACTIONS = (
    ("remove", "forget a server"),
    ("test", "start a server and say what comes of it"),
    ("tools", "show a server's tools"),
    ("approve", "look at a changed tool and use it again"),
    ("login", "log in to a server in the browser"),
    ("enable", "switch a server on, or one of its tools"),
    ("disable", "switch a server off, or one of its tools"),
)


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments; exits with code 2 and one line on bad usage."""
    ours, after = argv, list[str]()
    if argv[:2] == ["mcp", "add"] and "--" in argv:  # argparse takes no command behind options
        ours, after = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    args = build().parse_args(ours)
    if args.module == "mcp":
        args.command = after
    return args


def build() -> argparse.ArgumentParser:
    """The whole parser."""
    parser = argparse.ArgumentParser(
        prog="searchloop",
        description="Ask any model, with one honest web-search switch, and check every source.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"searchloop {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in (
        _serve,
        parser_chat.ask,
        parser_chat.chat,
        parser_search.search,
        parser_search.open,
        _models,
        _doctor,
        _replay,
        parser_search.library,
        _mcp,
        parser_chat.sessions,
        _export,
        parser_chat.agents,
        _config,
        parser_search.setup,
        _backend,
    ):
        add(commands)
    return parser


def _serve(commands: Any) -> None:
    command = subcommand(commands, "serve", "Start the web UI and the API")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on")
    command.add_argument("--port", type=port, default=8321, help="port (0 = any free one)")
    command.add_argument("--open", action="store_true", help="open a browser")


def _models(commands: Any) -> None:
    command = subcommand(commands, "models", "List the models and what each needs")
    output(command)
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    pull = actions.add_parser("pull", help="get a model for a local server, with progress")
    pull.add_argument("model", metavar="NAME", help="for example qwen3:8b")
    pull.set_defaults(module="pull")
    unload = actions.add_parser("unload", help="take a model out of a local server's memory")
    remove = actions.add_parser("remove", help="delete a model from a local server's disk")
    for action in (unload, remove):
        action.add_argument("model", metavar="NAME", help="as `searchloop models` shows it")
        action.set_defaults(module="unload")
    for action in actions.choices.values():
        output(action)


def _doctor(commands: Any) -> None:
    command = subcommand(commands, "doctor", "Say what is there, what is missing and how to get it")
    output(command)


def _replay(commands: Any) -> None:
    command = subcommand(commands, "replay", "Decode again what providers answered, offline")
    command.add_argument("file", metavar="FILE", help="a trace of a chat (- = stdin)")
    output(command)


def _export(commands: Any) -> None:
    command = subcommand(commands, "export", "Write a session to a file, sources as footnotes")
    command.add_argument("session", nargs="?", metavar="ID", help="default: the last one")
    formats = ("md", "html", "json", "trace")
    command.add_argument("--format", choices=formats, default="md", help="default: md")
    command.add_argument("-f", "--file", metavar="FILE", help="default: standard output")
    command.add_argument("--force", action="store_true", help="replace a file that is there")


def _mcp(commands: Any) -> None:
    command = subcommand(commands, "mcp", "Servers whose tools models may use")
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="show the servers and what is wrong with them")
    add = actions.add_parser("add", help="add a server: NAME -- COMMAND ARGUMENT..., or --url")
    add.add_argument("name", nargs="?", metavar="NAME")
    add.add_argument("--url", help="address of a server that speaks Streamable HTTP")
    add.add_argument("--json", metavar="FILE", help='"mcpServers" JSON from a file (- = stdin)')
    add.add_argument("--env", action="append", metavar="NAME=VALUE", help="a variable it gets")
    add.add_argument("--header", action="append", metavar="NAME=VALUE", help="sent to its address")
    add.add_argument("--cwd", metavar="DIR", help="folder to run it in")
    add.add_argument("--effect", choices=_EFFECTS, help="what its tools do (default: exec)")
    add.add_argument("--private", action="store_true", help="its results are your private data")
    add.add_argument("--replace", action="store_true", help="replace a server of this name")
    for name, help in _MCP_ACTIONS:
        actions.add_parser(name, help=help).add_argument("name", metavar="NAME")
    actions.choices["login"].add_argument("--no-browser", action="store_true", help="only show it")
    actions.choices["approve"].add_argument("tool", metavar="TOOL")
    for name in ("enable", "disable"):
        actions.choices[name].add_argument("tool", nargs="?", metavar="TOOL")
    trust = actions.add_parser("trust", help="use a project's .mcp.json, as it is now")
    trust.add_argument("workspace", nargs="?", metavar="DIR", help="default: this folder")
    for name in ("trust", "approve"):
        actions.choices[name].add_argument("--yes", action="store_true", help="do not ask")
    for name, action in actions.choices.items():
        output(action)
        if name != "trust":
            action.add_argument("--workspace", metavar="DIR", help="with this folder's .mcp.json")


def _config(commands: Any) -> None:
    command = subcommand(commands, "config", "Show the settings; secrets are not shown")
    command.add_argument("--origin", action="store_true", help="say where each value came from")
    output(command)


def _backend(commands: Any) -> None:
    command = subcommand(commands, "search-backend", "Run the search backend alone")
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("clear-cache", help="forget the answers and pages that are kept")
    serve = actions.add_parser("serve", help="listen for search requests")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument("--port", type=port, default=3002, help="port")
    serve.add_argument(
        "--name",
        action="append",
        default=[],
        help="a further host name by which it is called, e.g. host.docker.internal",
    )
