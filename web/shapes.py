"""Small words for JSON Schemas, of which `web.schemas` and its parts are made."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def object_of(properties: Schema, *required: str, closed: bool = False) -> Schema:
    """An object with these properties; `closed`: and no others."""
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False} if closed else schema


def list_of(of: str) -> Schema:
    """A list of what the schema of this name describes."""
    return {"type": "array", "items": ref(of)}


def ref(name: str) -> Schema:
    """The schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Schema = {"type": "string"}
MAYBE: Schema = {"type": ["string", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
PROBLEM = object_of({"code": TEXT, "message": TEXT, "remedy": TEXT}, "code", "message")
