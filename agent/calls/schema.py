"""Makes JSON Schemas from signatures (by pydantic) and checks arguments against schemas.

The check knows the keywords of tool schemas: type, properties, required, additionalProperties,
items, enum, minimum, maximum. Its messages tell a model what to change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, get_type_hints

from searchloop.agent.calls.caller import context_of
from searchloop.agent.errors import ToolError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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


def schema_of(
    function: Callable[..., Any],
) -> tuple[dict[str, Any], Callable[[Mapping[str, Any]], dict[str, Any]]]:
    """Returns the JSON Schema of a function's parameters, and what reads arguments into them.

    A parameter may have any type that pydantic reads from JSON; `Annotated[int, "How many"]` says
    more of it. The reader raises ToolError, in words for a model. Raises TypeError for a type that
    JSON cannot hold.
    """
    from pydantic import Field, ValidationError  # takes 100 ms to load
    from pydantic.errors import PydanticUserError

    fields: dict[str, Any] = {}
    for name, hint, optional in _parameters(function):
        for words in getattr(hint, "__metadata__", ()):
            hint = Annotated[hint, Field(description=words)] if isinstance(words, str) else hint
        fields[name] = NotRequired[hint] if optional else hint
    try:
        adapter, schema = _form(function.__name__, fields)
    except PydanticUserError as error:
        raise _odd(function.__name__, fields) from error

    def read(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(adapter.validate_python(dict(arguments)))
        except ValidationError as error:
            each = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            words = f"Wrong arguments: {'; '.join(each)}."
            raise ToolError("bad_arguments", words, "Correct them.") from error

    return schema, read


def _form(name: str, fields: Mapping[str, Any]) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Makes the type of all arguments, and its schema without the title that nobody needs."""
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    make: Any = TypedDict
    form = make(name, dict(fields))
    form.__pydantic_config__ = {"extra": "forbid"}
    adapter = TypeAdapter[Any](form)
    schema = adapter.json_schema(schema_generator=_plain_schemas())
    return adapter, {key: value for key, value in schema.items() if key != "title"}


def _odd(function: str, fields: Mapping[str, Any]) -> TypeError:
    from pydantic.errors import PydanticUserError

    for name, hint in fields.items():
        try:
            _form(name, {name: hint})
        except PydanticUserError:
            return TypeError(f"{function}({name}): a tool cannot take {hint!r}, which is not JSON")
    return TypeError(f"{function}: a tool cannot take these parameters")


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yields name, type and whether it may be left out, but for the caller's context."""
    hints = get_type_hints(function, include_extras=True)
    own = context_of(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__}: a tool cannot take *{name}; name its parameters")
        if not own or name != own[0]:
            yield name, hints.get(name, str), parameter.default is not parameter.empty


@cache
def _plain_schemas() -> Any:
    """Returns a generator of schemas that small models read well: no titles, no `null` as type."""
    from pydantic.json_schema import GenerateJsonSchema

    class Plain(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def nullable_schema(self, schema: Any) -> Any:
            return self.generate_inner(schema["schema"])

    return Plain


def problems_with(value: Any, schema: Mapping[str, Any], where: str = "") -> str | None:
    """Returns one sentence about the first fault in `value`, None if it fits the schema."""
    label, allowed = where or "the arguments", kinds_of(schema)
    if allowed and not any(_is(value, kind) for kind in allowed):
        wanted = " or ".join(_SAID.get(kind, kind) for kind in allowed)
        return f"{label} must be {wanted}, not {json_kind(value)}."
    if "enum" in schema and value not in schema["enum"]:
        return f"{label} must be one of {', '.join(map(repr, schema['enum']))}."
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _range(value, schema, label)
    if isinstance(value, Mapping):
        return _object(value, schema, where)
    if isinstance(value, list) and "items" in schema:
        found = (problems_with(v, schema["items"], f"{label}[{i}]") for i, v in enumerate(value))
        return next((problem for problem in found if problem), None)
    return None


def takes(schema: Mapping[str, Any]) -> str:
    """Describes the arguments of a tool in one sentence for a model."""
    required = schema.get("required", ())
    listed = []
    for name, inner in schema.get("properties", {}).items():
        inner = inner if isinstance(inner, Mapping) else {}
        said = " or ".join(kinds_of(inner)) or "anything"
        if "enum" in inner:
            said = " | ".join(map(repr, inner["enum"]))
        listed.append(f"{name} ({said}{', required' if name in required else ''})")
    return f"It takes {', '.join(listed)}." if listed else "It takes no arguments."


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the allowed types of a schema, () for any."""
    kinds = schema.get("type")
    return (kinds,) if isinstance(kinds, str) else tuple(kinds or ())


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _CHECKS.get(kind, (object,)))


def _range(value: float, schema: Mapping[str, Any], label: str) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"{label} must be at least {schema['minimum']}."
    if "maximum" in schema and value > schema["maximum"]:
        return f"{label} must be at most {schema['maximum']}."
    return None


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> str | None:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{', '.join(map(repr, missing))} is missing."
    if schema.get("additionalProperties") is False:
        extra = [name for name in value if name not in properties]
        if extra:
            known = ", ".join(properties) or "none"
            return f"there is no {', '.join(map(repr, extra))}; it takes {known}."
    found = (
        problems_with(value[name], properties[name], f"{where}.{name}" if where else name)
        for name in value
        if name in properties
    )
    return next((problem for problem in found if problem), None)


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


def closed(schema: Any) -> Any:
    """Allows objects no other properties than those named, without which no API enforces them.

    A schema that says whether there may be others is left as it is. This is for what is asked of a
    model: what it then answers is checked by the schema as it was given.
    """
    if isinstance(schema, list):
        return list(map(closed, schema))
    if not isinstance(schema, Mapping):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    named = schema.get("type") == "object" and "properties" in schema
    return {"additionalProperties": False, **inner} if named else inner
