"""What encoders share: JSON, names, options, and transcripts in steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import inf
from typing import Any

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.types import Message, Request, ToolSpec

# The names that most APIs share. A provider's `options` maps ours to those of its API.
SAMPLING = {"temperature": "temperature", "top_p": "top_p"}


def filled(**members: Any) -> dict[str, Any]:
    """Returns the members that say something: no None, no empty text, list or object."""
    return {name: each for name, each in members.items() if each not in (None, "", [], {}, ())}


def sampling(request: Request, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options of a request under the names of an API."""
    return {names[key]: value for key, value in request.options.items() if key in names}


def function_of(tool: ToolSpec) -> dict[str, Any]:
    """Describes a function as most APIs take it."""
    name = function_name(tool.name)
    return {"name": name, "description": tool.description, "parameters": tool.parameters}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema as OpenAI's APIs take it."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


LOST = "No result: the call was interrupted."
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)


def dump(value: Any) -> bytes:
    """Encodes `value` as compact JSON; half a surrogate pair becomes a question mark."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def body(head: bytes, name: str, items: Sequence[bytes], tail: Mapping[str, Any]) -> bytes:
    """Returns the object `head` with the encoded list `items` under `name`, then `tail`.

    Messages come behind what stays the same, so that prompt caches hit.
    """
    pieces = [*items] or [b""]
    pieces[0] = b'%b,"%b":[%b' % (head[:-1], name.encode(), pieces[0])
    pieces[-1] += (b"]," if tail else b"]") + dump(tail)[1:]
    return b",".join(pieces)  # the one copy of a long history


# Words in the names of models that turn text into something else than text, or into vectors.
_NO_CHAT = re.compile(
    r"whisper|(?<![a-z])(?:tts|bge|clip|sora)(?![a-z])|embed|minilm|rerank|dall-?e|flux|diffusion"
    r"|gpt-image|moderation|transcri|realtime|kokoro|parakeet"
)
_KINDS_OF_CHAT = ("chat", "llm", "vlm", "language", "text", "model", "code", "multimodal")


def can_chat(entry: Any) -> bool:
    """Tells whether a model of a list answers in text: by what is said of it, else by its name."""
    kind = text_in(entry, "type").lower()
    made = member(entry, "output_modalities") or member(
        member(entry, "architecture"), "output_modalities"
    )
    if isinstance(made, list) and made:
        return "text" in made
    if kind and not kind.startswith(_KINDS_OF_CHAT):
        return False
    return not _NO_CHAT.search(text_in(entry, "id").lower())


def member(value: Any, key: str) -> Any:
    """Returns a member of an object, None for anything else."""
    return value.get(key) if isinstance(value, dict) else None


def text_in(value: Any, key: str) -> str:
    """Returns a text in an object, "" for anything else."""
    found = member(value, key)
    return found if isinstance(found, str) else ""


def count(value: Any, key: str) -> int | None:
    """Returns a count in an object, None for anything that is none."""
    found = member(value, key)
    return found if type(found) is int and found >= 0 else None


def money(value: Any) -> float | None:
    """Returns an amount, None for anything that is none."""
    return float(value) if type(value) in (int, float) and 0 <= value < inf else None


def number(value: Any, key: str) -> int:
    """Returns a count in an object, 0 for anything that is none."""
    return count(value, key) or 0


def function_name(name: str) -> str:
    """Replaces what APIs refuse in the name of a function: models make names up."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


def with_own_names(message: Message, tools: Iterable[ToolSpec]) -> Message:
    """Gives calls the names of the tools, which an API may have refused: see `function_name`."""
    names = {sent: tool.name for tool in tools if (sent := function_name(tool.name)) != tool.name}
    calls = (replace(call, name=names.get(call.name, call.name)) for call in message.tool_calls)
    return replace(message, tool_calls=tuple(calls)) if names else message


def hashed_id(call_id: str, prefix: str) -> str:
    """Makes a short id from one that an API refuses."""
    return prefix + blake2b(call_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def error_in(value: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """Returns the error object in a body or in a piece of a stream; None if there is none.

    The shape is `{"error": {message, type, param, code}}`; servers also send a bare string, a flat
    object, numbers as codes, an object or a list of faults where the words should be, and any of
    these in a list. `failed` says that the answer is an error, so that other shapes count, too.
    """
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        found = (error_in(each, failed=failed) for each in value)
        return next(filter(None, found), None)
    if not isinstance(value, dict):
        return {"message": _said(value)} if failed and value else None
    inner = value.get("error") or member(value.get("x_groq"), "error")
    if isinstance(inner, dict) and inner:
        return {**inner, "message": _words(inner)}
    if inner:
        return {**value, "message": _said(inner)}
    if "error" in (value.get("object"), value.get("type")) or (failed and _said(value)):
        return {**value, "message": _words(value)}
    return None


_WORDS = ("message", "detail", "details", "errors", "msg", "reason", "title")


def _said(value: Any) -> str:
    """Returns the words in a fault, which may be a list of faults with the place of each."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_said, value[:3])))
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    words = next(filter(None, (_said(value.get(name)) for name in _WORDS)), "")
    place = value.get("loc")
    return f"{'.'.join(map(str, place))}: {words}" if isinstance(place, list) and words else words


def _words(details: Mapping[str, Any]) -> str:
    """Returns the message; a router quotes the server behind it in `metadata`.

    llama.cpp names its window beside the message.
    """
    window = details.get("n_ctx")
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    more = (raw if isinstance(raw, str) else "", f"(n_ctx {window})" if window else "")
    return " ".join(filter(None, (_said(details), *more)))


def remembered(message: Message, key: str, encode: Callable[[], bytes]) -> bytes:
    """Returns `message.encoded[key]`; calls `encode` for it the first time."""
    encoded = message.encoded.get(key)
    if encoded is None:
        encoded = message.encoded[key] = encode()
    return encoded


def result_text(message: Message) -> str:
    """Returns the text of a tool result; one of a failed call begins with "Error"."""
    text = message.content or "(empty)"
    if message.is_error and text is not LOST and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def stray_text(message: Message) -> str:
    """Words a result without its call as text: APIs refuse it as a result."""
    return f"(Result of {message.tool_name or 'a tool'}, out of order)\n{message.content}"


Step = tuple[Message | None, Sequence[Message], Sequence[Message]]
"""A message, one result for each of its calls in their order, and results that answer no call."""


def steps(messages: Iterable[Message]) -> Iterator[Step]:
    """Yields the transcript in steps. A call without a result gets LOST: APIs refuse it alone."""
    head: Message | None = None
    results: dict[str, Message | None] = {}
    strays: list[Message] = []
    for message in messages:
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            if results.get(call_id, message) is None:
                results[call_id] = message
            else:
                strays.append(message)
            continue
        yield head, _answers(head, results) if results else (), strays
        head, strays = message, []
        results = dict.fromkeys(c.id for c in message.tool_calls) if message.tool_calls else {}
        if len(results) < len(message.tool_calls):  # a provider of one's own may repeat an id
            first = {call.id: call for call in reversed(message.tool_calls)}
            head = replace(message, tool_calls=tuple(map(first.__getitem__, results)), encoded={})
    yield head, _answers(head, results), strays


def _answers(head: Message | None, results: Mapping[str, Message | None]) -> Sequence[Message]:
    if head is None or not head.tool_calls:
        return ()
    return [
        results[call.id]
        or Message("tool", LOST, tool_call_id=call.id, tool_name=call.name, is_error=True)
        for call in head.tool_calls
    ]
