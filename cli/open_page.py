"""`searchloop open`: read one page as text."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from agent.backend import error_words
from cli.backend import ask
from cli.main import FAILED, OK
from cli.text import one_line, safe


def run(args: argparse.Namespace) -> int:
    """Prints the page, or says why it cannot be read."""
    payload: dict[str, Any] = {"url": args.url, "offset": args.offset}
    if args.find:
        payload["find"] = args.find
    if args.max_length:
        payload["max_length"] = args.max_length
    page = ask("/api/open-page", payload)
    if args.output == "json":
        print(json.dumps(page, ensure_ascii=False))
        return OK if page["status"] == "ok" else FAILED
    if page["status"] != "ok":
        why = error_words(page["error"]) or page["status"]
        print(safe(f"searchloop: {why}"), file=sys.stderr)
        return FAILED
    print(f"{one_line(page['title'] or page['final_url'])}\n{one_line(page['final_url'], 300)}\n")
    print(safe(page["content"]))
    if page["next_offset"] is not None:
        rest = page["original_length"] - page["next_offset"]
        print(f"\n{rest} characters left: --offset {page['next_offset']}", file=sys.stderr)
    return OK
