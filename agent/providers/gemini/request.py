"""Encodes messages as `contents` that the server accepts.

Roles alternate; all results of a step follow its calls in their order. An answer of the same model
goes back part by part with its signatures, any other as text and calls. Newer models demand a
signature on the first call of each step; a call without one gets the value that the documents give
for it. Parts with the server's own searches go back only while it may search.

Spec: https://ai.google.dev/gemini-api/docs/thought-signatures
      https://ai.google.dev/gemini-api/docs/function-calling
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from searchloop.agent.providers._wire import dump, remembered, steps, stray_text, text_in
from searchloop.agent.types import Message, ToolCall

PROVIDER = "gemini"
VERSION = "1"
TOKEN = "continuationToken"  # in a block of its own: continues a paused answer
UNSIGNED = "skip_thought_signature_validator"
SERVER_SIDE = frozenset({"toolCall", "toolResponse"})
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_.:\-]")

Part = dict[str, Any]


@dataclass(slots=True)
class Contents:
    """`body` is the elements of `contents`; `server_side` is True if they hold searches."""

    body: bytes = b""
    server_side: bool = False
    token: str | None = None
    turns: list[tuple[str, list[bytes]]] = field(default_factory=list)

    def add(self, role: str, parts: bytes) -> None:
        """Adds parts to the current turn, or begins the next one."""
        if parts and self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].append(parts)
        elif parts:
            self.turns.append((role, [parts]))

    def forget_question(self, question: bytes) -> None:
        """Removes a blocked question: with it the server would refuse every later request."""
        if self.turns and self.turns[-1][0] == "user" and self.turns[-1][1][-1] is question:
            self.turns[-1][1].pop()
            if not self.turns[-1][1]:
                self.turns.pop()

    def close(self) -> None:
        """Makes the conversation begin and end with the user, and joins it."""
        if self.turns and self.turns[0][0] == "model":
            self.turns.insert(0, ("user", [dump({"text": "(The conversation goes on.)"})]))
        if not self.turns or self.turns[-1][0] == "model":
            self.turns.append(("user", [dump({"text": "Continue."})]))
        self.body = b",".join(
            b'{"role":"%s","parts":[%s]}' % (role.encode(), b",".join(parts))
            for role, parts in self.turns
        )


def encode_contents(
    messages: Sequence[Message], model: str, *, searching: bool, signs: bool
) -> Contents:
    """Encodes the conversation, each message once; replays answers of `model`, none for ""."""
    contents = Contents()
    messages, contents.token = _resumed(messages, model)
    question = b""
    for message, results, strays in steps(messages):
        if message is not None and message.role == "user":
            question = _cached(message, "gemini")
            contents.add("user", question)
        elif message is not None and message.details.get("blocked") == "prompt":
            contents.forget_question(question)
        elif message is not None:
            variant = _variant(message, model, searching, signs)
            contents.server_side |= variant.endswith("+search")
            contents.add("model", _cached(message, variant))
            ids = _server_ids(message) if results and ":raw" in variant else frozenset()
            for call, result in zip(message.tool_calls, results, strict=True):
                contents.add("user", _result(call, call.id in ids, result))
        for stray in strays:
            contents.add("user", _cached(stray, "gemini:stray"))
    contents.close()
    return contents


def _resumed(messages: Sequence[Message], model: str) -> tuple[Sequence[Message], str | None]:
    """Returns the messages without the paused beginning of an answer, and its token."""
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
    made = (data.provider, data.model, data.version) if data else None
    return made == (PROVIDER, model, VERSION)


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
    """Returns the ids that the server made; it does not know ours."""
    return frozenset(filter(None, (text_in(call, "id") for call in _calls(message))))


def _cached(message: Message, variant: str) -> bytes:
    return remembered(message, variant, lambda: b",".join(map(dump, _parts(message, variant))))


def _parts(message: Message, variant: str) -> Iterable[Part]:
    if message.role == "user":
        files = (
            {"inlineData": {"mimeType": f.media_type, "data": f.data}} for f in message.attachments
        )
        return (*files, {"text": message.content or "(empty)"})
    if message.role == "tool":
        return ({"text": stray_text(message)},)
    raw, searching = ":raw" in variant, variant.endswith("+search")
    parts = _replayed(message, searching) if raw else _neutral(message)
    return _signed(parts) if ":signed" in variant else parts


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
    """Sanitizes the name of a call: models invent names that the server does not take back."""
    call = part.get("functionCall")
    if call is None or _name(call["name"]) == call["name"]:
        return part
    return {**part, "functionCall": {**call, "name": _name(call["name"])}}


def _signed(parts: Iterable[Part]) -> list[Part]:
    """Adds a signature to the first call, unless the step has one."""
    parts = list(parts)
    calls = [at for at, part in enumerate(parts) if "functionCall" in part]
    if calls and not any(parts[at].get("thoughtSignature") for at in calls):
        parts[calls[0]] = {**parts[calls[0]], "thoughtSignature": UNSIGNED}
    return parts


def _result(call: ToolCall, known: bool, result: Message) -> bytes:
    """Encodes a result; only a server that made the id gets it back."""
    said = {"error" if result.is_error else "output": result.content}
    named: Part = {"id": call.id} if known else {}
    named |= {"name": _name(call.name), "response": said}
    variant = "gemini:id" if known else "gemini"
    return remembered(result, variant, lambda: dump({"functionResponse": named}))


def _name(name: str) -> str:
    """Sanitizes names from other providers; a call and its result change alike."""
    name = _BAD_NAME.sub("_", name)[:128] or "unknown"
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[:127]}"
