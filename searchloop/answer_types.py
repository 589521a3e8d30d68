"""The form of an answer: from a Python type to a JSON Schema, and from JSON to the type.

pydantic does both; it is installed with MCP's package, and loaded when a question has a `schema`.
"""

from __future__ import annotations

import functools
import json
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NotRequired, Required, TypeVar, get_args, get_origin, is_typeddict

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import Event
from searchloop.answer import Answer, AnswerError

T = TypeVar("T")
Read = Callable[[str], T]  # makes the value of an answer's text
Form = tuple[Mapping[str, Any] | None, Read[Any]]


def form_of(schema: Any) -> Form:
    """Returns a JSON Schema, and what makes a value of a text that fits it.

    `schema` is a dataclass, a TypedDict, a pydantic model, a type made of these such as
    `list[Book]`, a JSON Schema, or None. Raises ConfigError for another type; the second part
    raises ValueError for a text that the type refuses although it fits.

        schema, read = form_of(Book)
        book = read('{"title": "Momo", "year": 1973}')
    """
    if schema is None:
        return None, lambda text: None
    return (schema, json.loads) if isinstance(schema, Mapping) else _of_type(schema)


def _of_type(kind: Any) -> Form:
    from pydantic import TypeAdapter  # slow to import, seldom needed
    from pydantic.errors import PydanticUserError

    try:
        adapter = TypeAdapter(_modern(kind))
        return adapter.json_schema(), adapter.validate_json
    except (PydanticUserError, TypeError, NameError) as error:
        why = str(error).partition("\n")[0][:200]
        what = f"{getattr(kind, '__name__', kind)!r} cannot be the form of an answer: {why}"
        remedy = "Use a dataclass, a TypedDict, a pydantic model, or a JSON Schema."
        raise ConfigError("bad_schema", what, remedy) from error


def _modern(hint: Any) -> Any:
    """Replaces the TypedDict of Python 3.11, which lacks what pydantic reads of one."""
    if sys.version_info >= (3, 12):
        return hint
    if is_typeddict(hint) and type(hint).__module__ == "typing":
        from typing_extensions import TypedDict

        fields = typing.get_type_hints(hint, include_extras=True)
        for name, inner in fields.items():
            marked = get_origin(inner) in (Required, NotRequired)
            needed = get_origin(inner) is Required if marked else name in hint.__required_keys__
            kept = _modern(get_args(inner)[0] if marked else inner)
            fields[name] = kept if needed else NotRequired[kept]
        return TypedDict(hint.__name__, fields)  # type: ignore[operator]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, map(_modern, inner))
    if isinstance(origin, type) and inner:
        return origin[tuple(map(_modern, inner))]  # type: ignore[index]
    return hint


def answer_of(event: Event, read: Read[T], before: Iterable[Event] = ()) -> Answer[T]:
    """Returns the answer of a `run_finished` behind these events, with its value.

    Raises AnswerError where the model failed, or wrote what the type refuses.
    """
    answer: Answer[T] = Answer.of(event, before)
    if answer.error:
        raise AnswerError(answer)
    if answer.reason != "stop":
        return answer
    try:
        return replace(answer, _value=read(answer.text))
    except ValueError as error:
        what = f"The answer fits the schema but not the type: {error}"
        remedy = "Say in the type's fields what they may hold, or ask again."
        said = {"code": "schema_mismatch", "message": what, "remedy": remedy}
        raise AnswerError(replace(answer, reason="incomplete", error=said)) from error
