"""Schemas at the tool border: made from signatures, checked against arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from searchloop.agent.calls.arguments import coerced
from searchloop.agent.calls.as_text import rescue
from searchloop.agent.calls.schema import schema_of, takes
from searchloop.agent.errors import ToolError
from searchloop.agent.tools import tool
from searchloop.agent.types import ToolSpec
from searchloop.analysis.schema_check import problems_with
from tests.tables import each_row


def sample(
    text: str,
    count: int,
    share: float = 0.5,
    flag: bool = False,
    unit: Literal["m", "km"] = "m",
    tags: list[str] | None = None,
    extra: dict[str, Any] | None = None,
) -> None:
    """All kinds of parameters."""


def test_a_signature_becomes_a_schema() -> None:
    """Types, enumerations, lists and what is required are read off the function."""
    assert schema_of(sample)[0] == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "unit": {"type": "string", "enum": ["m", "km"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object", "additionalProperties": True},
        },
        "required": ["text", "count"],
        "additionalProperties": False,
    }


class Size(Enum):
    """What a person chooses."""

    SMALL = "s"
    LARGE = "l"


@dataclass
class Place:
    """Where something goes."""

    city: str
    floor: int | None = None


class Parcel(BaseModel):
    """What goes there, with parcels inside."""

    title: str
    inside: list[Parcel] = []


def rich(
    to: Place,
    on: date,
    parcel: Parcel,
    json: Annotated[int, "How many"] = 1,
    size: Size = Size.SMALL,
    room: int | str = 0,
    weight: Annotated[float, Field(gt=0, description="In kg")] = 1,
) -> None:
    """Parameters of the types that programs have, one with a name that pydantic uses itself."""


def test_a_tool_takes_what_pydantic_reads_from_json() -> None:
    """Dataclasses, models, enums and dates arrive as such; notes describe a parameter."""
    schema, read = schema_of(rich)
    its = schema["properties"]
    assert its["json"] == {"type": "integer", "description": "How many"}
    assert its["weight"] == {"type": "number", "description": "In kg", "exclusiveMinimum": 0}
    # Python keeps one object for both orders of a union.
    assert {each["type"] for each in its["room"]["anyOf"]} == {"integer", "string"}
    assert its["to"] == {"$ref": "#/$defs/Place"}
    assert schema["$defs"]["Place"]["properties"]["floor"] == {"type": "integer", "default": None}
    assert schema["required"] == ["to", "on", "parcel"]
    nested = {"title": "outer", "inside": [{"title": "inner"}]}
    given = {"to": {"city": "Ulm"}, "on": "2026-11-28", "parcel": nested, "size": "l"}
    assert read(given) == {
        "to": Place("Ulm"),
        "on": date(2026, 11, 28),
        "parcel": Parcel(title="outer", inside=[Parcel(title="inner")]),
        "size": Size.LARGE,
    }


@each_row(
    ("change", "said"),
    [
        ({"to": {"city": 3}}, "to.city"),
        ({"to": {}}, "to.city: Field required"),
        ({"on": "soon"}, "on: "),
        ({"parcel": {"title": "a", "inside": [{}]}}, "parcel.inside.0.title: Field required"),
        ({"size": "xl"}, "size: "),
        ({"weight": -1}, "weight: Input should be greater than 0"),
        ({"colour": "red"}, "colour: "),
    ],
)
def test_what_does_not_fit_a_type_is_told_to_the_model(change: dict[str, Any], said: str) -> None:
    """By its path, in one sentence, so that the next call is right."""
    good = {"to": {"city": "Ulm"}, "on": "2026-11-28", "parcel": {"title": "a"}}
    with pytest.raises(ToolError, match=re.escape(said)) as caught:
        schema_of(rich)[1]({**good, **change})
    assert caught.value.code == "bad_arguments"


def odd(what: Random) -> None:
    """A parameter that JSON has no type for."""


def calls(what: Callable[[], int]) -> None:
    """Nor for a function."""


def endless(*what: int) -> None:
    """Nor for parameters without names."""


def whatever(what: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Nor for a type that nobody knows."""


@each_row("given", [odd, calls, endless, whatever, tool(rich), 3, "what", dict])
def test_what_json_cannot_hold_is_refused_early(given: Any) -> None:
    """The author of a tool is told when it is made, not the model when it is called."""
    with pytest.raises(
        TypeError, match=r"(odd|calls|endless).*what|whatever.*Nowhere|^tool\(\) ta"
    ):
        tool(given)
    with pytest.raises(TypeError, match=r"no effect 'wirte'. Did you mean write\?"):
        tool(rich, effect="wirte")  # type: ignore[call-overload]


NESTED = {
    "type": "object",
    "properties": {
        "size": {"type": "object", "properties": {"w": {"type": "integer", "maximum": 9}}},
        "n": {"type": ["integer", "null"], "minimum": 0},
    },
}
GOOD = {"text": "a", "count": 1}


@each_row(
    ("arguments", "problem"),
    [
        (GOOD, None),
        ({**GOOD, "tags": ["x"], "unit": "km", "share": 1}, None),
        ({"text": "a"}, "'count' is missing"),
        ({}, "'text', 'count' is missing"),
        ({**GOOD, "count": True}, "count must be a whole number, not true"),
        ({**GOOD, "count": "1"}, "count must be a whole number, not a string"),
        ({**GOOD, "text": None}, "text must be a string, not null"),
        ({**GOOD, "unit": "mile"}, "unit must be one of 'm', 'km'"),
        ({**GOOD, "tags": ["x", 2]}, "tags[1] must be a string, not a whole number"),
        ({**GOOD, "tags": "x"}, "tags must be an array, not a string"),
        ({**GOOD, "cuont": 2}, "there is no 'cuont'; it takes text, count"),
        ({"size": {"w": 9}, "n": None}, None),
        ({"size": {"w": 10}}, "size.w must be at most 9."),
        ({"n": -1}, "n must be at least 0."),
        ({"n": "x"}, "n must be a whole number or null, not a string."),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], problem: str | None) -> None:
    """What is wrong is said in one sentence that names the argument, or its path."""
    schema = NESTED if {"size", "n"} & arguments.keys() else schema_of(sample)[0]
    found = problems_with(arguments, schema)
    assert (found is None) is (problem is None)
    assert problem is None or problem in (found or "")


@each_row(
    "schema",
    [
        *({}, {"properties": None, "required": None}, {"properties": {"a": True}}),
        {"properties": {"a": {"type": "array", "items": [{"type": "string"}]}}},
        {"type": ["object", "null"], "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"properties": {"a": {"type": "string", "minLength": None, "maxLength": "3"}}},
        {"properties": {"a": {"minimum": None, "maximum": "x", "minItems": True, "enum": None}}},
    ],
)
def test_a_schema_of_a_form_that_we_do_not_read(schema: dict[str, Any]) -> None:
    """Servers of tools send such: a call is read, and what it holds is theirs to check."""
    assert takes(schema).startswith("It takes ")
    given = coerced({"a": "1"}, schema)
    assert problems_with(given, schema) is None
    assert rescue('<tool_call>{"name": "f", "arguments": {"a": 1}}', [ToolSpec("f", "", schema)])[1]
