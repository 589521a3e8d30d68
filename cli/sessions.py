"""`searchloop sessions`: what was asked before."""

from __future__ import annotations

import argparse
from datetime import datetime

from agent.log import EventLog
from agent.settings import Settings
from cli.main import OK
from cli.text import as_json, one_line


def run(args: argparse.Namespace) -> int:
    """Lists the sessions, newest first."""
    log = EventLog(Settings.load().store)
    found = log.sessions(" ".join(args.query) or None)
    log.close()
    if args.output == "json":
        print(as_json({"sessions": [s.as_dict() for s in found]}))
        return OK
    for session in found:
        when = datetime.fromtimestamp(session.updated).strftime("%Y-%m-%d %H:%M")
        print(f"{session.id}  {when}  {one_line(session.title or '(empty)', 70)}")
    if not found:
        print("No sessions.")
    return OK
