"""The arguments of a call: read as servers send them, and put into the types the tool wants.

Servers send an object, its JSON, or that JSON quoted again. Small models write "5" for 5, "true"
for true and an object as a string; what the schema leaves no doubt about is put right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from agent.schema import json_kind


def read_arguments(raw: Any) -> tuple[dict[str, Any], str | None]:
    """(arguments, problem): an object, or {} and what is wrong. Nothing at all is no arguments."""
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


def _reject(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> float:
    """What is too large for a number would be sent on as a word that is not JSON."""
    number = float(text)
    return number if isfinite(number) else _reject(text)


def coerced(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in the schema's types where that loses nothing; what cannot be is left as is.

    An optional argument given as null, or as "" where only listed words are allowed, was not meant.
    """
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    out: dict[str, Any] = {}
    for name, value in arguments.items():
        known = properties.get(name)
        if not isinstance(known, Mapping):
            out[name] = value
            continue
        value = _fitting(value, known)
        unmeant = value is None or (value == "" and "enum" in known)
        if unmeant and name not in required and "null" not in _kinds(known):
            continue
        out[name] = value
    return out


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type")
    return (kinds,) if isinstance(kinds, str) else tuple(kinds or ())


def _fitting(value: Any, schema: Mapping[str, Any]) -> Any:
    kinds = _kinds(schema)
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
        return [_fitting(value, schema.get("items", {}))]
    return value


def _from_text(text: str, kinds: tuple[str, ...]) -> Any:
    """What the text says in one of these types, else the text."""
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
