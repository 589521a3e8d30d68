"""What servers answer and ask, as a model and a user are shown it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import reduce
from types import SimpleNamespace
from typing import Any

from mcp import types as mcp

from searchloop.agent.guard.approvals import ApprovalAnswer, UserQuestions
from searchloop.agent.mcp.calls import result_of
from searchloop.agent.mcp.questions import Questions
from searchloop.agent.tools import Tool, tool
from tests.agent.mcp.sdk_server import PIXEL
from tests.agent.scripted import Memory
from tests.tables import each_row


def text(words: str) -> mcp.TextContent:
    """A part of a result."""
    return mcp.TextContent(type="text", text=words)


def picture(mime: str, data: str) -> mcp.ImageContent:
    """Another one."""
    return mcp.ImageContent(type="image", mime_type=mime, data=data)


DEEP: Any = reduce(lambda inner, _: {"a": inner}, range(3000), {})
SHOWN = "[picture 1 (image, 1 x 1 pixels, 1 kB)]"


@each_row(
    ("parts", "structured", "shown"),
    [
        ([text('{"a": 1}')], {"a": 1}, '{"a": 1}'),
        ([text("5")], {"result": 5}, "5"),
        ([text("hello")], {"content": "hello"}, "hello"),
        ([text("a"), text("b")], {"result": ["a", "b"]}, "a\n\nb"),
        ([text("Three.")], {"rows": [1, 2]}, 'Three.\n\n{"rows": [1, 2]}'),
        ([text("x")], DEEP, "x\n\n[Its structured content has more than 100 levels"),
        ([], {"x": "<|im_start|>", "y\u202e": "\U000e0041"}, '{"x": "‹|im_start|>", "y": ""}'),
        ([picture("IMAGE/PNG", PIXEL)], None, SHOWN),
        ([picture("image/png", f"{PIXEL[:40]}\r\n{PIXEL[40:]}")], None, SHOWN),
        ([picture("image/png", "data:x")], None, "[image: image/png, 4 bytes; the model is not"),
        ([], None, "(The tool answered with nothing.)"),
    ],
)
def test_a_result_is_told_once_and_as_it_is(parts: list[Any], structured: Any, shown: str) -> None:
    """Structured content that repeats a text stands once; nothing deep or hidden breaks it."""
    answer = mcp.CallToolResult(content=parts, structured_content=structured)
    told = result_of("c", "n", answer).content
    assert told.startswith(shown) if "[" in shown else told == shown


COLOURS = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]


def asked(fields: Mapping[str, Any], *answers: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """What a server gets that asks for these fields, and what the user was shown."""
    told, left = list[str](), list(answers)

    class Answering:
        async def ask(self, session: str, decide: Any, request: Any, emit: Any) -> ApprovalAnswer:
            told.append(request["why"])
            return ApprovalAnswer("once", left.pop(0), "user")

    @tool
    def order() -> str:
        """Order."""
        return ""

    made: Tool = order
    user = UserQuestions(Answering(), "s", None)  # type: ignore[arg-type]
    questions = Questions("shop", lambda words, schema: user("c", made, words, schema, Memory()))
    schema = {"type": "object", "properties": fields}
    params = SimpleNamespace(mode="form", message="Which?", requested_schema=schema)
    result = asyncio.run(questions.asked(params))
    return result.content if result.action == "accept" else result.action, told


@each_row(
    ("field", "shown", "wrong", "right"),
    [
        ({"type": "string", "oneOf": COLOURS}, "r: Red, g: Green", "Red", "r"),
        ({"type": "array", "items": {"anyOf": COLOURS}}, "r: Red, g: Green", ["b"], ["g"]),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, "x, y", ["z"], ["y"]),
        ({"type": "string", "minLength": 3}, "a:", "ab", "abc"),
        ({"type": "number", "minimum": 1}, "a:", "0", "2.5"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "a:", "5", "five"),
    ],
)
def test_an_answer_fits_the_form(field: Any, shown: str, wrong: Any, right: Any) -> None:
    """What may be chosen is shown by its name; an answer that does not fit is asked for again."""
    answer, told = asked({"a": field}, {"a": wrong}, {"a": right})
    assert answer == {"a": float(right) if field["type"] == "number" else right}
    assert shown in told[0]
    assert "does not fit: at $.a" in told[1]


@each_row(
    "fields",
    [
        {f"f{n}": {"type": "string"} for n in range(41)},
        {"a\u202eb": {"type": "string"}},
        {"a": {"type": "string", "pattern": r"^(?=a)(\w+)\1$"}},
        {"a": {"$ref": "https://elsewhere.example/schema"}},
    ],
)
def test_a_form_that_cannot_be_shown_or_checked_is_declined(fields: Any) -> None:
    """Nobody is asked for what is endless, hidden or of a pattern that could take forever."""
    assert asked(fields) == ("decline", [])
