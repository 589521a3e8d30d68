"""Whether a JSON Schema can be enforced by the provider as it stands.

Only then may `strict` be true; for any other schema it is false, because the provider would rewrite
the schema, and optional arguments would come as explicit nulls.

Spec: https://platform.openai.com/docs/guides/structured-outputs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KNOWN = frozenset(
    {"type", "description", "title", "enum", "properties", "required", "additionalProperties"}
    | {"items", "anyOf"}
)


def is_strict(schema: Any) -> bool:
    """True when all is required, nothing else allowed, and only enforceable words are used."""
    if not isinstance(schema, Mapping) or not set(schema) <= _KNOWN:
        return False
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required") or ()) != set(properties):
            return False
        return all(map(is_strict, properties.values()))
    if not ("type" in schema or "anyOf" in schema or "enum" in schema):
        return False
    inner = [schema["items"]] if "items" in schema else []
    return all(map(is_strict, [*inner, *(schema.get("anyOf") or ())]))
