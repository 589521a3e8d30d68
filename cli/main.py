"""Runs `searchloop COMMAND ...`: finds the command, and turns known errors into one sentence.

Only the module of the command that was asked for is imported; `--version` and `--help` import none.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from importlib import import_module

from searchloop.agent import __version__
from searchloop.cli import OK, STOPPED

TYPE_CHECKING = False  # as in `typing`, which would cost `--version` a third of its time
if TYPE_CHECKING:
    import argparse

# Each command, its module, and its help. `module.ARGUMENTS[command]` declares the arguments and
# sets `run`, a function that takes the parsed arguments and returns the exit code.
COMMANDS = {
    "serve": ("searchloop.cli.serve", "Start the web UI and the API"),
    "ask": ("searchloop.cli.ask", "Ask one question; text on stdin is added to it"),
    "chat": ("searchloop.cli.chat", "Talk with a model; /help lists what else can be typed"),
    "search": ("searchloop.cli.search", "Search the web, without a model"),
    "open": ("searchloop.cli.search", "Read a web page as text"),
    "check": ("searchloop.cli.check", "Compare a claim with a text, a file or a page"),
    "audit": ("searchloop.cli.check", "Open what a report cites, and judge each sentence"),
    "models": ("searchloop.cli.models", "List the models and what each needs"),
    "doctor": ("searchloop.cli.doctor", "Say what is there, what is missing and how to get it"),
    "library": ("searchloop.cli.search", "Folders that can be searched without a network"),
    "mcp": ("searchloop.cli.mcp", "Servers whose tools models may use"),
    "sessions": ("searchloop.cli.sessions", "List the sessions; find, copy, check, stop one"),
    "export": ("searchloop.cli.sessions", "Write a session to a file, sources as footnotes"),
    "agents": ("searchloop.cli.agents", "Named presets: prompt, model, mode and tools"),
    "projects": ("searchloop.cli.agents", "List the folders of chats that the page makes"),
    "config": ("searchloop.cli.doctor", "Show the settings; secrets are not shown"),
    "plugins": ("searchloop.cli.doctor", "List what other packages bring, and from where"),
    "setup": ("searchloop.cli.setup", "Choose engines, readers, models; save their keys"),
    "completions": (
        "searchloop.cli.terminal.completions",
        "Print what completes commands in shells",
    ),
    "search-backend": ("searchloop.cli.serve", "Run the search backend alone"),
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; `argv` is by default that of the process."""
    argv = sys.argv[1:] if argv is None else argv
    _open_closed_streams()
    gc.set_threshold(100_000, 20, 50)  # imports are no garbage: looking through them takes 11 ms
    if not argv:
        argv = ["chat"] if sys.stdin.isatty() and sys.stdout.isatty() else ["--help"]
    args = None
    try:
        if argv in (["--version"], ["-V"]):
            print(f"searchloop {__version__}", flush=True)
            return OK
        args = parse(argv)
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # long lists of readers are no garbage either
        import_module("searchloop.cli.terminal.pipes").prepare_streams()
        code: int = args.run(args)
        print(end="", flush=True)  # a full disk is found out here
    except SystemExit:
        raise  # the clauses below are not looked at, so that help loads no errors
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except import_module("searchloop.cli.errors").KNOWN as error:
        return int(import_module("searchloop.cli.errors").report(error, args))
    return code


def parse(argv: list[str]) -> argparse.Namespace:
    """Returns the arguments; exits with code 2 and one line on bad usage."""
    argv = _with_command(argv)
    ours, program = argv, list[str]()
    if argv[:2] == ["mcp", "add"] and "--" in argv:  # argparse takes no command behind options
        ours, program = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    asked = next((word for word in ours if not word.startswith("-")), "")
    parser = parser_of(asked)
    args, unknown = parser.parse_known_args(ours)
    if unknown:
        below = dict(import_module("searchloop.cli.terminal.examples").subparsers(parser))
        below.get(f"searchloop {asked}", parser).error(
            f"unrecognized arguments: {' '.join(unknown)}"
        )
    args.program, args.every_command = program, partial(parser_of, None)
    return args


def _with_command(argv: list[str]) -> list[str]:
    """Adds the command that is meant where none is named: `ask`, or `search-backend serve`."""
    first, *rest = argv
    if argv in (["help"], ["version"]):
        return [f"--{first}"]
    if first == "help" and rest[0] in COMMANDS:
        return [*rest, "--help"]
    if first == "search-backend" and rest and rest[0] in ("--host", "--port", "--name"):
        return [first, "serve", *rest]
    if first in COMMANDS or first in ("-h", "--help", "-V", "--version"):
        return argv
    alone = [word for word in argv if not word.startswith("-")] == [first]
    meant = import_module("searchloop.cli.terminal.examples").meant
    option = first.startswith("-")
    return argv if not option and meant(first, COMMANDS, alone=alone) else ["ask", *argv]


def _open_closed_streams() -> None:
    """Gives a program that was started with `>&-` or `<&-` streams that lead nowhere."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115


def parser_of(asked: str | None) -> argparse.ArgumentParser:
    """Returns the parser with the arguments of the command `asked`, None for those of all.

    Another name leaves all commands without arguments, for the list of them.
    """
    parser: argparse.ArgumentParser = import_module("searchloop.cli.terminal.examples").Parser(
        prog="searchloop",
        description="Ask any model, with one honest web-search switch, and check every source.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"searchloop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, help) in COMMANDS.items():
        if asked in COMMANDS and name != asked:
            continue
        command = commands.add_parser(name, help=help, description=help)
        if asked in (name, None):
            import_module(module).ARGUMENTS[name](command)
            import_module("searchloop.cli.terminal.examples").add_examples(command)
    if asked not in COMMANDS:
        import_module("searchloop.cli.terminal.examples").add_first_examples(parser)
    return parser
