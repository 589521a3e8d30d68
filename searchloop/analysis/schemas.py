"""JSON Schemas of objects, written as tables.

A table has one entry for each object: its name, then its fields as `name:kind`. A kind is a key of
`kinds`, text if none is written, words to choose from (`one/two`), or the name of an object.
`[kind]` is an array, `kind|null` may be null, `name?` may be missing, and `...Name` adds the fields
of another object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
KINDS: Mapping[str, Schema] = {
    "text": TEXT,
    "count": COUNT,
    **{kind: {"type": kind} for kind in ("boolean", "integer", "number", "object", "array")},
}


def ref(name: str) -> Schema:
    """Refers to the schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def one_of(values: Iterable[str]) -> Schema:
    """Returns the schema of a text that is one of these."""
    return {"type": "string", "enum": list(values)}


def nullable(schema: Schema) -> Schema:
    """Returns a schema that also allows null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    either = {**schema, "type": [schema["type"], "null"]}
    return either | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


def objects(
    table: str,
    kinds: Mapping[str, Schema] = KINDS,
    descriptions: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Schema]:
    """Returns the schema of each object in a table, with `more` in each.

    `descriptions` go by field, or by object and field where a field means different things.
    """
    told = descriptions or {}
    rows: dict[str, list[str]] = {}
    for line in table.strip().splitlines():
        words = line.split()
        name = next(reversed(rows), "") if line[0] == " " else words.pop(0)
        rows.setdefault(name, []).extend(words)
    found: dict[str, Schema] = {}
    for name, fields in rows.items():
        copied = [field for word in fields if word[0] == "." for field in rows[word.strip(".")]]
        schema: Schema = {"type": "object", "properties": {}, **more}
        required = []
        for word in (*copied, *(word for word in fields if word[0] != ".")):
            field, _, kind = word.partition(":")
            required += [field] * (not field.endswith("?"))
            field = field.removesuffix("?")
            said = told.get(f"{name}.{field}") or told.get(field)
            note = {"description": said} if said else {}
            schema["properties"][field] = _kind(kind or "text", kinds) | note
        found[name] = schema | ({"required": required} if required else {})
    return found


def _kind(text: str, kinds: Mapping[str, Schema]) -> Schema:
    kind = text.removesuffix("|null")
    if kind[0] == "[":
        found: Schema = {"type": "array", "items": _kind(kind[1:-1], kinds)}
    elif "/" in kind:
        found = one_of(kind.split("/"))
    else:
        found = kinds[kind] if kind in kinds else ref(kind)
    return found if kind == text else nullable(found)
