"""Adds examples to the help of each command, and completes commands in the user's shell.

`examples.txt` has an example a line; it belongs to the command that it calls.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from searchloop.cli import OK

_COLUMNS = 78
_FIRST = 3  # lines of the file, for the list of all commands
_MOST = 6  # examples of a command
_FILE = Path(__file__).with_name("examples.txt")
_FILES = frozenset({"files", "schema", "path", "batch", "file", "bundle"})
_FOLDERS = frozenset({"workspace", "folder"})


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Adds theirs to a command and the commands below it."""
    below = dict(subparsers(parser))
    for each in (parser, *below.values()):
        lines = [line for line in _lines() if _names(line, each.prog)]
        deeper = [other.prog for other in subparsers_of(each)]
        own = [line for line in lines if not any(_names(line, prog) for prog in deeper)]
        if own or lines:
            about = textwrap.fill(each.epilog, _COLUMNS) + "\n\n" if each.epilog else ""
            each.epilog = f"{about}examples:\n" + "\n".join(
                f"  {line}" for line in (own or lines)[:_MOST]
            )
            each.formatter_class = argparse.RawDescriptionHelpFormatter


def add_first_examples(parser: argparse.ArgumentParser) -> None:
    """Adds the first lines of the file to the list of all commands."""
    first = "".join(f"  {line}\n" for line in _lines()[:_FIRST])
    parser.epilog = f"examples:\n{first}\nsearchloop COMMAND --help has more."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


@cache
def _lines() -> tuple[str, ...]:
    return tuple(_FILE.read_text("utf-8").splitlines())


def _names(line: str, prog: str) -> bool:
    return line == prog or line.startswith(f"{prog} ")


def subparsers_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Returns the parsers of the commands right below one."""
    return [
        below
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for below in action.choices.values()
    ]


def subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yields the parsers of all commands below one, by what a user types."""
    for below in subparsers_of(parser):
        yield below.prog, below
        yield from subparsers(below)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_completions)
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "powershell"))


def _completions(args: argparse.Namespace) -> int:
    """Prints a script that completes commands, options and files in a shell.

    It is made for this version: whoever installs another one writes it anew.
    """
    import shtab

    kinds: Mapping[str, object] = dict.fromkeys(_FILES, shtab.FILE)
    kinds = {**kinds, **dict.fromkeys(_FOLDERS, shtab.DIRECTORY)}
    whole = args.every_command()
    for each in (whole, *dict(subparsers(whole)).values()):
        for action in each._actions:
            if action.dest in kinds and action.nargs != 0:
                action.complete = kinds[action.dest]
    print(shtab.complete(whole, args.shell))
    return OK


ARGUMENTS = {"completions": _arguments}
