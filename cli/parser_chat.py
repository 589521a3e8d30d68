"""The words of the commands that talk with a model, and of what they leave: sessions, agents."""

from __future__ import annotations

from typing import Any

from cli.options import MODES, SEARCHES, amount, output, positive, subcommand


def ask(commands: Any) -> None:
    """`searchloop ask`."""
    command = subcommand(commands, "ask", "Ask one question; text on stdin is added to it")
    command.usage = "searchloop ask [OPTIONS] [QUESTION ...]"
    command.add_argument("question", nargs="*", metavar="QUESTION")
    _choices(command)
    command.add_argument(
        "--domain", action="append", metavar="D", help="search only this site (repeat for more)"
    )
    command.add_argument("--block-domain", action="append", metavar="D", help="never use this site")
    command.add_argument(
        "--run-plan", action="store_true", help="carry out the session's plan, in agent mode"
    )
    output(command, "stream-json")
    command.add_argument(
        "-v", "--verbose", action="store_true", help="tell how fast a local model was"
    )
    limits = command.add_argument_group("limits of this turn")
    limits.add_argument("--max-steps", type=positive, metavar="N", help="model steps")
    limits.add_argument("--max-searches", type=positive, metavar="N", help="searches")
    limits.add_argument("--max-pages", type=positive, metavar="N", help="pages read")
    limits.add_argument("--max-tokens", type=positive, metavar="N", help="tokens")
    limits.add_argument("--max-seconds", type=amount, metavar="S", help="seconds")
    limits.add_argument(
        "--max-cost", type=amount, metavar="USD", dest="max_cost_usd", help="dollars, if known"
    )


def _choices(command: Any) -> None:
    """What a question and a chat have in common."""
    command.add_argument("-m", "--model", help="provider:model, see `searchloop models`")
    command.add_argument("--mode", choices=MODES, help="what may be done (default: ask)")
    web = command.add_mutually_exclusive_group()
    web.add_argument("--search", choices=SEARCHES, help="how to search the web")
    web.add_argument(
        "--web", dest="search", action="store_const", const="auto", help="same as --search auto"
    )
    web.add_argument(
        "--no-web", dest="search", action="store_const", const="off", help="same as --search off"
    )
    command.add_argument("--agent", metavar="NAME", help="a preset, see `searchloop agents`")
    command.add_argument("--workspace", metavar="DIR", help="folder that file tools may use")
    command.add_argument(
        "--approve",
        choices=("ask", "auto", "never"),
        help="calls that need your approval: ask at the terminal, run them, or refuse them"
        " (default: ask; without a terminal: never)",
    )
    session = command.add_mutually_exclusive_group()
    session.add_argument(
        "-c", "--continue", dest="again", action="store_true", help="go on with the last session"
    )
    session.add_argument("--session", metavar="ID", help="go on with this session")


def chat(commands: Any) -> None:
    """`searchloop chat`."""
    command = subcommand(commands, "chat", "Talk with a model; /help lists what else can be typed")
    _choices(command)


def agents(commands: Any) -> None:
    """`searchloop agents`."""
    command = subcommand(commands, "agents", "Named presets: prompt, model, mode and tools")
    output(command)
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    output(actions.add_parser("list", help="those there are"))
    for name, words in (
        ("show", "all that one says"),
        ("create", "make one"),
        ("edit", "change one"),
        ("delete", "remove one; a built-in one is as it was then"),
    ):
        action = actions.add_parser(name, help=words)
        action.add_argument("name", metavar="NAME")
        output(action)
        if name in ("create", "edit"):
            _agent_fields(action)


def _agent_fields(action: Any) -> None:
    action.add_argument("--description", help="what it is for, in one line")
    action.add_argument("--system", help="what the model is told; @FILE reads a file, - stdin")
    action.add_argument("--model", help="provider:model it prefers; empty = as the session")
    action.add_argument("--mode", choices=(*MODES, ""), help="its mode; empty = as the session")
    action.add_argument("--search", choices=SEARCHES, help="search at the start (default: off)")
    action.add_argument("--tools", metavar="LIST", help="tools it may use: patterns, all or none")
    action.add_argument("--servers", metavar="LIST", help="MCP servers: patterns, all or none")


def sessions(commands: Any) -> None:
    """`searchloop sessions`."""
    command = subcommand(
        commands, "sessions", "List the sessions, find one, copy, check or stop them"
    )
    command.usage = (
        "searchloop sessions [-o text|json] [TEXT ... | undo ID | cancel ID | backup FILE | "
        "restore [FILE] | check]"
    )
    command.add_argument(
        "query",
        nargs="*",
        metavar="TEXT",
        help="only sessions with this text; `undo ID` takes back what its last answer did to files,"
        " `cancel ID` stops an answer, `backup` and `restore` copy, `check` looks for damage, and"
        " `restore` without a file brings back what can be read of a damaged store",
    )
    output(command)
