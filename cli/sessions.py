"""`searchloop sessions`: what was asked before; copies of it; runs to stop; files as they were."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from agent.afterwards import undo_files
from agent.errors import ConfigError
from agent.keeper import Keeper
from agent.log import EventLog
from agent.settings import Settings
from agent.upkeep import backup, check, restore
from cli.main import FAILED, OK
from cli.text import as_json, one_line

UNCHANGED = "The files were as before already."


def run(args: argparse.Namespace) -> int:
    """Lists the sessions, newest first, or does what the first word says."""
    settings, json = Settings.load(), args.output == "json"
    action = _ACTIONS.get(args.query[0]) if args.query else None
    if action is not None:
        return action(settings, args.query[1:], json)
    with closing(EventLog(settings.store)) as log:
        return _list(log, " ".join(args.query), json)


def _list(log: EventLog, query: str, json: bool) -> int:
    found = log.sessions(query or None)
    if json:
        print(as_json({"sessions": [s.as_dict() for s in found]}))
        return OK
    for session in found:
        when = datetime.fromtimestamp(session.updated).strftime("%Y-%m-%d %H:%M")
        print(f"{session.id}  {when}  {one_line(session.title or '(empty)', 70)}")
    if not found:
        print("No sessions.")
    return OK


def _undo(settings: Settings, words: list[str], json: bool) -> int:
    with closing(EventLog(settings.store)) as log:
        files = undo_files(log, settings, _one(words, "undo ID"))
    if json:
        print(as_json({"files": files}))
    else:
        print("\n".join(f"As before: {one_line(name, 300)}" for name in files) or UNCHANGED)
    return OK


def _backup(settings: Settings, words: list[str], json: bool) -> int:
    target = Path(_one(words, "backup FILE")).expanduser()
    done = backup(settings.store, target)
    print(as_json({"sessions": done}) if json else f"{done} sessions copied to {target}.")
    return OK


def _restore(settings: Settings, words: list[str], json: bool) -> int:
    source = Path(_one(words, "restore FILE")).expanduser() if words else None
    found = restore(settings.store, source)
    told = {"restored": found.done, "kept": found.kept, "saved": found.saved, "gaps": found.gaps}
    if json:
        print(as_json({**told, "aside": str(found.aside) if found.aside else None}))
        return OK
    gaps = f", {found.gaps} of them with gaps" if found.gaps else ""
    if found.aside:
        print(
            f"{found.saved} sessions read from the damaged store{gaps}. It is kept: {found.aside}"
        )
    elif not source:
        print(f"{found.saved} sessions are back: an earlier restore was ended now.")
    if source:
        kept = f" {found.kept} were there already and stay as they are." if found.kept else ""
        print(f"{found.done} sessions brought back{'' if found.aside else gaps}.{kept}")
    return OK


def _check(settings: Settings, words: list[str], json: bool) -> int:
    found = check(settings.store)
    if json:
        print(as_json({"problems": found}))
    else:
        print("\n".join(found) or "The sessions are whole.")
    return FAILED if found else OK


def _cancel(settings: Settings, words: list[str], json: bool) -> int:
    session = _one(words, "cancel ID")
    with closing(EventLog(settings.store)) as log:
        log.session(session)
        done = asyncio.run(_stopped(log, session))
    print(as_json({"cancelled": done}) if json else "Stopped." if done else "Nothing was running.")
    return OK


async def _stopped(log: EventLog, session: str) -> bool:
    return await Keeper.onlooker(log).cancel(session)


def _one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise ConfigError("bad_usage", "One word is wanted here.", f"searchloop sessions {usage}")
    return words[0]


_ACTIONS: dict[str, Callable[[Settings, list[str], bool], int]] = {
    "undo": _undo,
    "backup": _backup,
    "restore": _restore,
    "check": _check,
    "cancel": _cancel,
}
