"""Options and schemas, as users give them: read, refused with a sentence, and held to."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.calls.instructions import (
    OPTIONS,
    Instructions,
    bare_json,
    misfit,
    option_from,
)
from searchloop.agent.errors import ConfigError
from tests.tables import each_row

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
}


@each_row(
    ("typed", "name", "value"),
    [
        ("temperature=0.2", "temperature", 0.2),
        ("temperature=0", "temperature", 0),
        ("top_p=1", "top_p", 1),
        ("seed=-7", "seed", -7),
        ("max_tokens=100", "max_tokens", 100),
        ("stop=END", "stop", ["END"]),
        ("stop=5", "stop", ["5"]),
        ("stop=a=b", "stop", ["a=b"]),
    ],
)
def test_an_option_is_read_as_it_is_typed(typed: str, name: str, value: Any) -> None:
    """Numbers are numbers; a stop is always a text."""
    assert option_from(typed) == (name, value)
    assert Instructions.of(options={name: value}).options == {name: value}


@each_row(
    "typed",
    [
        *("temperature=2.1", "temperature=-0.1", "temperature=warm", "temperature=true"),
        *("temperature=NaN", "temperature=Infinity", "temperature=", "temperature=[1]"),
        *("top_p=1.5", "seed=1.5", "seed=1e3", "seed=9223372036854775808", "seed=x"),
        *("max_tokens=0", "max_tokens=many", "stop=", "colour=red", "=1", "temperature"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_right(typed: str) -> None:
    """By name and by value."""
    with pytest.raises(ConfigError) as refused:
        option_from(typed)
    assert refused.value.code == "bad_option"
    assert refused.value.remedy


@given(st.sampled_from([*OPTIONS, "other"]), st.integers() | st.text())
def test_no_value_is_a_crash(name: str, value: Any) -> None:
    """Whatever a program sends, it is taken or refused."""
    with suppress(ConfigError):
        assert Instructions.of(options={name: value}).options


@each_row(
    "schema",
    [
        *([], "text", {"type": "objekt"}, {"properties": 3}, {"required": "name"}),
        {"$ref": "https://elsewhere.example/schema.json"},
        {"$ref": "#/$defs/nowhere"},
        {"items": {"$ref": "file:///etc/hosts"}},
        {"enum": ["x" * 100_001]},
        {"pattern": "("},
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"items": {"pattern": r"(a)\1"}},
        {"pattern": "((a{1000}){1000}){100}"},
        {"patternProperties": {"^(a+)+$": {}}},
    ],
)
def test_a_schema_that_no_validator_can_use_is_refused(schema: Any) -> None:
    """Nor is anything fetched for one."""
    with pytest.raises(ConfigError) as refused:
        Instructions.of(schema=schema)
    assert refused.value.code == "bad_schema"


@pytest.mark.parametrize("schema", [PERSON, TREE, {}, {"type": "array"}, {"enum": ["a", "b"]}])
def test_a_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    """Also one that refers to itself."""
    assert Instructions.of(schema=schema).schema == schema


SLOW = ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){25}$", "^((a*)*)*$", r"^(\w+\s?)*$")


@each_row(
    ("text", "schema", "says"),
    [
        ('{"name": "Ada", "age": 36}', PERSON, None),
        ('{"name": "Ada"}', PERSON, "at $, 'age' is a required property"),
        ('{"name": 1, "age": -1}', PERSON, "and 1 more"),
        ("Ada is 36.", PERSON, "it is not JSON"),
        ("[[], [[]]]", TREE, None),
        ("[[], [1]]", TREE, "at $[1][0]"),
        ("[" * 5000 + "]" * 5000, TREE, ""),
        ("1", {"$ref": "#"}, "without end"),
        ('"abc"', {"pattern": "^[a-c]+$"}, None),
        ('"2026-11-28"', {"pattern": r"^\d{4}-\d\d"}, None),
        ('"Grüße"', {"pattern": r"^\p{L}+$"}, None),
        ("5", {"pattern": "^a"}, None),
        ('"b"', {"pattern": "^a"}, "'b' does not match '^a'"),
        # A matcher that goes back would need more steps than there are atoms.
        *((f'"{"a" * 5000}!"', {"pattern": p}, "does not match") for p in SLOW),
    ],
)
def test_a_misfit_is_told_with_its_place(text: str, schema: Any, says: str | None) -> None:
    """The first place that is wrong, and how many more there are."""
    found = misfit(text, schema)
    assert (found is None) == (says is None)
    assert says is None or says in str(found)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists), st.sampled_from(["", "json"]))
def test_a_fence_is_no_part_of_the_json(value: Any, language: str) -> None:
    """Models put one around it, and blanks."""
    text = json.dumps(value, indent=1)
    assert bare_json(f" \n```{language}\n{text}\n```\n") == text
    assert bare_json(text) == text
