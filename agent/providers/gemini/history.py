"""Messages as `contents` of the Gemini API, so that no history is ever refused.

Roles alternate: what follows in the same role is one content with more parts, so all results of a
step stand together right after its calls, in their order, one for each. An answer of the model that
is asked is replayed part by part as it came, with its signatures in their places; anybody else's as
neutral text and calls. Newer models demand a signature on the first call of each step: a step that
has none gets the value that the server documents for histories made elsewhere. It gets that in old
turns too, where nobody checks, so that the bytes of a message never change.

Parts in which the server searched by itself are sent back while it is still offered to search; with
the switch off no request speaks of searching.

Spec: https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.types import Message, ToolCall

PROVIDER = "gemini"
VERSION = "1"
TOKEN = "continuationToken"  # in a block of its own: how a paused answer goes on
UNSIGNED = "skip_thought_signature_validator"
SERVER_SIDE = frozenset({"toolCall", "toolResponse"})
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_.:\-]")
_LOST = "No result: the call was interrupted."

Part = dict[str, Any]


@dataclass(slots=True)
class Contents:
    """`body` is the elements of `contents`; `server_side` says that they hold searches."""

    body: bytes = b""
    server_side: bool = False
    token: str | None = None
    turns: list[tuple[str, list[bytes]]] = field(default_factory=list)

    def add(self, role: str, parts: bytes) -> None:
        """More of a turn, or the next one."""
        if not parts:
            return
        if self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].append(parts)
        else:
            self.turns.append((role, [parts]))

    def forget_question(self, question: bytes) -> None:
        """Takes back what the server refuses to read, or it would refuse every later request."""
        if self.turns and self.turns[-1][0] == "user" and self.turns[-1][1][-1] is question:
            self.turns[-1][1].pop()
            if not self.turns[-1][1]:
                self.turns.pop()

    def close(self) -> None:
        """A conversation begins and ends with the user."""
        if self.turns and self.turns[0][0] == "model":
            self.turns.insert(0, ("user", [_dump({"text": "(The conversation goes on.)"})]))
        if not self.turns or self.turns[-1][0] == "model":
            self.turns.append(("user", [_dump({"text": "Continue."})]))
        self.body = b",".join(
            b'{"role":"%s","parts":[%s]}' % (role.encode(), b",".join(parts))
            for role, parts in self.turns
        )


def encode_contents(
    messages: Sequence[Message], model: str, *, searching: bool, signs: bool
) -> Contents:
    """The conversation. Each message is serialised once."""
    contents = Contents()
    messages, contents.token = _resumed(messages, model)
    waiting: dict[str, tuple[ToolCall, bool]] = {}
    results: dict[str, Message] = {}
    strays: list[Message] = []
    question = b""
    for message in messages:
        if message.role == "tool":
            known = message.tool_call_id in waiting and message.tool_call_id not in results
            if known:
                results[str(message.tool_call_id)] = message
            else:
                strays.append(message)
            continue
        _answer(contents, waiting, results, strays)
        if message.role == "user":
            question = _remembered(message, "gemini")
            contents.add("user", question)
            continue
        if message.details.get("blocked") == "prompt":
            contents.forget_question(question)
            continue
        variant = _variant(message, model, searching, signs)
        contents.server_side |= variant.endswith("+search")
        contents.add("model", _remembered(message, variant))
        ids = _server_ids(message) if ":raw" in variant else frozenset()
        waiting = {call.id: (call, call.id in ids) for call in message.tool_calls}
        results, strays = {}, []
    _answer(contents, waiting, results, strays)
    contents.close()
    return contents


def _answer(
    contents: Contents,
    waiting: dict[str, tuple[ToolCall, bool]],
    results: dict[str, Message],
    strays: list[Message],
) -> None:
    """One result for each call, in the order of the calls; results without a call after them."""
    for call_id, (call, known) in waiting.items():
        result = results.get(call_id)
        if result is None:
            contents.add("user", _dump(_result(call, known, _LOST, error=True)))
            continue
        key = "gemini:id" if known else "gemini"
        if key not in result.encoded:
            part = _result(call, known, result.content, error=result.is_error)
            result.encoded[key] = _dump(part)
        contents.add("user", result.encoded[key])
    for stray in strays:
        contents.add("user", _remembered(stray, "gemini:stray"))
    waiting.clear()
    results.clear()
    strays.clear()


def _resumed(messages: Sequence[Message], model: str) -> tuple[Sequence[Message], str | None]:
    """Without the paused beginning of an answer, which a token stands for while it goes on."""
    token, end = None, len(messages)
    while end and messages[end - 1].role == "assistant" and _own(messages[end - 1], model):
        found = _token(messages[end - 1])
        if found is None:
            break
        token, end = token or found, end - 1
    return (messages[:end], token) if token else (messages, None)


def _token(message: Message) -> str | None:
    data = message.provider_data
    last = data.blocks[-1] if data and data.blocks else {}
    found = last.get(TOKEN)
    return found if isinstance(found, str) and not message.tool_calls else None


def _own(message: Message, model: str) -> bool:
    data = message.provider_data
    return data is not None and (data.provider, data.model, data.version) == (
        PROVIDER,
        model,
        VERSION,
    )


def _variant(message: Message, model: str, searching: bool, signs: bool) -> str:
    if not _own(message, model) or len(_calls(message)) != len(message.tool_calls):
        return "gemini:signed" if signs else "gemini"
    assert message.provider_data is not None
    served = any(SERVER_SIDE & block.keys() for block in message.provider_data.blocks)
    variant = "gemini:raw:signed" if signs else "gemini:raw"
    return f"{variant}+search" if served and searching else variant


def _calls(message: Message) -> list[Part]:
    blocks = message.provider_data.blocks if message.provider_data else ()
    return [block["functionCall"] for block in blocks if block.get("functionCall")]


def _server_ids(message: Message) -> frozenset[str]:
    """Ids of calls that the server gave; others are ours and mean nothing to it."""
    return frozenset(call["id"] for call in _calls(message) if call.get("id"))


def _remembered(message: Message, variant: str) -> bytes:
    encoded = message.encoded.get(variant)
    if encoded is None:
        encoded = b",".join(_dump(part) for part in _parts(message, variant))
        message.encoded[variant] = encoded
    return encoded


def _parts(message: Message, variant: str) -> Iterable[Part]:
    if message.role == "user":
        return ({"text": message.content or "(empty)"},)
    if message.role == "tool":
        name = message.tool_name or "a tool"
        return ({"text": f"(Result of {name}, out of order)\n{message.content}"},)
    signed = ":signed" in variant
    if ":raw" in variant:
        return _signed(_replayed(message, searching=variant.endswith("+search")), signed)
    return _signed(_neutral(message), signed)


def _neutral(message: Message) -> Iterator[Part]:
    if message.content:
        yield {"text": message.content}
    for call in message.tool_calls:
        yield {"functionCall": {"name": _name(call.name), "args": dict(call.arguments)}}


def _replayed(message: Message, searching: bool) -> list[Part]:
    assert message.provider_data is not None
    parts = [
        _named(block)
        for block in message.provider_data.blocks
        if TOKEN not in block and (searching or not SERVER_SIDE & block.keys())
    ]
    # Thoughts alone are no answer, and a content of nothing else may be refused.
    return parts if any(not part.get("thought") for part in parts) else []


def _named(part: Part) -> Part:
    """Models make names up that the server does not take back."""
    call = part.get("functionCall")
    if call is None or _name(call["name"]) == call["name"]:
        return part
    return {**part, "functionCall": {**call, "name": _name(call["name"])}}


def _signed(parts: Iterable[Part], wanted: bool) -> Iterator[Part]:
    """With a signature on the first call, unless the step has one of its own."""
    parts = list(parts)
    missing = wanted and not any(
        part.get("thoughtSignature") for part in parts if "functionCall" in part
    )
    for part in parts:
        if missing and "functionCall" in part:
            missing = False
            part = {**part, "thoughtSignature": UNSIGNED}
        yield part


def _result(call: ToolCall, known: bool, text: str, *, error: bool) -> Part:
    named: Part = {"id": call.id} if known else {}
    named["name"] = _name(call.name)
    named["response"] = {"error" if error else "output": text}
    return {"functionResponse": named}


def _name(name: str) -> str:
    """Names of other makers may hold what is not allowed here; call and result change alike."""
    name = _BAD_NAME.sub("_", name)[:128] or "unknown"
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[:127]}"


def _dump(part: Part) -> bytes:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
