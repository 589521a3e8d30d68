"""What the words of the command line have in common: subcommands, and checks of numbers."""

from __future__ import annotations

import argparse
from typing import Any

MODES = ("ask", "plan", "agent")
SEARCHES = ("auto", "native", "local", "off")


def subcommand(commands: Any, name: str, help: str, module: str | None = None) -> Any:
    """A subcommand; `module` is the one of `cli` that runs it."""
    command = commands.add_parser(name, help=help, description=help)
    command.set_defaults(module=module or name.replace("-", "_"))
    return command


def output(command: Any, *choices: str) -> None:
    """The option for the form of the output."""
    command.add_argument(
        "-o", "--output", choices=("text", "json", *choices), default="text", help="output format"
    )


def port(text: str) -> int:
    """0 to 65535."""
    value = natural(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; ports go up to 65535")
    return value


def natural(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    value = natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def amount(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
