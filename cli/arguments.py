"""Words that commands share: common options, checks of numbers, and text safe for a terminal."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.cli import OK

MODES = ("ask", "plan", "agent")
_MOST = 4_000_000  # characters of a file that an option names
SEARCHES = ("auto", "native", "local", "offline", "off")


def output(parser: argparse.ArgumentParser, *choices: str) -> None:
    """Adds the option for the form of the output: text, JSON, and the further `choices`."""
    forms = ("text", "json", *choices)
    parser.add_argument("-o", "--output", choices=forms, default="text", help="output format")


def actions(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], **helps: str
) -> Mapping[str, argparse.ArgumentParser]:
    """Adds subcommands that `run` carries out, and returns their parsers by name."""
    group = parser.add_subparsers(dest="action", metavar="ACTION")
    group.required = parser.get_default("run") is None
    for name, help in helps.items():
        added = group.add_parser(name, help=help)
        added.set_defaults(run=run)
        output(added)
    return group.choices


def whole(least: int, most: int = 10**15) -> Callable[[str], int]:
    """Returns a reader of whole numbers in this range."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit():
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
        if not least <= int(text) <= most:
            limit = f"at least {least}" if int(text) < least else f"at most {most}"
            raise argparse.ArgumentTypeError(f"must be {limit}")
        return int(text)

    return read


def amount(text: str) -> float:
    """Reads a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def pair(text: str) -> tuple[str, str]:
    """Reads NAME=VALUE, whose value may be empty. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise ConfigError("bad_pair", f"{text!r} is not NAME=VALUE.", "Write NAME=VALUE.")
    return name, value


def read_file(name: str) -> str:
    """Returns the text of a file, or of standard input for `-`. Raises ConfigError."""
    try:
        if name == "-":
            text = sys.stdin.read(_MOST + 1)
        else:
            with open(name, encoding="utf-8") as file:
                text = file.read(_MOST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        what = f"{name} cannot be read: {reason}."
        raise ConfigError("bad_file", what, "Name a text file.") from error
    if len(text) > _MOST:
        what = f"{name} has more than {_MOST:,} characters."
        raise ConfigError("bad_file", what, "Give the part that matters.")
    return text


def text_of(words: str) -> str:
    """Returns a text of the command line: @FILE stands for that file's, - for standard input's."""
    return read_file(words.removeprefix("@")) if words == "-" or words[:1] == "@" else words


# Controls except tab and newline, line separators, bidirectional overrides and tags: untrusted
# text that holds them could move the cursor, colour, link or hide.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """Removes control, bidirectional and tag characters; newlines and tabs stay."""
    return _HARMFUL.sub("", text)


def as_json(value: Any) -> str:
    """Writes JSON on one line."""
    return safe_json(json.dumps(value, ensure_ascii=False))


def safe_json(text: str) -> str:
    """Makes an escape of what `safe` would remove, and of what standard output cannot show."""
    text = _HARMFUL.sub(_escape, text)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = re.sub(r"[^\x00-\x7f]", _escape, text)
    return text


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f")


def tell(args: argparse.Namespace, value: Any, *lines: str) -> int:
    """Prints `value` if the user asked for JSON, else the lines; returns the code of success."""
    lines = (as_json(value),) if args.output == "json" else lines
    if lines:
        say("\n".join(lines))
    return OK


def say(text: str) -> None:
    """Prints a text; on a terminal, one that is longer than it, through the program of PAGER."""
    long = text.count("\n") >= shutil.get_terminal_size().lines
    if long and os.environ.get("PAGER") and sys.stdout.isatty():
        from pydoc import pager

        pager(f"{text}\n")
    else:
        print(text)


def warn(text: str) -> None:
    """Prints a text, made safe for a terminal, on stderr."""
    print(safe(text), file=sys.stderr)


def undone(files: Iterable[str]) -> str:
    """Names the files that are as they were before, one a line."""
    lines = [f"As before: {one_line(name, 300)}" for name in files]
    return "\n".join(lines) or "The files were as before already."


def number(count: int, thing: str) -> str:
    """Counts things: `1 result`, `2 results`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def one_line(text: str, width: int = 100) -> str:
    """Puts the text on one line of at most `width` characters, safe for a terminal."""
    flat = safe(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"
