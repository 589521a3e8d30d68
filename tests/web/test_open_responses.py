"""The eleven cases of Open Responses, in requests of our own, read strictly by the vendor's types.

https://www.openresponses.org says what each has to hold: `completed`, an item of a type, and a
schema for the answer and for each event.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import Response

from tests.attached import pdf_of, png
from tests.fakes import Received, Reply
from tests.web.faces import FACES, MODEL, WEATHER, Desk, called, desk, listing, said

pytestmark = pytest.mark.integration

TOOL = {"type": "function", "name": "get_weather", "description": "Now", "parameters": WEATHER}
OFFLINE = {"type": "web_search", "external_web_access": False}
CALL = {"call_id": "call_1"}
PDF = b64encode(pdf_of(["The harbour plan"])).decode()
PNG = b64encode(png()).decode()


def asked(*content: Any, **more: Any) -> dict[str, Any]:
    """A request with one message of the user, of a text or of parts."""
    [first, *rest] = content
    whole = first if isinstance(first, str) and not rest else [_part(each) for each in content]
    return {"input": [{"type": "message", "role": "user", "content": whole}], **more}


def turns(*said: tuple[str, str]) -> dict[str, Any]:
    """A request with several messages."""
    return {"input": [{"type": "message", "role": r, "content": text} for r, text in said]}


def _part(each: Any) -> Any:
    return {"type": "input_text", "text": each} if isinstance(each, str) else each


# The case, its request, the types that its output has at least, words of its text.
MESSAGE = {"message"}
CASES: dict[str, tuple[dict[str, Any], set[str], str]] = {
    "basic": (asked("Greet me in two words."), MESSAGE, "two words"),
    "system prompt": (
        turns(("system", "You talk like a sailor."), ("user", "Greet me.")),
        MESSAGE,
        "Greet me",
    ),
    "tool calling": (
        asked(
            "What is the weather in Oslo?",
            tools=[TOOL],
            tool_choice={"type": "function", "name": "get_weather"},
        ),
        {"function_call"},
        "",
    ),
    "tool result": (
        {
            "input": [
                *turns(("user", "How warm is Oslo?"))["input"],
                {**CALL, "type": "function_call", "name": "get_weather", "arguments": "{}"},
                {**CALL, "type": "function_call_output", "output": "11 degrees"},
            ],
            "tools": [TOOL],
        },
        MESSAGE,
        "11 degrees",
    ),
    "image": (
        asked(
            "What is this?", {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
        ),
        MESSAGE,
        "What is this?",
    ),
    "file": (
        asked(
            "What is its title?",
            {
                "type": "input_file",
                "filename": "plan.pdf",
                "file_data": f"data:application/pdf;base64,{PDF}",
            },
        ),
        MESSAGE,
        "The harbour plan",
    ),
    "several turns": (
        turns(
            ("user", "I am called Ada."),
            ("assistant", "Good day, Ada."),
            ("user", "What am I called?"),
        ),
        MESSAGE,
        "Ada",
    ),
    "offline web search": (
        {
            "input": "Find what the search switch decides.",
            "tools": [OFFLINE],
            "tool_choice": {"type": "web_search"},
            "include": ["web_search_call.action.sources"],
        },
        {"web_search_call", "message"},
        "",
    ),
}


def model(received: Received) -> Reply:
    """Calls a tool where it has one and no result yet, and else says what it was told."""
    if models := listing(received):
        return models
    body = received.json
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    if tools and body["messages"][-1]["role"] != "tool":
        given = {"query": "search switch"} if "web_search" in tools else {"city": "Oslo"}
        return called("web_search" if "web_search" in tools else tools[0], **given)
    told = [m["content"] for m in body["messages"] if m["role"] in ("user", "tool")]
    return said("I was told: ", json.dumps(told)[:900].replace("[", "(").replace("]", ")"))


def answer(at: Desk, request: dict[str, Any], *, stream: bool = False) -> Any:
    """The answer, in which nothing is missing or of a wrong type; of a stream the last event has
    it, and the numbers of all count up."""
    told = at.read(FACES["responses"], {"model": MODEL, "stream": stream, **request})
    if stream:
        assert [event["sequence_number"] for event in told] == list(range(len(told)))
        kinds = (told[0]["type"], told[-1]["type"])
        assert kinds == ("response.created", "response.completed")
    return Response.model_validate(told[-1]["response"] if stream else told[0], strict=True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_answered_in_the_described_form(tmp_path: Path, stream: bool) -> None:
    """Basic, streaming, system prompt, tool call, its result, image, file, several turns, offline
    search; the one optional case, a search of files, is refused (`test_gateway`)."""
    with desk(tmp_path, model) as at:
        for name, (request, kinds, words) in CASES.items():
            response = answer(at, request, stream=stream)
            assert response.status == "completed", name
            assert {item.type for item in response.output} >= kinds, name
            assert words in response.output_text, name
            for item in response.output:
                if item.type == "web_search_call":
                    urls = [source.url for source in item.action.sources]
                    assert urls
                    assert all(url.startswith("library://") for url in urls)


def test_an_answer_goes_on_by_its_id(tmp_path: Path) -> None:
    """The server keeps the turn before."""
    with desk(tmp_path, model) as at:
        first = answer(at, {"input": "The word is quince."})
        second = answer(at, {"input": "Which word?", "previous_response_id": first.id})
        assert (second.status, second.previous_response_id) == ("completed", first.id)
        assert "quince" in second.output_text
