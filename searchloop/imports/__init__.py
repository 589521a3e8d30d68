"""Brings the chats of other programs, or of our own export, into the log.

A format is one module with ORIGIN and `read(item, unknown)`, which returns an ImportedChat for an
object that is one of its own. It runs in the process of `worker`, which may be killed: `reading`
finds the bytes of each chat, `parsing` asks.

Others may import: own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.session import Session
from searchloop.agent.run.question.files import (
    MOST_FILES,
    MOST_IMAGE,
    NewFile,
    checked_file,
)
from searchloop.imports.chats import ImportedChat, events_of, not_read, title_of
from searchloop.imports.parsing import parsed
from searchloop.imports.reading import Pictures, chats_in

_MOST_PICTURES = 64 << 20  # bytes of the pictures of one chat
_MOST_REFUSED = 10_000  # parts of a file that are no chats: it is no export
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
    file: IO[bytes],
    log: EventLog,
    model: str,
    on_chat: Callable[[Report], None] = lambda report: None,
    on_piece: Callable[[], None] = lambda: None,
) -> Report:
    """Brings in what a file holds; `model` is for questions that follow. Raises StoreError.

    `on_chat` is called before each chat, `on_piece` before each megabyte; what they raise ends the
    import, and chats so far stay.
    """
    report = Report()
    with closing(Pictures(file)) as pictures:
        for item in parsed(chats_in(file, on_piece)):
            on_chat(report)
            if report.refused + report.empty >= _MOST_REFUSED:
                report.problems.append("Too little of the file is chats; the rest was not read.")
                break
            report.left_out.update(item.get("left_out", {}))
            try:
                if "chat" in item:
                    chat = ImportedChat.restored(item["chat"])
                    _bring(chat, log, model, pictures, report)
                else:
                    report.refuse(item["fault"])
            except ConfigError as error:
                report.refuse(error.message)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                report.refuse(not_read(error))
    return report


def _bring(
    chat: ImportedChat, log: EventLog, model: str, pictures: Pictures, report: Report
) -> None:
    report.origins[chat.origin] += 1
    _illustrate(chat, pictures, report)
    person = log.person
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


def _illustrate(chat: ImportedChat, pictures: Pictures, report: Report) -> None:
    """Puts the pictures of a chat's questions to them; says so of one that the file lacks."""
    files, room = list[tuple[str, bytes, str]](), _MOST_PICTURES
    for node in chat.nodes.values():
        lacking = list[str]()
        for asset, name in node.assets:
            found = pictures.get(asset, min(room, MOST_IMAGE))
            try:
                file = checked_file(NewFile(name or found[0], found[1])) if found else None
            except ConfigError:
                file = None
            if not file or not file.attachment.is_image or len(node.attachments) == MOST_FILES:
                report.left_out["image_asset_pointer"] += 1
                lacking.append(f"[image {name or asset}: not in the chat]\n\n")
                continue
            node.attachments.append(file.attachment)
            files.append((file.attachment.digest, file.data, "[]"))
            room -= len(file.data)
        node.parts[:0] = lacking
    chat.files = [*chat.files, *files]


def _settings(chat: ImportedChat) -> dict[str, Any]:
    flags = {"pinned": chat.pinned, "archived": chat.archived}
    return {"imported": chat.origin, **{name: True for name, set_ in flags.items() if set_}}
