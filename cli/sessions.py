"""Runs `searchloop sessions`, `export`: what was asked before."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, check, restore
from searchloop.agent.log.session import Session
from searchloop.agent.run.question import change_session
from searchloop.agent.run.takeover import LeaseRenewal
from searchloop.agent.run.undo import undo_files
from searchloop.agent.settings import Settings
from searchloop.analysis.told import did_you_mean
from searchloop.cli import FAILED, OK
from searchloop.cli.arguments import number, one_line, output, safe, say, tell, undone, warn
from searchloop.compose import search_app
from searchloop.imports import import_chats
from searchloop.imports.own import everything
from searchloop.render.export import EXPORTS
from searchloop.render.words import of_environment

_INDEX_SECONDS = 60.0  # for which the first search of an old store may take


def _sessions_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_sessions)
    actions = "find WORDS | undo ID | cancel ID | import FILE | export FILE"
    actions += " | archive ID... | unarchive ID... | delete ID... | backup FILE"
    actions += " | restore [FILE] | check"
    parser.usage = f"searchloop sessions [-o text|json] [TEXT ... | {actions}]"
    parser.epilog = (
        "With TEXT, and with `find`, those whose questions, answers, sources or titles hold "
        "these words. `import` brings in the chats of an export of ChatGPT, Claude, "
        "Open WebUI or searchloop, `export` writes all chats as one such file (`searchloop export` "
        "writes one chat). `undo` restores the files that the last answer changed, `cancel` stops "
        "an answer, `archive` takes chats out of the list (searches find them), `delete` deletes "
        "them with all they left behind, `backup` and `restore` copy, `check` looks for damage, "
        "and `restore` without a file brings back what can be read of a damaged store."
    )
    parser.add_argument("query", nargs="*", metavar="TEXT", help="only sessions with this text")
    output(parser)


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_export)
    parser.add_argument("session", nargs="?", metavar="ID", help="default: the last one")
    formats = ("md", "html", "json", "trace")
    parser.add_argument("--format", choices=formats, default="md", help="default: md")
    parser.add_argument("-f", "--file", metavar="FILE", help="default: standard output")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _sessions(args: argparse.Namespace) -> int:
    """Lists the sessions, newest first, or does what the first word says."""
    settings = Settings.load()
    if args.query and args.query[0] in _ACTIONS:
        return _ACTIONS[args.query[0]](settings, args.query[1:], args)
    if any(args.query):
        return _find(settings, args.query, args)
    with closing(EventLog(settings.store)) as log:
        found = log.sessions(archived=False)
    lines = [_line(session) for session in found]
    return tell(args, {"sessions": [s.as_dict() for s in found]}, *(lines or ["No sessions."]))


def _line(session: Session) -> str:
    when = datetime.fromtimestamp(session.updated)
    away = " (archived)" if session.settings.get("archived") else ""
    return f"{session.id}  {when:%Y-%m-%d %H:%M}  {one_line(session.title or '(empty)', 70)}{away}"


def _find(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    """Shows the places in chats that hold the words, the best chat first."""
    if not words:
        raise ConfigError("bad_usage", "Some words are wanted.", "searchloop sessions find WORDS")
    with closing(EventLog(settings.store)) as log:
        log.chat_search.index(_INDEX_SECONDS)
        places = log.find(" ".join(words))
        found = [(log.session(session), turns) for session, turns in places.items()]
        if log.chat_search.is_busy:
            warn("Some chats are not indexed yet; the same command finds more in a moment.")
    lines = []
    for session, turns in found:
        lines += [_line(session)]
        lines += [f"    {each.part}: {one_line(each.snippet)}" for each in turns if each.turn]
    told = [{**session.as_dict(), "found": [asdict(t) for t in turns]} for session, turns in found]
    if not lines and args.query[0] != "find" and (near := did_you_mean(words[0], _ACTIONS)):
        warn(f"{near.strip()} `searchloop sessions --help` lists what there is.")
    return tell(args, {"sessions": told}, *(lines or ["No sessions."]))


def _undo(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    with closing(EventLog(settings.store)) as log:
        files = undo_files(log, settings, _one(words, "undo ID"))
    return tell(args, {"files": files}, undone(files))


def _import(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    """Brings in what a file holds; fails if nothing of it could be read."""
    path = Path(_one(words, "import FILE")).expanduser()
    if not path.is_file():
        raise ConfigError("no_file", f"There is no file {path}.", "Name the export's file.")
    with closing(EventLog(settings.store)) as log, path.open("rb") as file:
        report = import_chats(file, log, settings.model)
    lines = [f"{number(report.brought, 'chat')} brought in, {report.known} there already."]
    if report.empty:
        lines.append(f"{report.empty} had no question in them.")
    lines += [one_line(problem, 300) for problem in report.problems]
    if report.refused > len(report.problems):
        lines.append(f"And {report.refused - len(report.problems)} more of that kind.")
    left = ", ".join(f"{one_line(name, 60)} ({n})" for name, n in report.left_out.most_common(20))
    lines += [f"Not brought along: {left}."] if left else []
    tell(args, report.as_dict(), *lines)
    return OK if report.brought or report.known else FAILED


def _all(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    """Writes all chats to a file that is not there yet."""
    target = Path(_one(words, "export FILE")).expanduser()
    chats = 0
    with closing(EventLog(settings.store)) as log, _opened(target, "xb") as file:
        for piece in everything(log):
            file.write(piece)
            chats += b"{" in piece[:3]
    return tell(args, {"sessions": chats}, f"{number(chats, 'chat')} written to {target}.")


def _backup(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    target = Path(_one(words, "backup FILE")).expanduser()
    done = backup(settings.store, target)
    return tell(args, {"sessions": done}, f"{number(done, 'session')} copied to {target}.")


def _restore(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    source = Path(_one(words, "restore FILE")).expanduser() if words else None
    found = restore(settings.store, source)
    told: dict[str, Any] = {"restored": found.done, "kept": found.kept, "saved": found.saved}
    told |= {"gaps": found.gaps, "aside": found.aside and str(found.aside)}
    lines, gaps = [], f", {found.gaps} of them with gaps" if found.gaps else ""
    if found.aside:
        read = f"{number(found.saved, 'session')} read from the damaged store{gaps}."
        lines.append(f"{read} It is kept: {found.aside}")
    if source:
        kept = f" {found.kept} were there already and stay as they are." if found.kept else ""
        done = number(found.done, "session")
        lines.append(f"{done} brought back{'' if found.aside else gaps}.{kept}")
    return tell(args, told, *lines)


def _check(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    found = check(settings.store)
    tell(args, {"problems": found}, *(found or ["The sessions are whole."]))
    return FAILED if found else OK


def _cancel(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    session = _one(words, "cancel ID")
    with closing(EventLog(settings.store)) as log:
        log.session(session)
        done = asyncio.run(LeaseRenewal.onlooker(log).cancel(session))
    return tell(args, {"cancelled": done}, "Stopped." if done else "Nothing was running.")


def _archive(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    """Archives sessions, or brings them back; all of them or none."""
    action = args.query[0]
    with closing(EventLog(settings.store)) as log:
        _all_there(log, words, action)
        for session in words:
            change_session(log, settings, session, {"archived": action == "archive"})
    told = {"sessions": words, "archived": action == "archive"}
    return tell(args, told, f"{number(len(words), 'session')} {action}d.")


def _delete(settings: Settings, words: list[str], args: argparse.Namespace) -> int:
    """Deletes sessions with all they left behind; all of them or none."""
    app = search_app(settings)
    with BareAgent(settings, search_backend=app, store=settings.store) as agent:
        _all_there(agent.log, words, "delete")
        for session in words:
            agent.delete(session)
    return tell(args, {"sessions": words}, f"{number(len(words), 'session')} deleted.")


def _all_there(log: EventLog, sessions: list[str], action: str) -> None:
    """Raises ConfigError if none is named, Conflict if one is not there."""
    if not sessions:
        usage = f"searchloop sessions {action} ID..."
        raise ConfigError("bad_usage", "Some sessions are wanted.", usage)
    for session in sessions:
        log.session(session)


def _one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise ConfigError("bad_usage", "One word is wanted here.", f"searchloop sessions {usage}")
    return words[0]


def _export(args: argparse.Namespace) -> int:
    """Writes it to standard output, or to a file that is not there yet."""
    with closing(EventLog(Settings.load().store)) as log:
        session = _wanted(log, args.session)
        text = export_text(log, session, args.format)
    if args.file is None:
        say((safe(text) if sys.stdout.isatty() else text).removesuffix("\n"))
        return OK
    write_export(args.file, text, force=args.force)
    return OK


def export_text(log: EventLog, session: Session, form: str) -> str:
    """Returns a session in one of the formats of `EXPORTS`, in the terminal's language."""
    return EXPORTS[form].write(session, log.read(session.id), of_environment(os.environ))


def write_export(name: str, text: str, *, force: bool) -> None:
    """Writes an export to a file, and says so. Raises ConfigError."""
    target = Path(name).expanduser()
    with _opened(target, "wb" if force else "xb") as file:
        file.write(text.encode())
    warn(f"Written to {target}.")


@contextmanager
def _opened(target: Path, mode: str) -> Iterator[IO[bytes]]:
    """Opens a file to write. Raises ConfigError when it is there, or cannot be written."""
    try:
        with target.open(mode) as file:
            yield file
    except FileExistsError:
        words = f"{target} is there already; nothing was written."
        raise ConfigError("file_exists", words, "Name another, or remove this one.") from None
    except OSError as error:
        words = f"{target} cannot be written: {error.strerror}."
        raise ConfigError("bad_file", words, "Name a file in a folder that is there.") from error


def _wanted(log: EventLog, wanted: str | None) -> Session:
    """Returns the session of this id, or the one that was used last."""
    if wanted:
        return log.session(wanted)
    last = [session for session in log.sessions() if session.messages]
    if not last:
        raise ConfigError("no_session", "There is no session yet.", "Ask something first.")
    return last[0]


_ACTIONS: dict[str, Callable[[Settings, list[str], argparse.Namespace], int]] = {
    "find": _find,
    "undo": _undo,
    "import": _import,
    "export": _all,
    "backup": _backup,
    "restore": _restore,
    "check": _check,
    "cancel": _cancel,
    "archive": _archive,
    "delete": _delete,
    "unarchive": _archive,
}
ARGUMENTS = {
    "sessions": _sessions_arguments,
    "export": _export_arguments,
}
