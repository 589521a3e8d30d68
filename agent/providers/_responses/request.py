"""Encodes messages as input items of the Responses API, so that no history is ever refused.

The server checks by their ids that a reasoning item and all that followed it, up to the next, come
together. Such a group is replayed as it came, or flattened to text and calls without ids, which the
server never checks: if its reasoning has no encrypted content, if an item is unfinished or a call
without an answer, or if it belongs to a search that the request does not offer.

Spec: https://platform.openai.com/docs/guides/conversation-state
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from searchloop.agent.calls.arguments import is_object, read_arguments
from searchloop.agent.calls.schema import is_strict
from searchloop.agent.providers._wire import (
    SAMPLING,
    body,
    dump,
    filled,
    function_name,
    function_of,
    hashed_id,
    json_schema,
    remembered,
    result_text,
    sampling,
    steps,
    stray_text,
)
from searchloop.agent.transport.exchange import MISREAD
from searchloop.agent.types import Message, Request
from searchloop.agent.types.attachments import Attachment

VERSION = "1"
_SEARCHES = frozenset({"web_search_call", "custom_tool_call", "x_search_call"})
_FLAT = "responses"

Item = dict[str, Any]


def encode_request(
    request: Request, provider: str, search: list[Item], *, strict: bool, head: Item, tail: Item
) -> bytes:
    """Returns the body; answers of `provider` and this model are replayed as they came.

    `search` are the server's own search tools. `strict` enforces the schemas of functions that
    allow it. `head` and `tail` are the provider's own members before and behind the conversation.
    """
    functions = (
        {"type": "function", **function_of(t), "strict": strict and is_strict(t.parameters)}
        for t in request.tools
    )
    tools = [*search, *functions]
    same = {"model": request.model, "store": False, "stream": True, **head}
    first = filled(**same, instructions=request.system, tools=tools)
    last = filled(
        tool_choice="none" if request.answer_now and tools else None,
        max_output_tokens=request.max_output_tokens,
        **sampling(request, SAMPLING),
        text=_text_format(request),
        **tail,
        reasoning=filled(effort=request.options.get("effort")),
    )
    made = (provider, request.model if request.replay == "whole" else "", VERSION)
    items = encode_items(request.messages, made, request.native_search is not None)
    return body(dump(first), "input", items, last)


def encode_items(
    messages: Sequence[Message], made: tuple[str, str, str], searching: bool
) -> list[bytes]:
    """Returns the elements of `input`; a piece may hold several. Encodes each message once.

    Answers that were `made` there are replayed as they came, none where the model is "".
    """
    pieces: list[bytes] = []
    for message, results, strays in steps(messages):
        if message is not None:
            # A long history is plain text for the most part: no call for each message of it.
            plain = message.encoded.get(_FLAT) if message.provider_data is None else None
            pieces.append(plain or _remembered(message, _variant(message, made, searching)))
        if results:
            pieces += [_remembered(result, _FLAT) for result in results]
        if strays:
            pieces += [_remembered(stray, f"{_FLAT}:stray") for stray in strays]
    return [*filter(None, pieces)]


def _variant(message: Message, made: tuple[str, str, str], searching: bool) -> str:
    data = message.provider_data
    if data is None or (data.provider, data.model, data.version) != made:
        return _FLAT
    return f"{_FLAT}:raw+search" if searching else f"{_FLAT}:raw"


def _remembered(message: Message, variant: str) -> bytes:
    try:
        return remembered(message, variant, lambda: b",".join(map(dump, _items(message, variant))))
    except MISREAD:  # an item that nobody could send back: its text and calls go
        if variant == _FLAT:
            raise
        return _remembered(message, _FLAT)


def _items(message: Message, variant: str) -> Iterator[Item]:
    if message.role == "tool":
        if variant.endswith("stray"):
            yield {"role": "user", "content": stray_text(message)}
        else:
            call_id = _short(message.tool_call_id or "")
            text = result_text(message)
            yield {"type": "function_call_output", "call_id": call_id, "output": text}
    elif message.role == "user":
        parts = [*map(_file, message.attachments), {"type": "input_text", "text": message.content}]
        yield {"role": "user", "content": parts if message.attachments else message.content}
    elif variant == _FLAT:
        if message.content:
            yield {"role": "assistant", "content": message.content}
        for call in message.tool_calls:
            yield _call(call.id, call.name, json.dumps(call.arguments, ensure_ascii=False))
    else:
        yield from _replayed(message, searching=variant.endswith("search"))


def _file(file: Attachment) -> Item:
    """Encodes a file as `InputImageContent` or `InputFileContent`."""
    if file.is_image:
        return {"type": "input_image", "detail": "auto", "image_url": file.data_url}
    return {"type": "input_file", "filename": file.name, "file_data": file.data_url}


def _replayed(message: Message, searching: bool) -> Iterator[Item]:
    assert message.provider_data is not None
    answered = {call.id for call in message.tool_calls}
    blocks = message.provider_data.blocks
    allowed = searching or not any(item.get("type") in _SEARCHES for item in blocks)
    for group in _groups(blocks):
        whole = allowed and all(_replayable(item, answered) for item in group)
        if whole and not (len(group) == 1 and group[0].get("type") == "reasoning"):
            yield from map(_clean, group)
        else:
            yield from _flat(group, answered)


def _groups(blocks: Iterable[Any]) -> Iterator[list[Item]]:
    """Yields each reasoning item with what follows from it."""
    group: list[Item] = []
    for item in blocks:
        if item.get("type") == "reasoning" and group:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _replayable(item: Item, answered: set[str]) -> bool:
    if item.get("status") in ("in_progress", "incomplete", "searching"):
        return False
    match item.get("type"):
        case "reasoning":
            return bool(item.get("encrypted_content") and item.get("id"))
        case "web_search_call":
            return bool(item.get("id") and item.get("action"))
        case "function_call":
            name = item.get("name") or ""
            known = item.get("call_id") in answered and name == function_name(name)
            return known and is_object(item.get("arguments"))
        case "message":
            return bool(item.get("id"))
        case "custom_tool_call" | "x_search_call":
            return False  # the server's own call, which would want a result from us
    return True


def _clean(item: Item) -> Item:
    """Removes what the server sends and does not take back: nulls, sources, logprobs."""
    clean = {key: value for key, value in item.items() if value is not None}
    match item.get("type"):
        case "reasoning":
            clean.setdefault("summary", [])
            if not clean.get("content"):
                clean.pop("content", None)
        case "web_search_call":
            action = item["action"]
            clean.pop("results", None)
            clean["action"] = {k: v for k, v in action.items() if v is not None and k != "sources"}
        case "message":
            clean["content"] = [_part(part) for part in item.get("content") or []]
    return clean


def _part(part: Mapping[str, Any]) -> Item:
    clean = {k: v for k, v in part.items() if v is not None and k != "logprobs"}
    if "annotations" in clean:
        clean["annotations"] = [a for a in clean["annotations"] if a and a.get("url", "x")]
    return clean


def _flat(group: list[Item], answered: set[str]) -> Iterator[Item]:
    for item in group:
        if item.get("type") == "message":
            parts = item.get("content") or []
            text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
            phase = {"phase": item["phase"]} if item.get("phase") else {}
            if text:
                yield {"role": "assistant", "content": text, **phase}
        elif item.get("type") == "function_call" and item.get("call_id") in answered:
            arguments: str = item.get("arguments") or "{}"
            if not is_object(arguments):  # an object inside a string, or broken JSON
                arguments = json.dumps(read_arguments(arguments)[0], ensure_ascii=False)
            call = _call(item["call_id"], item.get("name") or "", arguments)
            namespace = item.get("namespace")
            yield {**call, "namespace": namespace} if namespace else call


def _call(call_id: str, name: str, arguments: str) -> Item:
    return {
        "type": "function_call",
        "call_id": _short(call_id),
        "name": function_name(name),
        "arguments": arguments,
    }


def _short(call_id: str) -> str:
    """Shortens ids of other makers to the 64 characters allowed here."""
    return call_id if len(call_id) <= 64 else hashed_id(call_id, "call_")


def _text_format(request: Request) -> dict[str, Any]:
    """Returns the member `text` of the Responses API, which takes objects alone.

    Spec: https://platform.openai.com/docs/guides/structured-outputs
    """
    if request.schema is None or request.schema.get("type") != "object":
        return {}
    return {"format": {"type": "json_schema", **json_schema(request.schema)}}
