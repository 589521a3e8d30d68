"""Brings the chats of other programs, or of our own export, into the log.

A format is one module with ORIGIN and `read(item, unknown)`, which returns an ImportedChat for an
object that is one of its own. It runs in the process of `worker`, which may be killed: `reading`
finds the bytes of each chat. Small chats are asked for together; where that fails, each alone, so
that one that takes too much time or memory takes no other along.

Others may import: own.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import IO, Any

from searchloop.agent.log import Event, EventLog
from searchloop.agent.log.session import Session
from searchloop.agent.types import Usage
from searchloop.imports.chats import Said
from searchloop.imports.reading import Fault, Raw, chats_in
from searchloop.imports.worker import __name__ as _WORKER
from searchloop.imports.worker import answer_to
from searchloop.search_backend.pages.workers import Workers
from searchloop.search_backend.types import Problem

_MOST_REFUSED = 10_000  # parts of a file that are no chats: it is no export
_MOST_TOLD = 20  # sentences about what could not be read
_TOGETHER = 256 << 10  # bytes of the chats that are asked for together
_SECONDS = 10.0  # for these
_PARSERS = Workers(seconds=_SECONDS, module=_WORKER)
atexit.register(_PARSERS.close)


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
    for item in _parsed(chats_in(file, on_piece)):
        on_chat(report)
        if report.refused + report.empty >= _MOST_REFUSED:
            report.problems.append("Too little of the file is chats; the rest was not read.")
            break
        report.left_out.update(item.get("left_out", {}))
        if "chat" in item:
            _bring(item["chat"], log, model, report)
        else:
            report.refuse(item["fault"])
    return report


def _bring(chat: Mapping[str, Any], log: EventLog, model: str, report: Report) -> None:
    report.origins[chat["origin"]] += 1
    events = list(_events(chat["events"]))
    asked = sum(event.type == "user_message" for event in events)
    if not asked:
        report.empty += 1
        return
    # The id that this chat always gets: brought twice, it is there once. One of ours is kept,
    # unless somebody else has it.
    name = "\0".join((log.person, chat["origin"], chat["id"]))
    spare = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]
    own = chat["origin"] == "searchloop" and re.fullmatch(r"[A-Za-z0-9]{24}", chat["id"])
    session = Session(
        *(chat["id"] if own else spare, chat["title"], model, "ask", "off", "off", None),
        created=chat["created"],
        updated=chat["updated"],
        messages=asked,
        running=False,
        settings=chat["settings"],
    )
    files = [(digest, b64decode(data), texts) for digest, data, texts in chat["files"]]
    done = log.add_session(session, events, files, spare)
    report.brought += done
    report.known += not done


def _events(told: Iterable[Said]) -> Iterator[Event]:
    """Yields the events of a chat; what a message says stands in the end of its run, too."""
    nothing: dict[str, Any] = {"answer": "", "citations": [], "sources": []}
    usage, said = {"usage": Usage().as_dict()}, nothing
    for n, (kind, data, at) in enumerate(told, 1):
        if kind == "message":
            said = {"answer": data["text"]} | {k: data[k] for k in ("citations", "sources")}
            data = data | usage
        elif kind == "run_finished":
            data, said = data | said | usage, nothing
        yield Event.of(n, kind, data, at)


def _parsed(items: Iterable[Raw | Fault]) -> Iterator[dict[str, Any]]:
    """Yields {chat} or {fault} for each, all with {left_out: {name: count}} or without.

    `chat` is what `ImportedChat.as_dict` returned.
    """
    waiting, size = list[Raw](), 0
    for item in chain(items, (None,)):
        if waiting and (isinstance(item, Fault | None) or size + len(item[1]) > _TOGETHER):
            yield from _asked(waiting)
            waiting, size = [], 0
        if isinstance(item, Fault):
            yield {"fault": str(item)}
        elif item:
            waiting.append(item)
            size += len(item[1])


def _asked(chats: list[Raw]) -> Iterator[dict[str, Any]]:
    head = {"sizes": [(number, len(raw)) for number, raw in chats]}
    body = b"".join(raw for _, raw in chats)
    # Python inside another program cannot start itself.
    told = _PARSERS.answer(head, body) if sys.executable else answer_to(head, body, cut=False)
    if not isinstance(told, Problem):
        yield from told["found"]
    elif len(chats) == 1:
        yield {"fault": f"Chat {chats[0][0]:,} takes too much time or memory to be read."}
    else:
        for each in chats:
            yield from _asked([each])
