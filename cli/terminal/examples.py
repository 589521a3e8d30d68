"""Adds examples to the help of each command.

`examples.txt` has an example a line; it belongs to the command that it calls.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_COLUMNS = 78
_FIRST = 3  # lines of the file, for the list of all commands
_MOST = 6  # examples of a command
_FILE = Path(__file__).with_name("examples.txt")


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
