"""All chats as one file, and such a file read again.

    [{searchloop_chat: 1, session: {id, title, created, updated, settings},
      events: [{seq, type, at, ...}], files: [{digest, data (base64), pages}]}, ...]

A file may have been written by anybody. Questions, answers, files and the pages that answers name
are written and read. Everything else stays behind: verdicts, tool results, counts, modes, folders,
approvals. A copy with these is `searchloop sessions backup`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import Event, EventLog
from searchloop.agent.log.session import BRANCHING, Session, Turns
from searchloop.agent.run.question.files import MOST_FILES, NewFile, checked_file
from searchloop.agent.text import plain
from searchloop.agent.types.attachments import Attachment
from searchloop.imports.chats import ImportedChat, Node, Page, Unknown, clean, dicts, moment

ORIGIN = "searchloop"
_MARK = "searchloop_chat"
_KEPT = ("text", "thinking", "answer", "model", "turn", "replaces", "attachments")
_SAID = {"user_message", "message", "run_finished"}
# They say how an answer came about. The report counts what is neither here nor among these.
_SILENT = {"run_started", "search_started", "search_finished", "page_opened", "notice", "title"}
_MOST_SEQ = 1 << 40
_NUMBER = re.compile(r"\[\d{1,4}\]")


def written(log: EventLog, session: Session) -> bytes:
    """Returns one chat as a line of JSON."""
    events, digests = list[dict[str, Any]](), dict[str, None]()
    for event in log.read(session.id):
        if event.type not in _SAID | BRANCHING:
            continue
        given: Mapping[str, Any] = event.data
        data: dict[str, Any] = {k: given[k] for k in _KEPT if given.get(k)}
        cited, sources = given.get("citations", ()), given.get("sources", ())
        known = {each["url"] for each in cited}
        lists = {"citations": cited, "sources": [s for s in sources if s["url"] not in known]}
        data |= {k: [_short(each) for each in its] for k, its in lists.items() if its}
        if "answer" in data and events and events[-1]["type"] == "message":  # it says the same
            data = {**data, "thinking": events.pop().get("thinking", "")}
        events.append({**data, "seq": event.seq, "type": event.type, "at": event.at})
        digests |= dict.fromkeys(each["digest"] for each in data.get("attachments", ()))
    files = []
    for digest in digests:
        data_of = log.attachments.data(session.id, digest) or b""
        pages = log.attachments.texts(session.id, digest)
        encoded = base64.b64encode(data_of).decode()
        files.append({"digest": digest, "data": encoded, "pages": pages})
    told = {k: getattr(session, k) for k in ("id", "title", "created", "updated")}
    told["settings"] = {k: True for k in ("pinned", "archived") if session.settings.get(k)}
    chat = {_MARK: 1, "session": told, "events": events, "files": files}
    return json.dumps(plain(chat), ensure_ascii=False, separators=(",", ":")).encode()


def _short(source: Mapping[str, Any]) -> dict[str, Any]:
    return {k: source[k] for k in ("url", "title", "spans") if source.get(k)}


def everything(log: EventLog) -> Iterator[bytes]:
    """Yields all chats of a person as one JSON array, piece by piece; no temporary ones."""
    yield b"["
    between = b"\n"
    for session in log.sessions(1_000_000):
        if session.messages and not session.settings.get("temporary"):
            yield between + written(log, session)
            between = b",\n"
    yield b"\n]\n"


def read(item: Mapping[str, Any], unknown: Unknown) -> ImportedChat | None:
    """Returns the chat of an object, None if it is none of ours. Raises ValueError."""
    session = item.get("session")
    if item.get(_MARK) is None or not isinstance(session, dict):
        return None
    settings = session.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    files = dict(_files(item.get("files")))
    events = list(_events(item.get("events"), unknown))
    tree = Turns.of(events)
    nodes: dict[str, Node] = {}
    question, answer = Node("", None), Node("", None)
    for event in events:
        data, at = event.data, event.at
        if event.type == "user_message":
            before = tree.parent(event.seq)
            question = Node(f"{event.seq}", f"{before} answer" if before else None, "user")
            question.parts, question.at = [clean(data.get("text"))], at
            question.attachments = list(_attached(data, files, unknown))
            answer = Node(f"{event.seq} answer", question.id)
            if event.seq not in tree.removed:
                nodes |= {question.id: question, answer.id: answer}
            continue
        answer.thinking = clean(data.get("thinking")) or answer.thinking
        if text := clean(data.get("text" if event.type == "message" else "answer")):
            answer.role, answer.at = "assistant", at
            answer.model = clean(data.get("model"))[:100]
            answer.parts = list(_cited(text, data.get("citations")))
            answer.pages = list(filter(None, map(_page, dicts(data.get("sources")))))
    shown, attached = tree.shown(), [a.digest for n in nodes.values() for a in n.attachments]
    return ImportedChat(
        ORIGIN,
        clean(session.get("id")),
        clean(session.get("title")),
        moment(session.get("created")),
        moment(session.get("updated")),
        nodes,
        f"{shown[-1]} answer" if shown else None,
        pinned=settings.get("pinned") is True,
        archived=settings.get("archived") is True,
        files=[(digest, *files[digest]) for digest in dict.fromkeys(attached)],
    )


def _events(given: object, unknown: Unknown) -> Iterator[Event]:
    """Yields what makes the tree of a chat, and what was said in it. Raises ValueError."""
    last = 0
    for each in dicts(given):
        seq, kind = each.get("seq"), str(each.get("type"))
        if not isinstance(seq, int) or not last < seq < _MOST_SEQ:
            raise ValueError("its events are not in order")
        last = seq
        turn = each.get("turn" if kind in BRANCHING else "replaces", 0)
        if kind in _SAID | BRANCHING and isinstance(turn, int):
            yield Event.of(seq, kind, each, moment(each.get("at")))
        elif kind not in _SILENT:
            unknown[kind[:40]] += 1


def _files(given: object) -> Iterator[tuple[str, tuple[bytes, str]]]:
    """Yields the digest of each file, its content, and the texts of its pages as JSON."""
    for each in dicts(given):
        try:
            content = base64.b64decode(each.get("data", ""), validate=True)
        except (ValueError, TypeError):
            continue
        pages = each.get("pages")
        texts = [clean(text) for text in pages] if isinstance(pages, list) else []
        digest = hashlib.sha256(content).hexdigest()
        yield digest, (content, json.dumps(texts, ensure_ascii=False))


def _attached(
    data: Mapping[str, Any], files: Mapping[str, tuple[bytes, str]], unknown: Unknown
) -> Iterator[Attachment]:
    """Yields the files of a question, held to what holds for files that are attached here.

    What is no picture would make a provider refuse each question that follows.
    """
    for each in islice(dicts(data.get("attachments")), MOST_FILES):
        content, texts = files.get(str(each.get("digest")), (b"", "[]"))
        kind = "".join(clean(each.get("media_type")).split())[:100]
        try:
            found = checked_file(NewFile(clean(each.get("name"))[:200], content, kind)).attachment
        except ConfigError:
            unknown["attachments"] += 1
            continue
        pages = [] if found.is_image else json.loads(texts)
        yield replace(found, pages=len(pages), length=sum(map(len, pages)))


def _page(given: Mapping[str, Any]) -> Page | None:
    """Returns the address and the title of a source, which may be a file or of the library."""
    url = clean(given.get("url"))
    return (url, clean(given.get("title"))[:300]) if 0 < len(url) <= 4000 else None


def _cited(text: str, given: object) -> Iterator[str | tuple[Page, ...]]:
    """Splits an answer at the marks of its citations; each is written again with its number."""
    places = dict[int, tuple[int, Page]]()
    for each in dicts(given):
        for start, end in _spans(each.get("spans")):
            found = _page(each)
            if found and 0 <= start < end <= len(text):
                written = _NUMBER.fullmatch(text[start:end])
                places.setdefault(start if written else end, (end, found))
    last = 0
    for start, (end, found) in sorted(places.items()):
        if start >= last:
            yield text[last:start]
            yield (found,)
            last = end
    yield text[last:]


def _spans(given: object) -> Iterator[tuple[int, int]]:
    for each in given if isinstance(given, list) else ():
        if isinstance(each, list) and len(each) == 2 and all(isinstance(n, int) for n in each):
            yield each[0], each[1]
