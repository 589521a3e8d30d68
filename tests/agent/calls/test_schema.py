"""Schemas at the tool border: made from signatures, checked against arguments."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.calls.schema import problems_with, schema_of
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
    assert schema_of(sample) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "unit": {"type": "string", "enum": ["m", "km"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object"},
        },
        "required": ["text", "count"],
        "additionalProperties": False,
    }


def odd(what: bytes) -> None:
    """A parameter that JSON has no type for."""


def two_ways(what: int | str) -> None:
    """A parameter of two types."""


@pytest.mark.parametrize("function", [odd, two_ways])
def test_what_json_cannot_say_is_refused_early(function: Any) -> None:
    """The author of a tool is told when it is made, not the model when it is called."""
    with pytest.raises(TypeError, match=r"\(what\)"):
        schema_of(function)


@each_row(
    ("arguments", "problem"),
    [
        ({"text": "a", "count": 1}, None),
        ({"text": "a", "count": 1, "tags": ["x"], "unit": "km", "share": 1}, None),
        ({"text": "a"}, "'count' is missing"),
        ({}, "'text', 'count' is missing"),
        ({"text": "a", "count": True}, "count must be a whole number, not true"),
        ({"text": "a", "count": "1"}, "count must be a whole number, not a string"),
        ({"text": None, "count": 1}, "text must be a string, not null"),
        ({"text": "a", "count": 1, "unit": "mile"}, "unit must be one of 'm', 'km'"),
        (
            {"text": "a", "count": 1, "tags": ["x", 2]},
            "tags[1] must be a string, not a whole number",
        ),
        ({"text": "a", "count": 1, "tags": "x"}, "tags must be an array, not a string"),
        ({"text": "a", "count": 1, "cuont": 2}, "there is no 'cuont'; it takes text, count"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], problem: str | None) -> None:
    """What is wrong is said in one sentence that names the argument."""
    found = problems_with(arguments, schema_of(sample))
    assert (found is None) is (problem is None)
    assert problem is None or problem in (found or "")


def test_ranges_and_nesting() -> None:
    """Bounds hold, and a problem deep inside is named by its path."""
    schema = {
        "type": "object",
        "properties": {
            "size": {"type": "object", "properties": {"w": {"type": "integer", "maximum": 9}}},
            "n": {"type": ["integer", "null"], "minimum": 0},
        },
    }
    assert problems_with({"size": {"w": 9}, "n": None}, schema) is None
    assert problems_with({"size": {"w": 10}}, schema) == "size.w must be at most 9."
    assert problems_with({"n": -1}, schema) == "n must be at least 0."
    assert problems_with({"n": "x"}, schema) == "n must be a whole number or null, not a string."


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["text", "count", "tags", "unit", "odd"]), VALUES))
def test_no_argument_breaks_the_check(arguments: dict[str, Any]) -> None:
    """Whatever JSON a model writes is either fine or a sentence."""
    found = problems_with(arguments, schema_of(sample))
    assert found is None or found.endswith(".")
    assert json.dumps(found)
