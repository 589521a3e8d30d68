"""Brings the chats of other programs, or of our own export, into the log.

A format is one module with ORIGIN and `read(item, unknown)`, which returns a Chat for an object
that is one of its own. Others may import: own.
"""

from __future__ import annotations

import functools
import pkgutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.session import Session
from searchloop.web.text.imports.chats import Chat, events_of, title_of
from searchloop.web.text.imports.reading import Fault, chats_in

_NO_FORMATS = {"chats", "reading"}
_MOST_TOLD = 20  # sentences about what could not be read


@dataclass(slots=True)
class Report:
    """What came of a file: chats `brought`, `known` before, `empty`; sentences about the rest.

    `left_out` counts the parts of chats that were not brought along, by name; `origins` the chats
    by program.
    """

    brought: int = 0
    known: int = 0
    empty: int = 0
    refused: int = 0
    origins: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def refuse(self, why: str) -> None:
        """Counts what could not be read, and keeps the first sentences about it."""
        self.refused += 1
        if len(self.problems) < _MOST_TOLD:
            self.problems.append(why)

    def as_dict(self) -> dict[str, Any]:
        """Returns it as JSON; of the parts left out the most frequent."""
        left = dict(self.left_out.most_common(_MOST_TOLD))
        return {**asdict(self), "origins": dict(self.origins), "left_out": left}


def import_chats(
    path: Path, log: EventLog, model: str, on_chat: Callable[[Report], None] = lambda report: None
) -> Report:
    """Brings in what a file holds; `model` is for questions that follow. Raises StoreError.

    `on_chat` is called after each chat; what it raises ends the import, and chats so far stay.
    """
    report, person = Report(), log.person
    for item in chats_in(path):
        if isinstance(item, Fault):
            report.refuse(str(item))
            continue
        try:
            _bring(item, log, model, person, report)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            why = str(error) if type(error) is ValueError else "it is damaged"
            report.refuse(f"One chat was not read: {why[:200]}.")
        on_chat(report)
    return report


@functools.cache
def _formats() -> list[Any]:
    """Returns the modules beside this one that read a format."""
    names = (found.name for found in pkgutil.iter_modules(__path__))
    return [import_module(f"{__name__}.{name}") for name in names if name not in _NO_FORMATS]


def _bring(item: dict[str, Any], log: EventLog, model: str, person: str, report: Report) -> None:
    for known in _formats():
        chat = known.read(item, report.left_out)
        if chat is not None:
            break
    else:
        if "project" not in report.left_out or "docs" not in item:
            report.refuse("One part of the file is no chat of a program that searchloop knows.")
        return
    report.origins[chat.origin] += 1
    events = events_of(chat)
    if not any(event.type == "user_message" for event in events):
        report.empty += 1
        return
    updated = chat.updated or max(event.at for event in events) or time.time()
    session = Session(
        *(chat.session_id(person), title_of(chat), model, "ask", "off", "off", None),
        created=min(chat.created or updated, updated),
        updated=updated,
        messages=sum(event.type == "user_message" for event in events),
        running=False,
        settings=_settings(chat),
    )
    done = log.add_session(session, events, chat.files, chat.derived_id(person))
    report.brought += done
    report.known += not done


def _settings(chat: Chat) -> dict[str, Any]:
    flags = {"pinned": chat.pinned, "archived": chat.archived}
    return {"imported": chat.origin, **{name: True for name, set_ in flags.items() if set_}}
