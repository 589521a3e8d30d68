"""The options and the form of an answer, in the words of the APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.agent.types import Request

# The names that most APIs share. A provider's `options` maps ours to those of its API.
SAMPLING = {"temperature": "temperature", "top_p": "top_p"}


def sampling(request: Request, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options of a request under the names of an API."""
    return {names[key]: value for key, value in request.options.items() if key in names}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema as OpenAI's APIs take it."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def text_format(request: Request) -> dict[str, Any]:
    """Returns the member `text` of the Responses API, which takes objects alone.

    Spec: https://platform.openai.com/docs/guides/structured-outputs
    """
    if not is_object_schema(request.schema):
        return {}
    return {"text": {"format": {"type": "json_schema", **json_schema(request.schema or {})}}}


def is_object_schema(schema: Mapping[str, Any] | None) -> bool:
    """Returns True for the schema of an object, which is all that some APIs take."""
    return schema is not None and schema.get("type") == "object"


_ENFORCEABLE = frozenset(
    {"type", "description", "title", "enum", "properties", "required", "additionalProperties"}
    | {"items", "anyOf"}
)


def is_strict(schema: Any) -> bool:
    """Returns True for a JSON Schema that the provider can enforce as it stands.

    It would rewrite any other schema, and optional arguments would come as explicit nulls.
    Spec: https://platform.openai.com/docs/guides/structured-outputs
    """
    if not isinstance(schema, Mapping) or not set(schema) <= _ENFORCEABLE:
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
