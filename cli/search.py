"""`searchloop search`: the search backend from the command line."""

from __future__ import annotations

import argparse
import sys

from agent.backend import error_words
from agent.errors import ConfigError
from cli.backend import ask
from cli.main import FAILED, OK
from cli.text import as_json, number, one_line, safe


def run(args: argparse.Namespace) -> int:
    """Prints the results; what failed on the way goes to stderr."""
    query = " ".join(args.query).strip()
    if not query:
        raise ConfigError("empty_query", "The query is empty.", "Write what to search for.")
    payload = {"query": query, "max_results": args.count}
    if args.domain:
        payload["allowed_domains"] = args.domain
    if args.time_range != "all":
        payload["time_range"] = args.time_range
    if args.engine:
        payload["engine"] = args.engine
    answer = ask("/api/web-search", payload)
    if args.output == "json":
        print(as_json(answer))
        return OK if answer["status"] in ("ok", "empty") else FAILED
    for attempt in answer["attempts"]:
        if attempt["status"] != "ok":
            why = error_words(attempt.get("error")) or attempt["status"]
            print(safe(f"{attempt['engine']}: {why}"), file=sys.stderr)
    for n, result in enumerate(answer["results"], 1):
        print(f"{n}. {one_line(result['title'] or result['url'])}")
        print(f"   {one_line(result['url'], 300)}")
        print(f"   {one_line(result['snippet'], 240)}\n")
    if answer["status"] == "ok":
        print(
            f"{number(len(answer['results']), 'result')} from {answer['engine']}", file=sys.stderr
        )
        return OK
    if answer["status"] == "empty":
        print("Nothing was found. Try other words.", file=sys.stderr)
        return OK
    print("The search failed; see the engines above.", file=sys.stderr)
    return FAILED
