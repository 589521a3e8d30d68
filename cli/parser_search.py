"""The words of the commands that need no model: search, open, library, setup."""

from __future__ import annotations

from typing import Any

from cli.options import natural, output, positive, subcommand


def search(commands: Any) -> None:
    """`searchloop search`."""
    command = subcommand(commands, "search", "Search the web, without a model")
    command.add_argument("query", nargs="+", metavar="QUERY")
    command.add_argument("--engine", metavar="NAME", help="only this engine")
    command.add_argument("-n", dest="count", type=positive, default=8, help="how many results")
    _domains(command)
    command.add_argument("--time-range", choices=("d", "w", "m", "y", "all"), default="all")
    command.add_argument("--country", metavar="CC", help="meant for this country, e.g. de")
    command.add_argument("--language", metavar="LL", help="in this language, e.g. de")
    command.add_argument("--safe-search", choices=("off", "moderate", "strict"))
    output(command)


def _domains(command: Any) -> None:
    command.add_argument(
        "--domain",
        action="append",
        default=[],
        metavar="D",
        help="only this site, or several",
    )
    command.add_argument(
        "--block-domain", action="append", default=[], metavar="D", help="never this site"
    )


def open(commands: Any) -> None:
    """`searchloop open`."""
    command = subcommand(commands, "open", "Read a web page as text", module="open_page")
    command.add_argument("url", metavar="URL")
    command.add_argument("--find", metavar="TEXT", help="only the passages around TEXT")
    command.add_argument("--offset", type=natural, default=0, metavar="N", help="start here")
    command.add_argument("--max-length", type=positive, metavar="N", help="characters at the most")
    command.add_argument("--reader", metavar="NAME", help="only this reader, e.g. local")
    _domains(command)
    output(command)


def library(commands: Any) -> None:
    """`searchloop library`."""
    command = subcommand(commands, "library", "Folders that can be searched without a network")
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="index a folder or a file")
    add.add_argument("path")
    actions.add_parser("list", help="show what is indexed")
    remove = actions.add_parser("remove", help="forget a folder or a file")
    remove.add_argument("path")
    for action in actions.choices.values():
        output(action)


def setup(commands: Any) -> None:
    """`searchloop setup`."""
    command = subcommand(commands, "setup", "Choose engines, readers, models; save their keys")
    command.add_argument("--engine", metavar="NAME", help="set up this search engine")
    command.add_argument("--reader", metavar="NAME", help="set up this reader")
    command.add_argument("--provider", metavar="NAME", help="set up this provider of models")
    command.add_argument(
        "--key-stdin", action="store_true", help="its key comes on standard input, one line"
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting that is no key"
    )
    command.add_argument(
        "--forget", action="append", default=[], metavar="NAME", help="forget this saved key"
    )
    command.add_argument("--file", action="store_true", help="leave the system's keyring alone")
    command.add_argument(
        "--no-test", dest="test", action="store_false", help="do not ask it once to see"
    )
    command.add_argument(
        "--test-url",
        metavar="URL",
        default="https://example.com/",
        help="the page that a reader is tried on",
    )
    output(command)
