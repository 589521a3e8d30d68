"""Answers as values: from a Python type to a JSON Schema, and from JSON to the type."""

from __future__ import annotations

import json
import typing
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pydantic
import pytest

from searchloop import AnswerError, ConfigError
from searchloop.agent.calls.instructions import Instructions, misfit
from searchloop.agent.calls.schema import closed, is_strict
from searchloop.answer_types import form_of
from tests.searchloop.both_faces import FACES, opened
from tests.tables import each_row


@dataclass
class Author:
    """Nested."""

    name: str
    born: int | None = None


@dataclass
class Book:
    """A dataclass."""

    title: str
    year: int
    kind: Literal["novel", "essay"] = "novel"
    authors: list[Author] = field(default_factory=list)


class Shelf(TypedDict):
    """A TypedDict, with one inside a list."""

    place: str
    boxes: NotRequired[list[Box]]


class Box(TypedDict):
    """Inside."""

    size: float


class Review(pydantic.BaseModel):
    """A pydantic model, with a rule that JSON Schema cannot say."""

    stars: int = pydantic.Field(ge=1, le=5)
    words: str

    @pydantic.field_validator("words")
    @classmethod
    def short(cls, words: str) -> str:
        """No more than three."""
        if len(words.split()) > 3:
            raise ValueError("at most three words")
        return words


GIVEN: list[tuple[Any, Any, Any]] = [
    (Book, {"title": "Momo", "year": 1973}, Book("Momo", 1973)),
    (
        Book,
        {"title": "M", "year": 1, "kind": "essay", "authors": [{"name": "A", "born": 2}]},
        Book("M", 1, "essay", [Author("A", 2)]),
    ),
    (Shelf, {"place": "hall"}, {"place": "hall"}),
    (
        Shelf,
        {"place": "hall", "boxes": [{"size": 2.5}]},
        {"place": "hall", "boxes": [{"size": 2.5}]},
    ),
    (Review, {"stars": 5, "words": "So good"}, Review(stars=5, words="So good")),
    (list[Author], [{"name": "A"}], [Author("A")]),
    (list[Box], [{"size": 1.0}], [{"size": 1.0}]),
    (dict[str, Box], {"a": {"size": 1.0}}, {"a": {"size": 1.0}}),
    (Box | None, None, None),
    (typing.Optional[Author], {"name": "A"}, Author("A")),  # noqa: UP045 - an older spelling
    (int, 7, 7),
    (Literal["yes", "no"], "yes", "yes"),
    ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 1}, {"n": 1}),
]


@each_row(("kind", "data", "value"), GIVEN, ids=[str(row[0])[:40] for row in GIVEN])
def test_a_type_becomes_a_schema_and_json_a_value(kind: Any, data: Any, value: Any) -> None:
    """What fits the schema becomes a value of the type; the schema is a valid one."""
    schema, read = form_of(kind)
    assert schema is not None
    assert Instructions.of(schema=schema).schema == schema
    assert misfit(json.dumps(data), schema) is None
    made = read(json.dumps(data))
    assert made == value
    assert type(made) is type(value)


class Titled(TypedDict):
    """One that leaves them out."""

    title: str


Flat = make_dataclass("Flat", [("title", str)])
Ignores = pydantic.create_model("Ignores", title=str)  # what pydantic does where nothing is said
Forbids = pydantic.create_model("Forbids", __config__={"extra": "forbid"}, title=str)
Allows = pydantic.create_model("Allows", __config__={"extra": "allow"}, title=str)
EXTRA: list[tuple[Any, Any]] = [
    (Flat, Flat("M")),
    (Titled, {"title": "M"}),
    (Ignores, Ignores(title="M")),
    (Allows, Allows(title="M", more=2)),
    (Forbids, None),
]


@each_row(("kind", "value"), EXTRA)
def test_other_keys_are_what_the_class_makes_of_them(kind: Any, value: Any, tmp_path: Path) -> None:
    """The model is asked for none, which is the form that APIs enforce; one that writes some anyway
    is asked once more only where the class forbids them."""
    said = '{"title": "M", "more": 2}'
    with opened("Agent", tmp_path, said, said) as agent:
        if value is None:
            with pytest.raises(AnswerError, match="more"):
                agent.ask("Which?", schema=kind)
        else:
            assert agent.ask("Which?", schema=kind).value == value
        asked = agent.model.requests
        assert is_strict(asked[0].schema) == (kind is not Allows)
    assert len(asked) == (1 if value is not None else 2)


@pytest.mark.parametrize("kind", [object(), "Book", 3, len])
def test_what_is_no_form_is_told(kind: Any) -> None:
    """ConfigError, with what to use instead."""
    with pytest.raises(ConfigError) as caught:
        form_of(kind)
    assert (caught.value.code, "dataclass" in caught.value.remedy) == ("bad_schema", True)


@FACES
def test_an_answer_has_a_value(face: str, tmp_path: Path) -> None:
    """In `ask` and in a stream; the text stays."""
    said = '{"title": "Momo", "year": 1973}'
    with opened(face, tmp_path, said, f"```json\n{said}\n```") as agent:
        answer = agent.ask("Which book?", schema=Book)
        stream = agent.stream("Which book?", schema=Book)
        events = list(stream)
        sent = agent.model.requests[0].schema
    assert answer.value == stream.answer.value == Book("Momo", 1973)
    assert events[-1].answer == answer.text == said
    assert sent == closed(form_of(Book)[0])


@FACES
def test_a_rule_of_the_type_alone_raises_too(face: str, tmp_path: Path) -> None:
    """The words of the type's own check say why."""
    said = '{"stars": 5, "words": "one two three four"}'
    with (
        opened(face, tmp_path, said) as agent,
        pytest.raises(AnswerError, match="at most three words") as caught,
    ):
        agent.ask("How is it?", schema=Review)
    assert (caught.value.code, caught.value.answer.text) == ("schema_mismatch", said)
