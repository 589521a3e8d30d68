"""The words of the command line, as data; no command is imported here."""

from __future__ import annotations

import argparse
from typing import Any

from cli import parser_search
from cli.main import VERSION
from cli.options import amount, output, port, positive, subcommand

_MODES = ("ask", "plan", "agent")
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
_SEARCHES = ("auto", "native", "local", "off")


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
        _ask,
        parser_search.search,
        parser_search.open,
        _models,
        _doctor,
        parser_search.library,
        _mcp,
        _sessions,
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


def _ask(commands: Any) -> None:
    command = subcommand(commands, "ask", "Ask one question; text on stdin is added to it")
    command.usage = "searchloop ask [OPTIONS] [QUESTION ...]"
    command.add_argument("question", nargs="*", metavar="QUESTION")
    command.add_argument("-m", "--model", help="provider:model, see `searchloop models`")
    command.add_argument("--mode", choices=_MODES, help="what may be done (default: ask)")
    web = command.add_mutually_exclusive_group()
    web.add_argument("--search", choices=_SEARCHES, help="how to search the web")
    web.add_argument(
        "--web", dest="search", action="store_const", const="auto", help="same as --search auto"
    )
    web.add_argument(
        "--no-web", dest="search", action="store_const", const="off", help="same as --search off"
    )
    command.add_argument(
        "--domain", action="append", metavar="D", help="search only this site (repeat for more)"
    )
    command.add_argument("--block-domain", action="append", metavar="D", help="never use this site")
    command.add_argument(
        "--approve",
        choices=("ask", "auto", "never"),
        help="calls that need your approval: ask at the terminal, run them, or refuse them"
        " (default: ask; without a terminal: never)",
    )
    output(command, "stream-json")
    command.add_argument(
        "-v", "--verbose", action="store_true", help="tell how fast a local model was"
    )
    session = command.add_mutually_exclusive_group()
    session.add_argument(
        "-c", "--continue", dest="again", action="store_true", help="go on with the last session"
    )
    session.add_argument("--session", metavar="ID", help="go on with this session")
    limits = command.add_argument_group("limits of this turn")
    limits.add_argument("--max-steps", type=positive, metavar="N", help="model steps")
    limits.add_argument("--max-searches", type=positive, metavar="N", help="searches")
    limits.add_argument("--max-pages", type=positive, metavar="N", help="pages read")
    limits.add_argument("--max-tokens", type=positive, metavar="N", help="tokens")
    limits.add_argument("--max-seconds", type=amount, metavar="S", help="seconds")
    limits.add_argument(
        "--max-cost", type=amount, metavar="USD", dest="max_cost_usd", help="dollars, if known"
    )


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


def _sessions(commands: Any) -> None:
    command = subcommand(commands, "sessions", "List the sessions, or find one")
    command.add_argument("query", nargs="*", metavar="TEXT", help="only sessions with this text")
    output(command)


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
