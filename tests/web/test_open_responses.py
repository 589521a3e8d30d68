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
RESULT: list[dict[str, Any]] = [
    {"role": "user", "content": "How warm is Oslo?"},
    {**CALL, "type": "function_call", "name": "get_weather", "arguments": "{}"},
    {**CALL, "type": "function_call_output", "output": "11 degrees"},
]
CHOSEN = {"type": "function", "name": "get_weather"}
IMAGE = f"data:image/png;base64,{b64encode(png()).decode()}"
PDF = f"data:application/pdf;base64,{b64encode(pdf_of(['The harbour plan'])).decode()}"
SOURCES = ["web_search_call.action.sources"]


def turns(*said: str) -> dict[str, Any]:
    """A request with messages, each written `role: text`."""
    pairs = [text.split(": ") for text in said]
    return {"input": [{"type": "message", "role": r, "content": text} for r, text in pairs]}


def parts(text: str, **part: str) -> dict[str, Any]:
    """A request with one message of a text and a part."""
    return {"input": [{"role": "user", "content": [{"type": "input_text", "text": text}, part]}]}


# The case, its request, the types that its output has at least, words of its text.
CASES: dict[str, tuple[dict[str, Any], set[str], str]] = {
    "basic": (turns("user: Greet me in two words."), {"message"}, "two words"),
    "system prompt": (turns("system: Be a sailor.", "user: Greet me."), {"message"}, "Greet me"),
    "tool calling": (
        {**turns("user: Is it warm in Oslo?"), "tools": [TOOL], "tool_choice": CHOSEN},
        *({"function_call"}, ""),
    ),
    "tool result": ({"input": RESULT, "tools": [TOOL]}, {"message"}, "11 degrees"),
    "image": (parts("What is it?", type="input_image", image_url=IMAGE), {"message"}, "What is it"),
    "file": (
        parts("What is its title?", type="input_file", filename="plan.pdf", file_data=PDF),
        *({"message"}, "The harbour plan"),
    ),
    "several turns": (
        turns("user: I am Ada.", "assistant: Good day, Ada.", "user: Who am I?"),
        *({"message"}, "Ada"),
    ),
    "offline web search": (
        {"input": "Find what the search switch decides.", "tools": [OFFLINE], "include": SOURCES}
        | {"tool_choice": {"type": "web_search"}},
        *({"web_search_call", "message"}, ""),
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
    search; `test_gateway` goes on by an id, and has the optional search of files refused."""
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
