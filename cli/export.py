"""`searchloop export`: a chat as a file - Markdown with footnotes, a page, JSON, or a trace."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from agent.errors import ConfigError
from agent.log import EventLog
from agent.session import Session
from agent.settings import Settings
from cli.main import OK
from cli.text import safe
from web.export import EXPORTS


def run(args: argparse.Namespace) -> int:
    """Writes it to standard output, or to a file that is not there yet."""
    with closing(EventLog(Settings.load().store)) as log:
        session = _session(log, args.session)
        text = EXPORTS[args.format].write(session, log.read(session.id))
    if args.file is None:
        text = safe(text) if sys.stdout.isatty() else text
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return OK
    target = Path(args.file).expanduser()
    try:
        with target.open("w" if args.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        words = f"{target} is there already; nothing was written."
        raise ConfigError("file_exists", words, "Name another file, or add --force.") from None
    except OSError as error:
        words = f"{target} cannot be written: {error.strerror}."
        raise ConfigError("bad_file", words, "Name a file in a folder that is there.") from error
    print(f"Written to {target}.", file=sys.stderr)
    return OK


def _session(log: EventLog, wanted: str | None) -> Session:
    """The session of this id, or the one that was used last."""
    if wanted:
        return log.session(wanted)
    last = [session for session in log.sessions() if session.messages]
    if not last:
        raise ConfigError("no_session", "There is no session yet.", "Ask something first.")
    return last[0]
