"""Checks values against JSON Schemas: arguments of tools, and bodies of requests.

It knows type, properties, required, additionalProperties, items, enum, minimum, maximum, minLength,
maxLength and maxItems. Its messages tell a model or a program what to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

_CHECKS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list, tuple),
    "null": (type(None),),
}
_SAID = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
}


def json_kind(value: Any) -> str:
    """Names the kind of a JSON value: an object, a string, null ..."""
    kinds = ("null", "boolean", "integer", "number", "string", "array", "object")
    kind = next((kind for kind in kinds if _is(value, kind)), "")
    return str(value).lower() if kind == "boolean" else _SAID.get(kind, kind) or "no JSON"


def problems_with(value: Any, schema: Any, where: str = "") -> str | None:
    """Returns one sentence about the first fault in `value`, None if it fits the schema."""
    if not isinstance(schema, Mapping):
        return None  # a schema of another form is for who wrote it
    label, allowed = where or "the arguments", kinds_of(schema)
    if allowed and not any(_is(value, kind) for kind in allowed):
        wanted = " or ".join(_SAID.get(kind, kind) for kind in allowed)
        return f"{label} must be {wanted}, not {json_kind(value)}."
    if isinstance(schema.get("enum"), list | tuple) and value not in schema["enum"]:
        return f"{label} must be one of {', '.join(map(repr, schema['enum']))}."
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _range(value, schema, label)
    if isinstance(value, Mapping):
        return _object(value, schema, where)
    if isinstance(value, str | list) and (problem := _length(value, schema, label)):
        return problem
    if isinstance(value, list) and "items" in schema:
        found = (problems_with(v, schema["items"], f"{label}[{i}]") for i, v in enumerate(value))
        return next((problem for problem in found if problem), None)
    return None


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the allowed types of a schema, () for any."""
    kinds = schema.get("type")
    return (kinds,) if isinstance(kinds, str) else tuple(kinds or ())


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _CHECKS.get(kind, (object,)))


def _length(value: str | list[Any], schema: Mapping[str, Any], label: str) -> str | None:
    name, parts = ("Length", "characters") if isinstance(value, str) else ("Items", "entries")
    least, most = _bounds(schema, f"min{name}", f"max{name}")
    if len(value) < least:
        return f"{label} must have at least {least} {parts}." if value else f"{label} is empty."
    return f"{label} has {len(value)} {parts} of at most {most}." if len(value) > most else None


def _range(value: float, schema: Mapping[str, Any], label: str) -> str | None:
    least, most = _bounds(schema, "minimum", "maximum")
    if value < least:
        return f"{label} must be at least {least}."
    return f"{label} must be at most {most}." if value > most else None


def _bounds(schema: Mapping[str, Any], least: str, most: str) -> tuple[float, float]:
    """Returns the values of two keywords; what is no number bounds nothing."""
    low: Any = schema.get(least)
    high: Any = schema.get(most)
    return low if _is(low, "number") else -inf, high if _is(high, "number") else inf


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> str | None:
    properties = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or () if name not in value]
    if missing:
        return f"{', '.join(map(repr, missing))} is missing."
    if schema.get("additionalProperties") is False:
        extra = [name for name in value if name not in properties]
        if extra:
            known = ", ".join(properties) or "none"
            told = ", ".join(repr(name[:60]) for name in extra[:5])
            return f"there is no {told}; it takes {known}."
    found = (
        problems_with(value[name], properties[name], f"{where}.{name}" if where else name)
        for name in value
        if name in properties
    )
    return next((problem for problem in found if problem), None)
