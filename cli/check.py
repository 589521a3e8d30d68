"""Runs `searchloop check` and `audit`: what a source says to one claim, or to each of a report."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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
from searchloop.agent.search.verdict_words import NEAREST, VERDICTS, plain
from searchloop.agent.settings import Settings
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from searchloop.auditing.results import PROBLEMS, AuditedPage
from searchloop.auditing.run import audited
from searchloop.auditing.writers import WRITERS
from searchloop.cli import BAD_INPUT, FAILED, OK, STOPPED
from searchloop.cli.arguments import as_json, one_line, output, safe, safe_json, tell, warn
from searchloop.cli.ask import agent_with_tools
from searchloop.cli.models import whole_name
from searchloop.cli.show import spoken_here
from searchloop.compose import file_text
from searchloop.compose.check import Source, check_source, check_text

_KEPT = ("verdict", "by", "passage", "reason")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_check)
    parser.add_argument("claim", nargs="?", metavar="CLAIM", help="what is said")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a file, an address, or -")
    parser.add_argument("--batch", metavar="FILE", help='lines {"id", "claim", "text"}, one by one')
    _fail_on(parser, VERDICTS)
    output(parser)


def _fail_on(parser: argparse.ArgumentParser, known: tuple[str, ...]) -> None:
    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        if wrong := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return names

    text = "exit with 1 where one of these is found: " + ", ".join(known)
    parser.add_argument("--fail-on", type=read, default=[], metavar="VERDICT,...", help=text)


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_audit)
    about = "a model that reads what words alone leave unclear"
    parser.add_argument("-m", "--model", metavar="MODEL", help=about)
    help = "the report: a file of any kind that is read, an address, or - for stdin"
    parser.add_argument("report", metavar="FILE|URL|-", help=help)
    _fail_on(parser, (*VERDICTS, *PROBLEMS, "unreachable", "refused", "moved", "uncited"))
    parser.add_argument("--offline", action="store_true", help="open only what is stored here")
    output(parser, "sarif", "html")


def _audit(args: argparse.Namespace) -> int:
    """Opens what a report cites, and prints what needs a look."""
    source, settings = _source(args.report), Settings.load()

    def told(page: AuditedPage, done: int, of: int) -> None:
        if sys.stderr.isatty():
            warn(one_line(f"{done}/{of} {page.problem or page.state}: {page.url}"))

    if args.model:
        with agent_with_tools(settings) as (agent, _):
            args.model = whole_name(agent, args.model)

    text, url = (file_text(source), None) if isinstance(source, Path) else ("", source)
    options = {"offline": args.offline, "model": args.model}
    audit = asyncio.run(audited(text, settings, url=url, told=told, **options))
    name = "" if args.report == "-" else args.report
    made = WRITERS[args.output](audit, spoken_here(), name)
    print(safe(made) if args.output in ("text", "html") else safe_json(made))
    if audit.stopped:
        if args.output != "text":  # which says so itself
            warn(spoken_here()["audit.stopped"])
        return STOPPED
    return FAILED if audit.meets(args.fail_on) else OK


def _check(args: argparse.Namespace) -> int:
    """Prints the verdict, the reason, and the passage that it rests on."""
    if args.batch is not None and args.claim is None:
        return _batch(args.batch, args.fail_on)
    if args.batch is not None or not (args.claim or "").strip():
        what = "The claim is empty." if args.batch is None else "--batch brings its own claims."
        raise ConfigError("empty_claim", what, "Write CLAIM SOURCE or --batch FILE.")
    if not args.source:
        raise ConfigError("no_source", "There is no source.", "Name a file, an address, or -.")
    source = _source(args.source)
    if isinstance(source, Path) and not source.exists() and os.path.exists(args.claim):
        remedy = "Write CLAIM SOURCE, the claim between quotation marks."
        raise ConfigError("bad_usage", "The claim comes first.", remedy)
    if isinstance(source, Path):  # outside of a loop, so that Ctrl-C ends the wait for a pipe
        verdict = check_text(args.claim, Source(file_text(source)))
    else:
        verdict = asyncio.run(check_source(args.claim, Settings.load(), url=source))
    words = spoken_here()
    said, why = words[f"verdict.{verdict.verdict}"], words.worded(verdict.reason, "reason.")
    lines = [f"{verdict.verdict}: {words.say('list.sentences', first=said, second=why)}"]
    if verdict.passage:
        near = f"{words['cite.nearest']} " if verdict.verdict in NEAREST else ""
        lines.append(f"  {near}{one_line(plain(verdict.passage), 600)}")
    for note in verdict.notes:
        warn(words.worded(note, "error."))
    tell(args, asdict(verdict), *map(safe, lines))
    return FAILED if verdict.verdict in args.fail_on else OK


def _source(source: str) -> Path | str:
    """Returns the path of a file, or an address."""
    if source.lower().startswith("file://"):
        return Path(url2pathname(urlsplit(source).path))
    return source if re.match(r"\w+://", source) else Path(source)


def _batch(source: str, fail_on: list[str]) -> int:
    """Answers each line by a line; one that asks nothing or is empty is named on stderr."""
    code = OK
    page_of = lru_cache(maxsize=1)(Page)  # claims about one text usually follow each other
    for number, line in _lines(source):
        try:
            asked = _asked(line)
        except ValueError as error:
            warn(f"searchloop: {one_line(source)}, line {number}: {error}")
            code = BAD_INPUT
            continue
        for name in ("claim", "text"):
            if not asked[name].strip():
                warn(f"searchloop: {one_line(source)}, line {number}: the {name} is empty.")
                code = BAD_INPUT
        found = check(asked["claim"], page_of(asked["text"]))
        if found.verdict in fail_on and code == OK:
            code = FAILED
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
        json.dumps(asked, allow_nan=False)  # nor is 1e999, once it is a number
    except (ValueError, RecursionError) as error:
        raise ValueError("this is no JSON.") from error
    asks = isinstance(asked, dict) and all(type(asked.get(n)) is str for n in ("claim", "text"))
    if not asks:
        raise ValueError('an object with "id", "claim" and "text" is needed.')
    return {"id": None, **asked}


ARGUMENTS = {"check": _arguments, "audit": _audit_arguments}
