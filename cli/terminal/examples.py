"""The parser of commands: examples in its help, and errors in one sentence that name what is near.

`examples.txt` has an example a line; it belongs to the command that it calls.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NoReturn

from searchloop.analysis.told import did_you_mean

_COLUMNS = 78
_FIRST = 3  # lines of the file, for the list of all commands
_MOST = 6  # examples of a command
_FILE = Path(__file__).with_name("examples.txt")
_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
_MISSING = re.compile(
    r"(?:the following|one of the) arguments (?:are required: )?(.+?)(?: is required)?"
)
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)", re.DOTALL)


# Commands below a command, and words that people know from elsewhere, by what they mean here.
ELSEWHERE = {
    word: command
    for command, words in {
        **{f"sessions {each}": each for each in ("archive", "backup", "import", "restore")},
        "sessions cancel": "cancel kill stop",
        "sessions delete": "delete rm",
        "sessions find": "find grep",
        "sessions undo": "undo revert rollback",
        "sessions": "history log logs",
        "models default": "default use",
        "models pull": "pull download",
        "models": "list ls ps",
        "setup": "auth configure init install key keys login logout",
        "serve": "server start ui up web",
        "chat": "continue repl resume run shell",
        "config": "env get set settings",
        "doctor": "debug info status",
        "library add": "add index",
        "mcp test": "tools",
        "ask": "prompt query",
    }.items()
    for word in words.split()
}


def meant(word: str, commands: Iterable[str], *, alone: bool = True) -> str:
    """Asks which command a word may mean, "" for a question; `alone` if no other word follows."""
    if set(" ?") & set(word):
        return ""
    elsewhere = did_you_mean(word, (), 0.8, ELSEWHERE) if alone else ""
    return elsewhere if word in ELSEWHERE else did_you_mean(word, commands) or elsewhere


class Parser(argparse.ArgumentParser):
    """Tells a mistake as all our errors are told, with what may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Ends with code 2."""
        near = ""
        if choice := _CHOICE.fullmatch(message):
            name, word, listed = choice[1], choice[2], re.findall(r"[\w-]+", choice[3])
            kind = name.lower() if name in ("COMMAND", "ACTION") else ""
            message = f"there is no {kind} {word!r}" if kind else f"{name} cannot be {word!r}"
            near = did_you_mean(word, listed) or f"Choose from {', '.join(listed)}. "
            if kind == "command":
                near = f"{meant(word, listed)}To ask it as it is: `{self.prog} ask {word}`. "
        elif unknown := _UNKNOWN.fullmatch(message):
            options = [o for _, each in self._below() for o in each._option_string_actions]
            near = did_you_mean(unknown[1].split()[0].partition("=")[0], options)
            said = unknown[1] if unknown[1].startswith("-") else repr(unknown[1])
            message = f"{said} is not understood"
        elif missing := _MISSING.fullmatch(message):
            below = ", ".join(each.prog.rpartition(" ")[2] for each in subparsers_of(self))
            near = f"Choose from {below}. " if below else ""
            message = f"{missing[1].upper()} is missing"
        message = message.removeprefix("argument ")
        message = message[:1].upper() + message[1:]
        self.exit(2, f"searchloop: {message}. {near}`{self.prog} --help` lists what there is.\n")

    def _below(self) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        yield self.prog, self
        yield from subparsers(self)


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
