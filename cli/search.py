"""`searchloop search`: the search backend from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

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
    payload: dict[str, Any] = {"query": query, "max_results": args.count}
    wishes = {
        "allowed_domains": args.domain,
        "blocked_domains": args.block_domain,
        "time_range": args.time_range if args.time_range != "all" else None,
        "country": args.country,
        "language": args.language,
        "safe_search": args.safe_search,
        "engine": args.engine,
    }
    payload |= {name: wish for name, wish in wishes.items() if wish}
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
    if answer.get("not_applied"):
        names = ", ".join(name.replace("_", " ") for name in answer["not_applied"])
        print(f"Not every engine could respect: {names}.", file=sys.stderr)
    if told := answer.get("filtered"):
        print(_filtered(told), file=sys.stderr)
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


def _filtered(told: Mapping[str, Any]) -> str:
    rule = one_line(told["rule"])
    if told["lifted"]:
        return f"Nothing was found with {rule}, so the search was repeated without."
    return f"{number(told['dropped'], 'result')} left out by {rule}."
