"""Messages as Chat Completions wants them, so that no history is ever refused.

Every call has its result, right after it. Neighbours of one role are one message, because chat
templates demand that roles take turns; they are joined by appending, so that a request stays the
beginning of the next one. An answer that called functions goes back to the server and model that
made it with its own call ids, signatures and reasoning; anyone else gets text and calls. Reasoning
of answers without calls is not sent: no server needs it, and some refuse it.

Spec: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agent.types import Message, Request, ToolCall

PROVIDER = "openai-chat"
ID_LIMIT = 40
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LOST = "No result: the call was interrupted."
_GAP = b"\\n\\n"
_TEXT = "openai-chat"


def version(host: str) -> str:
    """The mark of what a server made: ids and signatures mean nothing to another one."""
    return f"1 {host}"


def encode_messages(request: Request, host: str) -> bytes:
    """The elements of `messages`, joined by commas. Each message is serialised once."""
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
                out.say("user", _memo(message, _TEXT) or _text("(empty)"))
    out.close()
    return b",".join(out.items)


class _Transcript:
    """The list as it grows. `waiting`: calls without a result yet, and their ids on the wire."""

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
        """More text of one side."""
        self._settle()
        if self._role == role:
            self._open += [_GAP, text]
            return
        self._end()
        self._role = role
        self._open = [b'{"role":"', role.encode(), b'","content":"', text]

    def answer(self, message: Message) -> None:
        """An answer of the model; one that holds nothing is left out."""
        text = _memo(message, _TEXT)
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
        """The result of a call; one without its call is refused as such, as text it is not lost."""
        wire = self._waiting.pop(message.tool_call_id or "", None)
        if wire is None:
            self._strays.append(message)
            return
        key = f"{_TEXT} result {wire}"
        encoded = message.encoded.get(key)
        if encoded is None:
            encoded = message.encoded[key] = _result(wire, _told(message))
        self.items.append(encoded)

    def close(self) -> None:
        """The end of the list."""
        self._settle()
        self._end()

    def _settle(self) -> None:
        """All calls are answered before anybody speaks again."""
        lost, self._waiting = self._waiting, {}
        self.items += [_result(wire, _LOST) for wire in lost.values()]
        strays, self._strays = self._strays, []
        for stray in strays:
            name = stray.tool_name or "a tool"
            self.say("user", _text(f"(Result of {name}, out of order)\n{stray.content}"))

    def _end(self) -> None:
        if self._role:
            self.items.append(b"".join((*self._open, b'"}')))
            self._role, self._open = "", []

    def _calls(self, message: Message) -> tuple[dict[str, str], bytes]:
        """The calls' ids on the wire by ours, and the encoded members that hold the calls."""
        block = self._own_block(message)
        wires = [call.get("id") for call in block["tool_calls"]] if block else []
        usable = len(set(wires)) == len(wires) and all(
            isinstance(wire, str) and wire and wire not in self._used for wire in wires
        )
        if not block or not usable:
            wires = [_free(call.id, self._used) for call in message.tool_calls]
        self._used.update(wires)
        key = " ".join((_TEXT, "own" if block else "calls", *wires))
        encoded = message.encoded.get(key)
        if encoded is None:
            encoded = message.encoded[key] = _encode_calls(message, block, wires)
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
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"), default=dict)
    return b"," + text[1:-1].encode("utf-8", "replace")


def _call(call: ToolCall, raw: Mapping[str, Any], wire: str) -> dict[str, Any]:
    arguments = (raw.get("function") or {}).get("arguments")
    if call.problem is not None or not isinstance(arguments, str) or not arguments.strip():
        # Servers parse what they get back; broken JSON would end the conversation.
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=dict)
    extra = {k: v for k, v in raw.items() if k not in ("id", "type", "function", "index")}
    function = {"name": tool_name(call.name), "arguments": arguments}
    return {"id": wire, "type": "function", "function": function, **extra}


def _result(wire: str, text: str) -> bytes:
    item = {"role": "tool", "tool_call_id": wire, "content": text}
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _told(message: Message) -> str:
    text = message.content or "(empty)"
    if message.is_error and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def tool_name(name: str) -> str:
    """`name` as the API allows it."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


def _free(call_id: str, used: set[str]) -> str:
    """Ids of other makers may be longer than what is allowed here, or equal to one sent already."""
    if 0 < len(call_id) <= ID_LIMIT and call_id not in used:
        return call_id
    return "call_" + blake2b(call_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _memo(message: Message, key: str) -> bytes:
    encoded = message.encoded.get(key)
    if encoded is None:
        encoded = message.encoded[key] = _text(message.content)
    return encoded


def _text(text: str) -> bytes:
    """`text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
