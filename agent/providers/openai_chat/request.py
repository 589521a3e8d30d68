"""Encodes messages for Chat Completions, so that no history is ever refused.

Every call has its result, right after it. Neighbours of one role become one message, because chat
templates demand that roles take turns. An answer that called functions goes back to the server and
model that made it with its own call ids, signatures and reasoning; any other gets text and calls.
Reasoning of answers without calls is not sent: no server needs it, and some refuse it. What a
`Dialect` demands beyond that is added to both kinds.

`StreamedCalls` assembles the calls that servers stream in pieces. Pieces belong together by
`index`. Servers bend that rule: whole calls that all have index 0, no index at all, the id and the
name repeated with every piece, ids such as "0", made from the tool's name, or none, and names in
pieces. So each call gets an id of ours, unique in any session; the server's own id is kept for the
replay.

Spec: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from searchloop.agent.calls.arguments import is_object
from searchloop.agent.providers._answer import Calls
from searchloop.agent.providers._wire import (
    dump,
    function_name,
    hashed_id,
    remembered,
    result_text,
    steps,
    stray_text,
)
from searchloop.agent.providers.openai_chat.models import Dialect
from searchloop.agent.types import Message, Request, ToolCall

PROVIDER = "openai-chat"
ID_LIMIT = 40
_LETTERS = string.digits + string.ascii_letters
_GAP = b"\\n\\n"
_NO_ANSWER = b'{"role":"assistant","content":"(no answer)"}'
_NOT_KEPT = " "  # stands for reasoning that another model made: servers take "" for none
_TEXT = "openai-chat"


def version(host: str) -> str:
    """Marks the raw answers of a server: ids and signatures mean nothing to another one."""
    return f"1 {host}"


def encode_messages(request: Request, host: str, dialect: Dialect) -> list[bytes]:
    """Returns the elements of `messages`. Encodes each message once."""
    own = request.model if request.replay == "whole" else ""
    out = _Transcript(own, version(host), dialect)
    if request.system:
        out.items.append(b'{"role":"system","content":"' + _text(request.system) + b'"}')
    for message, results, strays in steps(request.messages):
        if message is not None and message.role == "user":
            out.say("user", _content(message) or _text("(empty)"), _files(message))
        elif message is not None:
            out.answer(message, results)
        for stray in strays:  # APIs refuse a result without its call
            out.say("user", _text(stray_text(stray)))
    out.end()
    return out.items


class _Transcript:
    """Builds the list; neighbours of one role become one message."""

    def __init__(self, model: str, version: str, dialect: Dialect) -> None:
        self.items: list[bytes] = []
        self._model = model
        self._version = version
        self._dialect = dialect
        self._after_tool = False
        self._role = ""
        self._open: list[bytes] = []
        self._files: list[bytes] = []
        self._used: set[str] = set()

    def say(self, role: str, text: bytes, files: bytes = b"") -> None:
        """Adds text of one side, and content parts with files."""
        if self._role == role:
            self._open += [_GAP, text]
            self._files += [files] if files else []
            return
        self.end()
        if role == "user" and self._after_tool and not self._dialect.user_after_tool:
            self.items.append(_NO_ANSWER)
        self._role, self._after_tool = role, False
        self._open = [b'{"role":"%b","content":' % role.encode(), b'"', text]
        self._files = [files] if files else []

    def answer(self, message: Message, results: Sequence[Message]) -> None:
        """Adds an answer of the model, unless it is empty, and the results of its calls."""
        if text := _content(message):
            self.say("assistant", text)
        if not message.tool_calls:
            return
        if self._role == "assistant":
            start = b"".join((*self._open, b'"'))
        else:
            self.end()
            start = b'{"role":"assistant","content":null'
        self._role, self._open = "", []
        wires, calls = self._calls(message)
        self.items.append(start + calls + b"}")
        for wire, result in zip(wires, results, strict=True):
            key = f"{_TEXT} result {wire}"
            self.items.append(remembered(result, key, partial(_result, wire, result)))
        self._after_tool = True

    def end(self) -> None:
        """Ends the message that is open."""
        if self._role and self._files:
            head, *text = self._open
            parts = b",".join(self._files)
            said = b'{"type":"text","text":%b"}' % b"".join(text)
            self.items.append(b"%b[%b,%b]}" % (head, parts, said))
        elif self._role:
            self.items.append(b"".join((*self._open, b'"}')))
        self._role, self._open, self._files = "", [], []

    def _calls(self, message: Message) -> tuple[list[str], bytes]:
        """Returns the ids on the wire, and the encoded members with the calls."""
        block = self._own_block(message)
        wires = [call.get("id") for call in block["tool_calls"]] if block else []
        usable = len(set(wires)) == len(wires) and all(map(self._usable, wires))
        if not block or not usable:
            wires = [self._free(call.id) for call in message.tool_calls]
        self._used.update(wires)
        reasoning = self._dialect.reasoning
        key = " ".join((_TEXT, "own" if block else "calls", reasoning, *wires))
        encoded = remembered(message, key, lambda: _encode_calls(message, block, wires, reasoning))
        return wires, encoded

    def _usable(self, wire: Any) -> bool:
        if not isinstance(wire, str) or not wire or wire in self._used:
            return False
        exact = self._dialect.id_length
        fits = wire.isascii() and wire.isalnum() and len(wire) == exact
        return fits if exact else len(wire) <= ID_LIMIT

    def _free(self, call_id: str) -> str:
        """Replaces an id that is refused here, or equal to one sent already."""
        if self._usable(call_id):
            return call_id
        exact = self._dialect.id_length
        return _short_id(call_id, exact) if exact else hashed_id(call_id, "call_")

    def _own_block(self, message: Message) -> Mapping[str, Any] | None:
        data = message.provider_data
        made = (PROVIDER, self._model, self._version)
        if data is None or (data.provider, data.model, data.version) != made or not data.blocks:
            return None
        block: Mapping[str, Any] = data.blocks[0]
        whole = len(block.get("tool_calls") or ()) == len(message.tool_calls)
        return block if whole else None


def _encode_calls(
    message: Message, block: Mapping[str, Any] | None, wires: list[str], reasoning: str
) -> bytes:
    raw = block["tool_calls"] if block else [{}] * len(wires)
    calls = [_call(*each) for each in zip(message.tool_calls, raw, wires, strict=True)]
    members: dict[str, Any] = {"tool_calls": calls}
    members |= {k: v for k, v in (block or {}).items() if k not in ("role", "tool_calls")}
    if reasoning and not members.get(reasoning):
        members[reasoning] = _NOT_KEPT
    return b"," + dump(members)[1:-1]


def _call(call: ToolCall, raw: Mapping[str, Any], wire: str) -> dict[str, Any]:
    arguments = (raw.get("function") or {}).get("arguments")
    if call.problem is not None or not is_object(arguments):
        # Servers parse what they get back: broken JSON, or an object inside a string, would end
        # the conversation.
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=dict)
    extra = {k: v for k, v in raw.items() if k not in ("id", "type", "function", "index")}
    function = {"name": function_name(call.name), "arguments": arguments}
    return {"id": wire, "type": "function", "function": function, **extra}


def _result(wire: str, result: Message) -> bytes:
    return dump({"role": "tool", "tool_call_id": wire, "content": result_text(result)})


def _short_id(call_id: str, length: int) -> str:
    """Makes an id of so many letters and digits, always the same from one call."""
    number = int.from_bytes(blake2b(call_id.encode("utf-8", "replace"), digest_size=16).digest())
    return "".join(_LETTERS[number // len(_LETTERS) ** i % len(_LETTERS)] for i in range(length))


def _files(message: Message) -> bytes:
    """Encodes files as content parts of the types `image_url` and `file`."""
    parts = (
        {"type": "image_url", "image_url": {"url": file.data_url}}
        if file.is_image
        else {"type": "file", "file": {"filename": file.name, "file_data": file.data_url}}
        for file in message.attachments
    )
    return remembered(message, f"{_TEXT} files", lambda: b",".join(map(dump, parts)))


def _content(message: Message) -> bytes:
    return remembered(message, _TEXT, lambda: _text(message.content))


def _text(text: str) -> bytes:
    """Encodes `text` as it stands between the quotes of a JSON string."""
    return dump(text)[1:-1]


_KNOWN = frozenset({"id", "type", "function", "index"})


class _Pending:
    """One call as far as it has come."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.extra: dict[str, Any] = {}


class StreamedCalls:
    """The calls of one answer, in order of appearance."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, items: Any, *, whole: bool) -> None:
        """Adds the `tool_calls` of a delta, or of a `whole` message: there each is a call."""
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict):
                self._piece({**item, "index": len(self._pending)} if whole else item)

    def build(self) -> tuple[tuple[ToolCall, ...], list[dict[str, Any]]]:
        """Returns the calls, and each as its server wrote it."""
        calls, raw = Calls(), []
        for pending in self._pending:
            text = pending.arguments
            if text.startswith("{}") and is_object(text[2:]):
                text = text[2:]  # an empty object first, then the real one
            calls.add("", pending.name, text)
            function = {"name": pending.name, "arguments": text}
            own = {"id": pending.id, "type": "function", "function": function}
            raw.append(own | pending.extra)
        return tuple(calls.made.values()), raw

    def _piece(self, item: Mapping[str, Any]) -> None:
        function = item.get("function")
        function = function if isinstance(function, dict) else {}
        given, name = _string(item.get("id")), _string(function.get("name"))
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        pending = self._find(item.get("index"), given, name)
        if pending is not None and name and _is_another(pending, given, name, arguments):
            if _is_repetition(pending, given, name, arguments):
                return
            pending = None
        if pending is None:
            pending = _Pending(item.get("index"))
            self._pending.append(pending)
        pending.id = pending.id or given
        if name != pending.name and not (pending.name and pending.arguments):
            pending.name += name.removeprefix(pending.name)
        pending.arguments += arguments
        pending.extra |= {k: v for k, v in item.items() if k not in _KNOWN and v is not None}

    def _find(self, index: Any, given: str, name: str) -> _Pending | None:
        if index is None and not given:
            return None if name or not self._pending else self._pending[-1]
        for pending in reversed(self._pending):
            if pending.index == index if index is not None else pending.id == given:
                return pending
        return None


def _is_another(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Returns True if a piece with a name begins a new call in the place of `pending`."""
    if given and pending.id and given != pending.id:
        return True
    # More arguments would break an object that is complete.
    return is_object(pending.arguments) and (is_object(arguments) or name != pending.name)


def _is_repetition(pending: _Pending, given: str, name: str, arguments: str) -> bool:
    """Returns True for the same call, sent a second time."""
    same = bool(given) and given == pending.id and name == pending.name
    return same and arguments == pending.arguments


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
