"""Writes what a bug report needs into one text file: versions, settings, findings, last errors.

No value of a key goes into it, no question and no answer; what is left passes the redactor of the
log. People read the file before they send it: the first lines say so.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path

from searchloop.agent.errors import AgentError
from searchloop.agent.log import EventLog
from searchloop.agent.observe.logs import Redactor, secrets_in
from searchloop.agent.settings import Settings
from searchloop.cli.arguments import safe
from searchloop.cli.main import VERSION

_SESSIONS, _ERRORS = 50, 30
_HEAD = """\
searchloop: a report for whoever helps you. Read it before you send it.
It has no keys, no questions and no answers. Names of files, servers and models may be in it.
"""


def write_bundle(
    path: Path, settings: Settings, findings: Iterable[str], values: Iterable[str]
) -> None:
    """Writes the file, for its owner alone. Raises OSError, also if it is there already."""
    parts = {
        "Versions": _versions(),
        "Settings": values,
        "Findings": findings,
        "Last errors": _errors(settings),
        "Packages": sorted(f"{d.name} {d.version}" for d in distributions()),
    }
    text = _HEAD + "".join(
        f"\n== {name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in parts.items()
    )
    home = str(Path.home())
    text = Redactor(lambda: secrets_in(settings))(safe(text))
    text = text.replace(home, "~") if len(home) > 1 else text
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _versions() -> Iterator[str]:
    yield f"searchloop {VERSION}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    yield f"SQLite {sqlite3.sqlite_version}"
    yield f"terminal {os.environ.get('TERM', '')}, encoding {sys.stdout.encoding}"
    yield time.strftime("written %Y-%m-%d %H:%M UTC", time.gmtime())


def _errors(settings: Settings) -> Iterator[str]:
    """Yields the errors and notices of the last sessions, the newest first."""
    try:
        with closing(EventLog(settings.store)) as log:
            found = [
                (event.at, event.type, event.data)
                for session in log.sessions(limit=_SESSIONS)
                for event in log.read(session.id)
                if event.data.get("error") or event.type == "notice"
            ]
    except AgentError as error:
        yield f"The sessions cannot be read: {error.code} {error.message}"
        return
    for at, kind, data in sorted(found, key=lambda each: each[0], reverse=True)[:_ERRORS]:
        said = data.get("error") or data
        said = said if isinstance(said, dict) else {"message": str(said)}
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
        model = data.get("model", "")
        yield f"{day} {kind} {model} {said.get('code', '')}: {said.get('message', '')}"[:400]
