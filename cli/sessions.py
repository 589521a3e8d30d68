"""`searchloop sessions`: what was asked before, and `sessions undo ID`: files as they were."""

from __future__ import annotations

import argparse
from datetime import datetime

from agent.afterwards import undo_files
from agent.log import EventLog
from agent.settings import Settings
from cli.main import OK
from cli.text import as_json, one_line


def run(args: argparse.Namespace) -> int:
    """Lists the sessions, newest first, or undoes what the last answer of one did to files."""
    settings = Settings.load()
    log = EventLog(settings.store)
    try:
        if len(args.query) == 2 and args.query[0] == "undo":
            return _undo(log, settings, args)
        return _list(log, args)
    finally:
        log.close()


def _list(log: EventLog, args: argparse.Namespace) -> int:
    found = log.sessions(" ".join(args.query) or None)
    if args.output == "json":
        print(as_json({"sessions": [s.as_dict() for s in found]}))
        return OK
    for session in found:
        when = datetime.fromtimestamp(session.updated).strftime("%Y-%m-%d %H:%M")
        print(f"{session.id}  {when}  {one_line(session.title or '(empty)', 70)}")
    if not found:
        print("No sessions.")
    return OK


def _undo(log: EventLog, settings: Settings, args: argparse.Namespace) -> int:
    files = undo_files(log, settings, args.query[1])
    if args.output == "json":
        print(as_json({"files": files}))
    else:
        print("\n".join(f"As before: {one_line(name, 300)}" for name in files) or UNCHANGED)
    return OK


UNCHANGED = "The files were as before already."
