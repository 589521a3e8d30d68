"""Encodes messages for Chat Completions, so that no history is ever refused.

Every call has its result, right after it. Neighbours of one role become one message, because chat
templates demand that roles take turns. An answer that called functions goes back to the server and
model that made it with its own call ids, signatures and reasoning; any other gets text and calls.
Reasoning of answers without calls is not sent: no server needs it, and some refuse it.

Spec: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from searchloop.agent.providers._common import (
    LOST,
    dump,
    function_name,
    hashed_id,
    remembered,
    result_text,
    stray_text,
)
from searchloop.agent.types import Message, Request, ToolCall

PROVIDER = "openai-chat"
ID_LIMIT = 40
_GAP = b"\\n\\n"
_TEXT = "openai-chat"


def version(host: str) -> str:
    """Marks the raw answers of a server: ids and signatures mean nothing to another one."""
    return f"1 {host}"


def encode_messages(request: Request, host: str) -> bytes:
    """Returns the elements of `messages`, joined by commas. Encodes each message once."""
    out = _Transcript(request.model, version(host))
    if request.system:
        out.items.append(b'{"role":"system","content":"' + _text(request.system) + b'"}')
    for message in request.messages:
        match message.role:
            case "tool":
                out.result(message)
            case "assistant":
                out.answer(message)
            case _:
                out.say("user", _content(message) or _text("(empty)"))
    return out.encoded()


class _Transcript:
    """Builds the list. `_waiting` maps calls without a result yet to their ids on the wire."""

    def __init__(self, model: str, version: str) -> None:
        self.items: list[bytes] = []
        self._model = model
        self._version = version
        self._role = ""
        self._open: list[bytes] = []
        self._waiting: dict[str, str] = {}
        self._strays: list[Message] = []
        self._used: set[str] = set()

    def say(self, role: str, text: bytes) -> None:
        """Adds text of one side."""
        self._settle()
        if self._role == role:
            self._open += [_GAP, text]
            return
        self._end()
        self._role = role
        self._open = [b'{"role":"', role.encode(), b'","content":"', text]

    def answer(self, message: Message) -> None:
        """Adds an answer of the model, unless it is empty."""
        text = _content(message)
        if not message.tool_calls:
            if text:
                self.say("assistant", text)
            return
        self._settle()
        if text or self._role == "assistant":
            if text:
                self.say("assistant", text)
            start = b"".join((*self._open, b'"'))
        else:
            self._end()
            start = b'{"role":"assistant","content":null'
        self._role, self._open = "", []
        ids, calls = self._calls(message)
        self._waiting = ids
        self.items.append(start + calls + b"}")

    def result(self, message: Message) -> None:
        """Adds the result of a call; one without its call becomes text, because APIs refuse it."""
        wire = self._waiting.pop(message.tool_call_id or "", None)
        if wire is None:
            self._strays.append(message)
            return
        key = f"{_TEXT} result {wire}"
        self.items.append(remembered(message, key, lambda: _result(wire, result_text(message))))

    def encoded(self) -> bytes:
        """Ends the list and returns its elements."""
        self._settle()
        self._end()
        return b",".join(self.items)

    def _settle(self) -> None:
        """Answers all open calls before anybody speaks again."""
        lost, self._waiting = self._waiting, {}
        self.items += [_result(wire, LOST) for wire in lost.values()]
        strays, self._strays = self._strays, []
        for stray in strays:
            self.say("user", _text(stray_text(stray)))

    def _end(self) -> None:
        if self._role:
            self.items.append(b"".join((*self._open, b'"}')))
            self._role, self._open = "", []

    def _calls(self, message: Message) -> tuple[dict[str, str], bytes]:
        """Returns the ids on the wire by our ids, and the encoded members with the calls."""
        block = self._own_block(message)
        wires = [call.get("id") for call in block["tool_calls"]] if block else []
        usable = len(set(wires)) == len(wires) and all(
            isinstance(wire, str) and wire and wire not in self._used for wire in wires
        )
        if not block or not usable:
            wires = [_free(call.id, self._used) for call in message.tool_calls]
        self._used.update(wires)
        key = " ".join((_TEXT, "own" if block else "calls", *wires))
        encoded = remembered(message, key, lambda: _encode_calls(message, block, wires))
        ids = {call.id: wire for call, wire in zip(message.tool_calls, wires, strict=True)}
        return ids, encoded

    def _own_block(self, message: Message) -> Mapping[str, Any] | None:
        data = message.provider_data
        made = (PROVIDER, self._model, self._version)
        if data is None or (data.provider, data.model, data.version) != made or not data.blocks:
            return None
        block: Mapping[str, Any] = data.blocks[0]
        whole = len(block.get("tool_calls") or ()) == len(message.tool_calls)
        return block if whole else None


def _encode_calls(message: Message, block: Mapping[str, Any] | None, wires: list[str]) -> bytes:
    raw = block["tool_calls"] if block else [{}] * len(wires)
    calls = [_call(*each) for each in zip(message.tool_calls, raw, wires, strict=True)]
    members = {"tool_calls": calls}
    members |= {k: v for k, v in (block or {}).items() if k not in ("role", "tool_calls")}
    return b"," + dump(members)[1:-1]


def _call(call: ToolCall, raw: Mapping[str, Any], wire: str) -> dict[str, Any]:
    arguments = (raw.get("function") or {}).get("arguments")
    if call.problem is not None or not isinstance(arguments, str) or not arguments.strip():
        # Servers parse what they get back; broken JSON would end the conversation.
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=dict)
    extra = {k: v for k, v in raw.items() if k not in ("id", "type", "function", "index")}
    function = {"name": function_name(call.name), "arguments": arguments}
    return {"id": wire, "type": "function", "function": function, **extra}


def _result(wire: str, text: str) -> bytes:
    return dump({"role": "tool", "tool_call_id": wire, "content": text})


def _free(call_id: str, used: set[str]) -> str:
    """Replaces ids of other makers that are too long here, or equal to one sent already."""
    if 0 < len(call_id) <= ID_LIMIT and call_id not in used:
        return call_id
    return hashed_id(call_id, "call_")


def _content(message: Message) -> bytes:
    return remembered(message, _TEXT, lambda: _text(message.content))


def _text(text: str) -> bytes:
    """Encodes `text` as it stands between the quotes of a JSON string."""
    return dump(text)[1:-1]
