"""Reads the arguments of a call and coerces them to the types of the tool's schema.

Servers send an object, its JSON, or that JSON quoted again. Small models write "5" for 5, "true"
for true and an object as a string. `value_at` repairs malformed JSON inside a text; `with_own_ids`
replaces ids of calls that an earlier call used.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import Any

from searchloop.agent.types import Message, ToolCall
from searchloop.analysis.schema_check import json_kind, kinds_of


def read_arguments(raw: Any) -> tuple[dict[str, Any], str | None]:
    """Returns (arguments, None), or ({}, problem) with a sentence. Empty text is {}.

    `raw` is what the model sent: JSON text, or an object.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None
    value = raw
    try:
        for _ in range(2):
            if isinstance(value, str):
                value = json.loads(value, parse_constant=_reject, parse_float=_number)
    except (ValueError, RecursionError) as error:
        return {}, f"The arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        return {}, f"The arguments must be a JSON object, not {json_kind(value)}."
    return value, None


def is_object(raw: Any) -> bool:
    """Returns True for the JSON of an object, which servers want back as arguments."""
    try:
        return isinstance(raw, str) and isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def _reject(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> float:
    """Refuses a number too large for a float: encoded again it would be no JSON."""
    number = float(text)
    return number if isfinite(number) else _reject(text)


def coerced(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts arguments to the schema's types where that loses nothing.

    Drops an optional argument that is null, or "" where the schema lists words.
    """
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    out: dict[str, Any] = {}
    for name, value in arguments.items():
        known = properties.get(name)
        if isinstance(known, Mapping):
            value = _fitting(value, known)
            empty = value is None or (value == "" and "enum" in known)
            if empty and name not in required and "null" not in kinds_of(known):
                continue
        out[name] = value
    return out


def _fitting(value: Any, schema: Mapping[str, Any]) -> Any:
    kinds = kinds_of(schema)
    if isinstance(value, str) and kinds and "string" not in kinds:
        value = _from_text(value, kinds)
    elif type(value) in (int, float) and kinds == ("string",):
        value = str(value)
    elif isinstance(value, float) and value.is_integer() and "number" not in kinds:
        value = int(value) if "integer" in kinds else value
    if isinstance(value, dict) and "properties" in schema:
        return coerced(value, schema)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_fitting(item, schema["items"]) for item in value]
    if kinds == ("array",) and not isinstance(value, list) and value not in (None, ""):
        items = schema.get("items")
        return [_fitting(value, items if isinstance(items, Mapping) else {})]
    return value


def _from_text(text: str, kinds: tuple[str, ...]) -> Any:
    """Returns the text as one of these types, else the text itself."""
    plain = text.strip()
    if "boolean" in kinds and plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    try:
        value = json.loads(plain, parse_constant=_reject)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and value.is_integer() and "number" not in kinds:
        value = int(value)
    wanted = {"integer": (int,), "number": (int, float), "object": (dict,), "array": (list,)}
    types = tuple(t for kind in kinds for t in wanted.get(kind, ()))
    fits = isinstance(value, types) and not isinstance(value, bool)
    return value if fits or (value is None and "null" in kinds) else text


_decode = json.JSONDecoder(strict=False).raw_decode
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_ENDS = re.compile(r"\s*(?:</|<\||<｜|```|\[/|\[END_)")
_LONGEST = 200_000
_MOST_MISSING = 4  # closers that a model forgets; more are no call


def value_at(text: str, at: int) -> tuple[Any, int] | None:
    """Returns the JSON value that begins at `at`, repaired if need be, and its end."""
    with suppress(ValueError, RecursionError):
        return _decode(text, at)
    end, missing = extent(text, at)
    if end is None or missing > _MOST_MISSING:
        return None
    from json_repair import loads  # takes 40 ms to load

    with suppress(ValueError, RecursionError):
        value = loads(text[at:end], skip_json_loads=True)
        if value and isinstance(value, dict | list):
            return value, end
    return None


def loose(text: str) -> Any:
    """Returns the JSON value of a whole text, repaired if need be, or None."""
    body = text.strip()
    read = value_at(body, 0) if body[:1] in ("{", "[") else None
    return read[0] if read and not body[read[1] :].strip(" }])\n") else None


def extent(text: str, at: int) -> tuple[int | None, int]:
    """Finds where the bracket that opens at `at` is closed: (end, how many closers are missing).

    The end is None when a string is not closed or brackets do not match.
    """
    open_now: list[str] = []
    quote = ""
    place, last = at, min(len(text), at + _LONGEST)
    while place < last:
        letter = text[place]
        if quote:
            if letter == "\\":
                place += 1
            elif letter == quote:
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSING:
            open_now.append(_CLOSING[letter])
        elif letter in "}])":
            if not open_now or open_now.pop() != letter:
                return None, 0
            if not open_now:
                return place + 1, 0
        elif letter in "<`[\n \r" and _ENDS.match(text, place):
            break
        place += 1
    return (None, 0) if quote else (place, len(open_now))


_IDS = frozenset({"id", "call_id"})
_WRITTEN = frozenset({"args", "arguments", "input"})


def with_own_ids(message: Message, before: Iterable[Message]) -> Message:
    """Gives calls new ids if their ids were used `before`, in the raw blocks, too.

    Of two calls in the message that have one id, the first keeps it.
    """
    used = {call.id for earlier in before for call in earlier.tool_calls}
    fresh, calls = dict[str, str](), list[ToolCall]()
    for call in message.tool_calls:
        if call.id in used:
            own = f"call_{secrets.token_hex(12)}"
            fresh.setdefault(call.id, own)
            call = replace(call, id=own)
        used.add(call.id)
        calls.append(call)
    if not fresh:
        return message
    raw = message.provider_data
    if raw is not None:
        raw = raw._replace(blocks=tuple(_renamed(block, fresh) for block in raw.blocks))
    return replace(message, tool_calls=tuple(calls), provider_data=raw, encoded={})


def _renamed(value: Any, fresh: Mapping[str, str]) -> Any:
    """Renames ids in a raw block; the arguments that a model wrote stay unchanged."""
    if isinstance(value, list):
        return [_renamed(item, fresh) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {
        key: item if key in _WRITTEN else _renamed(item, fresh) for key, item in value.items()
    }
    ids = {key: value[key] for key in _IDS & value.keys() if isinstance(value[key], str)}
    return renamed | {key: fresh.get(item, item) for key, item in ids.items()}
