"""`searchloop library`: folders that can be searched without a network."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from agent.settings import Settings
from cli.main import OK
from cli.text import as_json, number, one_line
from search_backend.library import Library


def run(args: argparse.Namespace) -> int:
    """Adds, lists or removes."""
    return _ACTIONS[args.action](Library(Settings.load().home), args)


def _add(library: Library, args: argparse.Namespace) -> int:
    def tell(path: str, outcome: str) -> None:
        if outcome != "unchanged":
            print(f"  {one_line(outcome, 80)}: {one_line(path)}", file=sys.stderr)

    added = library.add(Path(args.path), None if args.output == "json" else tell)
    if args.output == "json":
        print(as_json(asdict(added)))
        return OK
    counts = [f"{getattr(added, k)} {k}" for k in ("added", "updated", "unchanged", "removed")]
    print(f"{added.collection}: {', '.join(counts)}, {len(added.skipped)} skipped")
    return OK


def _list(library: Library, args: argparse.Namespace) -> int:
    collections = library.list()
    if args.output == "json":
        told = [asdict(collection) for collection in collections]
        print(as_json({"collections": told}))
        return OK
    for collection in collections:
        count = number(collection.documents, "document")
        print(f"{collection.name:<20} {count:>16}  {collection.path}")
    return OK


def _remove(library: Library, args: argparse.Namespace) -> int:
    documents = library.remove(args.path)
    if args.output == "json":
        print(as_json({"removed": documents}))
    else:
        print(f"{number(documents, 'document')} forgotten; the files themselves are untouched.")
    return OK


_ACTIONS = {"add": _add, "list": _list, "remove": _remove}
