"""Runs `searchloop search`, `open` and `library`: the search backend from the command line."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Settings
from searchloop.agent.tools.backend import backend_for, error_words
from searchloop.agent.tools.open_page import page_notes
from searchloop.agent.tools.web_search import search_notes
from searchloop.agent.transport.transport import Transport
from searchloop.cli import BAD_INPUT, FAILED, OK
from searchloop.cli.arguments import (
    actions,
    as_json,
    number,
    one_line,
    output,
    safe,
    tell,
    warn,
    whole,
)
from searchloop.cli.show import spoken_here, trail_of
from searchloop.compose import search_app
from searchloop.search_backend.library import Collection, Library
from searchloop.search_backend.pages.workers import WORKERS

_OWN_READER = "local"
_MOST_LINES = 200  # files that are shown one by one


def ask_backend(path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Sends one request to the search backend, in this process or at SEARCH_BACKEND_URL."""
    settings = Settings.load()

    async def once() -> dict[str, Any]:
        async with aclosing(Transport(offline=settings.offline)) as transport:
            return await backend_for(settings, transport, search_app(settings)).ask(path, payload)

    return asyncio.run(once())


def try_engine(name: str) -> tuple[str, int]:
    """Asks an engine once; returns its fault, and how many results it has. Raises AgentError."""
    query = {"query": "searchloop", "max_results": 1, "engine": name}
    answer = ask_backend("/api/web-search", query)
    if answer["status"] in ("ok", "empty"):
        return "", len(answer["results"])
    said = (error_words(attempt.get("error")) for attempt in answer["attempts"])
    return next(filter(None, said), answer["status"]), 0


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_search)
    add = parser.add_argument
    add("query", nargs="+", metavar="QUERY")
    add("--engine", metavar="NAME", help="only this engine")
    add("-n", dest="max_results", type=whole(1), default=8, metavar="N", help="how many results")
    _domains(parser)
    add("--time-range", choices=("d", "w", "m", "y", "all"))
    add("--country", metavar="CC", help="meant for this country, e.g. de")
    add("--language", metavar="LL", help="in this language, e.g. de")
    add("--safe-search", choices=("off", "moderate", "strict"))
    output(parser)


def _open_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_open)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--find", metavar="TEXT", help="only the passages around TEXT")
    parser.add_argument("--offset", type=whole(0), default=0, metavar="N", help="start here")
    parser.add_argument("--max-length", type=whole(1), metavar="N", help="characters at the most")
    parser.add_argument("--reader", metavar="NAME", help="only this reader, e.g. local")
    _domains(parser)
    output(parser)


def _domains(parser: argparse.ArgumentParser) -> None:
    for option, name in (("--domain", "allowed_domains"), ("--block-domain", "blocked_domains")):
        parser.add_argument(option, dest=name, action="append", metavar="D", help="repeatable")


def _library_arguments(parser: argparse.ArgumentParser) -> None:
    about = {"add": "index a folder or a file", "list": "show what is indexed"}
    about |= {"remove": "forget a folder or a file", "pause": "stop reading; `add` goes on"}
    parser.set_defaults(run=_library)
    output(parser)
    added = actions(parser, _library, **about)
    for name in ("add", "remove", "pause"):
        added[name].add_argument("path")
    added["add"].add_argument(
        *("--exclude", "-x"),
        action="append",
        metavar="PATTERN",
        help="leave out, as in .gitignore; repeatable, stays until it is given anew ('' = none)",
    )


def _search(args: argparse.Namespace) -> int:
    """Prints the results; what failed on the way goes to stderr."""
    query = " ".join(args.query).strip()
    if not query:
        raise ConfigError("empty_query", "The query is empty.", "Write what to search for.")
    wishes = _given(args, "max_results", "country", "language", "safe_search", "engine")
    if args.time_range not in (None, "all"):
        wishes["time_range"] = args.time_range
    answer = ask_backend("/api/web-search", {"query": query, **wishes})
    if args.output == "json":
        print(as_json(answer))
        return OK if answer["status"] in ("ok", "empty") else FAILED
    for n, result in enumerate(answer["results"], 1):
        dated = f" ({published})" if (published := result.get("published")) else ""
        print(f"{n}. {one_line(result['title'] or result['url'])}{dated}")
        print(f"   {one_line(result['url'], 300)}\n   {one_line(result['snippet'], 240)}")
    words = spoken_here()
    for each in search_notes(answer):
        warn(words.error(each)[0])
    warn(" · ".join(trail_of({**answer, "results": len(answer["results"])}, words)))
    return OK if answer["status"] in ("ok", "empty") else FAILED


def _open(args: argparse.Namespace) -> int:
    """Prints the page, or says why it cannot be read."""
    if not args.url.strip():
        raise ConfigError("empty_url", "The address is empty.", "Write the address of a page.")
    wishes = _given(args, "find", "offset", "max_length", "reader")
    page = ask_backend("/api/open-page", {"url": args.url, **wishes})
    for attempt in page.get("attempts", ())[:-1]:
        warn(f"{attempt['reader']}: {error_words(attempt.get('error')) or attempt['status']}")
    refused = (page["error"] or {}).get("code") == "refused_url"
    code = OK if page["status"] == "ok" else BAD_INPUT if refused else FAILED
    if args.output == "json":
        print(as_json(page))
        return code
    if code != OK:
        warn(f"searchloop: {error_words(page['error']) or page['status']}")
        return code
    print(f"{one_line(page['title'] or page['final_url'])}\n{one_line(page['final_url'], 300)}\n")
    if args.find and not page["content"]:
        warn("The page has no such text. Try one of its words, or read it whole.")
        return OK
    print(safe(page["content"]))
    for each in page_notes(args.url.strip(), page):
        warn(spoken_here().error(each)[0])
    if page["reader"] != _OWN_READER:
        warn(f"Read by {one_line(page['reader'])}.")
    if page["next_offset"] is not None:
        rest = page["original_length"] - page["next_offset"]
        warn(f"\n{rest} characters left: --offset {page['next_offset']}")
    return OK


def _given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Returns these arguments, and the sites, as far as they were given."""
    names = (*names, "allowed_domains", "blocked_domains")
    return {name: value for name in names if (value := getattr(args, name))}


def _library(args: argparse.Namespace) -> int:
    library = Library(Settings.load().home, read=WORKERS.read)

    if args.action == "add":
        return _add(args, library)
    if args.action == "pause":
        library.pause(args.path)
        return tell(args, {"paused": args.path}, f"Paused; `searchloop library add {args.path}`.")
    if args.action == "remove":
        documents = library.remove(args.path)
        line = f"{number(documents, 'document')} forgotten; the files themselves are untouched."
        return tell(args, {"removed": documents}, line)
    found = library.list()
    lines = [
        f"{c.name:<20} {number(c.documents, 'document'):>16}  {c.path}{_state(c)}" for c in found
    ]
    return tell(args, {"collections": [asdict(each) for each in found]}, *lines)


def _add(args: argparse.Namespace, library: Library) -> int:
    """Shows the progress of a large folder; Ctrl-C stops after what was read."""
    quiet, told, last = args.output == "json", 0, time.monotonic()

    def show(path: str, outcome: str) -> None:
        nonlocal told
        told += outcome != "unchanged"
        if outcome != "unchanged" and told <= _MOST_LINES:
            warn(f"  {one_line(outcome, 80)}: {one_line(path)}")

    def counted(done: int, total: int) -> None:
        nonlocal last
        if total > _MOST_LINES and (time.monotonic() - last > 1 or done == total):
            last = time.monotonic()
            warn(f"  {done:,} of {total:,} files")

    progress, ticks = (None, None) if quiet else (show, counted)
    added = library.add(Path(args.path), progress, exclude=args.exclude, counted=ticks)
    counts = [f"{getattr(added, k)} {k}" for k in ("added", "updated", "unchanged", "removed")]
    line = f"{added.collection}: {', '.join(counts)}, {len(added.skipped)} skipped"
    if added.kept:
        line += f", {len(added.kept)} kept with their old text"
    if added.state:
        line += f" ({added.state}; the same command goes on)"
    return tell(args, asdict(added), line)


def _state(its: Collection) -> str:
    """Describes what is not as usual about a folder."""
    counts = (its.skipped and f"{its.skipped} skipped", its.kept and f"{its.kept} with old text")
    doing = f"{its.state}, {its.done:,} of {its.total:,}" if its.state else ""
    told = ", ".join(filter(None, (doing, its.note, *map(str, filter(None, counts)))))
    return f"  ({told})" if told else ""


ARGUMENTS = {"search": _search_arguments, "open": _open_arguments, "library": _library_arguments}
