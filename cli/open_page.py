"""`searchloop open`: read one page as text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from agent.backend import error_words
from agent.errors import ConfigError
from cli.backend import ask
from cli.main import BAD_INPUT, FAILED, OK
from cli.text import as_json, one_line, safe

LOCAL = "local"


def run(args: argparse.Namespace) -> int:
    """Prints the page, or says why it cannot be read."""
    if not args.url.strip():
        raise ConfigError("empty_url", "The address is empty.", "Write the address of a page.")
    payload: dict[str, Any] = {"url": args.url, "offset": args.offset}
    if args.find:
        payload["find"] = args.find
    if args.max_length:
        payload["max_length"] = args.max_length
    wishes = {
        "allowed_domains": args.domain,
        "blocked_domains": args.block_domain,
        "reader": args.reader,
    }
    payload |= {name: wish for name, wish in wishes.items() if wish}
    page = ask("/api/open-page", payload)
    for attempt in page.get("attempts", ())[:-1]:
        why = error_words(attempt.get("error")) or attempt["status"]
        print(safe(f"{attempt['reader']}: {why}"), file=sys.stderr)
    if args.output == "json":
        print(as_json(page))
        return _code(page)
    if page["status"] != "ok":
        why = error_words(page["error"]) or page["status"]
        print(safe(f"searchloop: {why}"), file=sys.stderr)
        return _code(page)
    print(f"{one_line(page['title'] or page['final_url'])}\n{one_line(page['final_url'], 300)}\n")
    if args.find and not page["content"]:
        print("The page has no such text. Try one of its words, or read it whole.", file=sys.stderr)
        return OK
    print(safe(page["content"]))
    if page["reader"] != LOCAL:
        print(f"Read by {one_line(page['reader'])}.", file=sys.stderr)
    if page["next_offset"] is not None:
        rest = page["original_length"] - page["next_offset"]
        print(f"\n{rest} characters left: --offset {page['next_offset']}", file=sys.stderr)
    return OK


def _code(page: Mapping[str, Any]) -> int:
    if page["status"] == "ok":
        return OK
    refused = (page["error"] or {}).get("code") == "refused_url"
    return BAD_INPUT if refused else FAILED
