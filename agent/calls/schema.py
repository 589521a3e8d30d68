"""Makes JSON Schemas from signatures (by pydantic), and says what a schema takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, get_type_hints

from searchloop.agent.calls.caller import context_of
from searchloop.agent.errors import ToolError
from searchloop.analysis.schema_check import kinds_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter


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


def takes(schema: Mapping[str, Any]) -> str:
    """Describes the arguments of a tool in one sentence for a model."""
    required = schema.get("required") or ()
    listed = []
    for name, inner in (schema.get("properties") or {}).items():
        inner = inner if isinstance(inner, Mapping) else {}
        said = " or ".join(kinds_of(inner)) or "anything"
        if isinstance(inner.get("enum"), list | tuple):
            said = " | ".join(map(repr, inner["enum"]))
        listed.append(f"{name} ({said}{', required' if name in required else ''})")
    return f"It takes {', '.join(listed)}." if listed else "It takes no arguments."


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
