"""Runs `searchloop check`: which verdict a claim deserves from a file, a page or stdin."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Settings
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.words import NEAREST, plain
from searchloop.cli.arguments import as_json, one_line, output, safe, tell, warn
from searchloop.cli.main import BAD_INPUT, OK
from searchloop.cli.show import spoken_here
from searchloop.web.check import check_source

_KEPT = ("verdict", "passage", "reason")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_check)
    parser.add_argument("claim", nargs="?", metavar="CLAIM", help="what is said")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a file, an address, or -")
    parser.add_argument("--batch", metavar="FILE", help='lines {"id", "claim", "text"}, one by one')
    output(parser)


def _check(args: argparse.Namespace) -> int:
    """Prints the verdict, the reason, and the passage that it rests on."""
    if args.batch is not None and args.claim is None:
        return _batch(args.batch)
    if args.batch is not None or not (args.claim or "").strip():
        what = "The claim is empty." if args.batch is None else "--batch brings its own claims."
        raise ConfigError("empty_claim", what, "Write CLAIM SOURCE or --batch FILE.")
    if not args.source:
        raise ConfigError("no_source", "There is no source.", "Name a file, an address, or -.")
    verdict = asyncio.run(check_source(args.claim, Settings.load(), **_source(args.source)))
    words = spoken_here()
    said, why = words[f"verdict.{verdict.verdict}"], words.worded(verdict.reason, "reason.")
    lines = [f"{verdict.verdict}: {words.say('list.sentences', first=said, second=why)}"]
    if verdict.passage:
        near = f"{words['cite.nearest']} " if verdict.verdict in NEAREST else ""
        lines.append(f"  {near}{one_line(plain(verdict.passage), 600)}")
    for note in verdict.notes:
        warn(words.worded(note, "error."))
    return tell(args, asdict(verdict), *map(safe, lines))


def _source(source: str) -> dict[str, Any]:
    """Says which kind of source this is."""
    if source.lower().startswith("file://"):
        return {"file": Path(url2pathname(urlsplit(source).path))}
    return {"url": source} if re.match(r"\w+://", source) else {"file": Path(source)}


def _batch(source: str) -> int:
    """Answers each line by a line; a line that asks nothing is named on stderr."""
    code = OK
    page_of = lru_cache(maxsize=1)(Page)  # claims about one text usually follow each other
    for number, line in _lines(source):
        try:
            asked = _asked(line)
        except ValueError as error:
            warn(f"searchloop: {one_line(source)}, line {number}: {error}")
            code = BAD_INPUT
            continue
        found = check(asked["claim"], page_of(asked["text"]))
        print(as_json({"id": asked["id"], **{name: getattr(found, name) for name in _KEPT}}))
    return code


def _lines(source: str) -> Iterator[tuple[int, bytes]]:
    try:
        with sys.stdin.buffer if source == "-" else Path(source).open("rb") as lines:
            yield from ((n, line) for n, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        told = f"{source} could not be read: {error.strerror}."
        raise ConfigError("no_source", told, "Check the path.") from error


def _asked(line: bytes) -> dict[str, Any]:
    """Reads one line of a batch. Raises ValueError in plain words."""
    try:
        asked = json.loads(line.decode("utf-8-sig"), parse_constant=int)  # NaN is no JSON
    except (ValueError, RecursionError) as error:
        raise ValueError("this is no JSON.") from error
    asks = isinstance(asked, dict) and all(type(asked.get(n)) is str for n in ("claim", "text"))
    if not asks:
        raise ValueError('an object with "id", "claim" and "text" is needed.')
    return {"id": None, **asked}


ARGUMENTS = {"check": _arguments}
