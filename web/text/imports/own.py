"""All chats as one file, and such a file read again.

    [{searchloop_chat: 1, session: {id, title, created, updated, settings},
      events: [{seq, type, at, ...}], files: [{digest, data (base64), pages}]}, ...]

A file may have been written by anybody. What it says is kept; what it could do is not: modes,
folders, approvals, agents, changes of files and a provider's own blocks stay behind. A copy of
those is `searchloop sessions backup`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from searchloop.agent.log import Event, EventLog
from searchloop.agent.log.events import DELTAS, citation_data, citation_from, source_data
from searchloop.agent.log.session import Session
from searchloop.agent.text import plain
from searchloop.agent.types import Source, ToolCall, Usage
from searchloop.agent.types.attachments import Attachment
from searchloop.web.text.imports.chats import Chat, Unknown, clean, dicts, moment

ORIGIN = "searchloop"
_MARK = "searchloop_chat"
_BEHIND = DELTAS | {"exchange", "approval_requested", "approval_decided", "tool_started"}
_MOST_SEQ = 1 << 40


def written(log: EventLog, session: Session) -> bytes:
    """Returns one chat as a line of JSON."""
    events, digests = list[dict[str, Any]](), dict[str, None]()
    for event in log.read(session.id):
        if event.type in _BEHIND:
            continue
        data = {k: v for k, v in event.data.items() if k != "provider_data"}
        events.append({**data, "seq": event.seq, "type": event.type, "at": event.at})
        digests |= dict.fromkeys(each["digest"] for each in data.get("attachments", ()))
    files = []
    for digest in digests:
        data_of = log.attachments.data(session.id, digest) or b""
        pages = log.attachments.texts(session.id, digest)
        encoded = base64.b64encode(data_of).decode()
        files.append({"digest": digest, "data": encoded, "pages": pages})
    told = {k: v for k, v in session.as_dict().items() if k not in ("workspace", "running")}
    chat = {_MARK: 1, "session": told, "events": events, "files": files}
    return json.dumps(plain(chat), ensure_ascii=False, separators=(",", ":")).encode()


def everything(log: EventLog) -> Iterator[bytes]:
    """Yields all chats of a person as one JSON array, piece by piece; no temporary ones."""
    yield b"["
    between = b"\n"
    for session in log.sessions(1_000_000):
        if session.messages and not session.settings.get("temporary"):
            yield between + written(log, session)
            between = b",\n"
    yield b"\n]\n"


def read(item: Mapping[str, Any], unknown: Unknown) -> Chat | None:
    """Returns the chat of an object, None if it is none of ours. Raises ValueError."""
    session = item.get("session")
    if item.get(_MARK) is None or not isinstance(session, dict):
        return None
    settings = session.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    events = list(_events(item.get("events"), unknown))
    return Chat(
        ORIGIN,
        clean(session.get("id")),
        clean(session.get("title")),
        moment(session.get("created")),
        moment(session.get("updated")),
        pinned=settings.get("pinned") is True,
        archived=settings.get("archived") is True,
        events=events,
        files=list(_files(item.get("files"), events)),
    )


def _events(given: object, unknown: Unknown) -> Iterator[Event]:
    last = 0
    asked = set[int]()
    for each in dicts(given):
        seq, kind = each.get("seq"), str(each.get("type"))
        if not isinstance(seq, int) or not last < seq < _MOST_SEQ:
            raise ValueError("its events are not in order")
        if kind not in _KNOWN:
            unknown[kind[:40]] += 1
            continue
        try:
            data = _KNOWN[kind](each)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"one of its events ({kind}) is damaged") from error
        if kind == "user_message":
            asked.add(seq)
            if data.get("replaces") not in asked:
                data.pop("replaces", None)
        elif not asked or not set(_turns(data)) <= asked:
            continue
        last = seq
        yield Event(seq, kind, plain(data), moment(each.get("at")))


def _turns(data: Mapping[str, Any]) -> Iterator[int]:
    """Yields the numbers of the questions that an event names."""
    if "turn" in data:
        yield data["turn"]
    yield from data.get("turns", ())


def _files(given: object, events: list[Event]) -> Iterator[tuple[str, bytes, str]]:
    """Yields the files that questions name and whose content is what they name."""
    named = {e["digest"] for event in events for e in event.data.get("attachments", ())}
    for each in dicts(given):
        try:
            content = base64.b64decode(each.get("data", ""), validate=True)
        except (ValueError, TypeError):
            continue
        digest, pages = hashlib.sha256(content).hexdigest(), each.get("pages")
        if digest in named and content:
            texts = [clean(text) for text in pages] if isinstance(pages, list) else []
            yield digest, content, json.dumps(texts, ensure_ascii=False)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return clean(value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _cited(given: Mapping[str, Any]) -> dict[str, Any]:
    citations = [citation_from(each) for each in dicts(given.get("citations"))]
    for citation in citations:
        spans = [place for mark in citation.marks if mark.span for place in mark.span]
        [_number(each) for each in (citation.n, *spans)], _text(citation.url), _text(citation.title)
    named = ("url", "title", "state", "n", "published")
    sources = [
        Source(**{k: v for k, v in each.items() if k in named})
        for each in dicts(given.get("sources"))
    ]
    for source in sources:
        _text(source.url), _text(source.title), _number(source.n or 0)
    cited = [citation_data(citation) for citation in citations]
    return {"citations": cited, "sources": [source_data(source) for source in sources]}


def _question(given: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"text": _text(given["text"]), "imported": True}
    if given.get("replaces") is not None:
        data["replaces"] = _number(given["replaces"])
    files = [Attachment(**each) for each in dicts(given.get("attachments"))]
    for each in files:
        texts = (each.name, each.media_type, each.digest)
        sizes = (each.size, each.width, each.height, each.pages, each.length, each.n)
        [_text(text) for text in texts], [_number(size) for size in sizes]
        if max(sizes) > 1 << 31 or min(sizes) < 0 or each.pages > 100_000:
            raise TypeError
    return {**data, "attachments": [each.as_dict() for each in files]} if files else data


def _message(given: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        ToolCall(_text(each["id"]), _text(each["name"]), dict(each.get("arguments") or {}))
        for each in dicts(given.get("tool_calls"))
    ]
    called = [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in calls]
    said = {"text": _text(given["text"]), "thinking": clean(given.get("thinking"))}
    step = {"step": _number(given.get("step", 1)), "usage": _usage(given), "stop_reason": "stop"}
    partial = {"partial": True} if given.get("partial") is True else {}
    return {**said, **_cited(given), "tool_calls": called, "details": {}, **step, **partial}


def _usage(given: Mapping[str, Any]) -> dict[str, Any]:
    usage = given.get("usage")
    counts = Usage().as_dict()
    known = usage.items() if isinstance(usage, dict) else ()
    return counts | {k: v for k, v in known if k in counts and isinstance(v, int | float | None)}


def _finished(given: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: clean(given.get(name)) for name in ("run_id", "answer", "search_path", "model")}
    reason = given.get("reason")
    ended = reason if reason in ("stop", "limit", "cancelled", "error", "incomplete") else "stop"
    error = {"error": _notice(given["error"])} if isinstance(given.get("error"), dict) else {}
    return {**texts, "reason": ended, **_cited(given), "usage": _usage(given), **error}


def _notice(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: clean(given.get(name)) for name in ("code", "message", "remedy")}


def _result(given: Mapping[str, Any]) -> dict[str, Any]:
    details = given.get("details")
    private = isinstance(details, dict) and details.get("private") is True
    named = {name: _text(given[name]) for name in ("call_id", "name", "content")}
    known = {"is_error": given.get("is_error") is True, "sources": _cited(given)["sources"]}
    return {
        **named,
        **known,
        "details": {"untrusted": True, **({"private": True} if private else {})},
    }


def _some(*texts: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda given: {name: clean(given.get(name)) for name in texts}


def _turn(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"turn": _number(given["turn"])}


def _summary(given: Mapping[str, Any]) -> dict[str, Any]:
    turns = [_number(each) for each in given["turns"]]
    said = {"text": _text(given["text"]), "model": clean(given.get("model")) or None}
    return {**said, "upto": _number(given["upto"]), "turns": turns, "by": "auto", "usage": {}}


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: _text(given[name]) for name in ("call_id", "name")}
    return {**named, "arguments": dict(given.get("arguments") or {}), "effect": "read"}


def _searched(given: Mapping[str, Any]) -> dict[str, Any]:
    found = given.get("results")
    results = found if isinstance(found, int) and not isinstance(found, bool) else 0
    return {**_some("query", "by", "status")(given), "results": results, "attempts": []}


_KNOWN: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "user_message": _question,
    "run_started": _some("run_id", "session_id", "model", "mode", "search", "search_path"),
    "search_started": _some("query", "by"),
    "search_finished": _searched,
    "page_opened": _some("url", "status", "title"),
    "tool_call": _call,
    "tool_result": _result,
    "message": _message,
    "notice": _notice,
    "summary": _summary,
    "run_finished": _finished,
    **dict.fromkeys(("branch_chosen", "turn_removed", "turn_restored"), _turn),
}
