"""The eleven cases of Open Responses, in requests of our own, read strictly by the vendor's types.

https://www.openresponses.org says what each has to hold: `completed`, an item of a type, and a
schema for the answer and for each event.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types.responses import Response, ResponseStreamEvent

from tests.attached import pdf_of, png
from tests.fakes import Received, Reply
from tests.web.faces import KEY, MODEL, WEATHER, Desk, called, desk, listing, said

pytestmark = pytest.mark.integration

EVENTS: dict[str, Any] = {
    get_args(kind.model_fields["type"].annotation)[0]: kind
    for kind in get_args(get_args(ResponseStreamEvent)[0])
}
TOOL = {"type": "function", "name": "get_weather", "description": "Now", "parameters": WEATHER}
OFFLINE = {"type": "web_search", "external_web_access": False}
PDF = b64encode(pdf_of(["The harbour plan"])).decode()
PNG = b64encode(png()).decode()


def asked(*content: Any, **more: Any) -> dict[str, Any]:
    """A request with one message of the user, of a text or of parts."""
    [first, *rest] = content
    whole = first if isinstance(first, str) and not rest else [_part(each) for each in content]
    return {"input": [{"type": "message", "role": "user", "content": whole}], **more}


def _part(each: Any) -> Any:
    return {"type": "input_text", "text": each} if isinstance(each, str) else each


# The case, its request, the types that its output has at least.
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "basic": (asked("Greet me in two words."), {"message"}),
    "system prompt": (
        {
            "input": [
                {"type": "message", "role": "system", "content": "You talk like a sailor."},
                {"type": "message", "role": "user", "content": "Greet me."},
            ]
        },
        {"message"},
    ),
    "tool calling": (asked("What is the weather in Oslo?", tools=[TOOL]), {"function_call"}),
    "image": (
        asked(
            "What is this?", {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
        ),
        {"message"},
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
        {"message"},
    ),
    "several turns": (
        {
            "input": [
                {"type": "message", "role": "user", "content": "I am called Ada."},
                {"type": "message", "role": "assistant", "content": "Good day, Ada."},
                {"type": "message", "role": "user", "content": "What am I called?"},
            ]
        },
        {"message"},
    ),
    "offline web search": (
        {
            "input": "Find what the search switch decides.",
            "tools": [OFFLINE],
            "tool_choice": {"type": "web_search"},
            "include": ["web_search_call.action.sources"],
        },
        {"web_search_call", "message"},
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


def whole(at: Desk, request: dict[str, Any]) -> Response:
    """The answer, in which no field is missing or of a wrong type."""
    status, told = at.running.ask("POST", "/v1/responses", {"model": MODEL, **request})
    assert status == 200, told
    return Response.model_validate(told, strict=True)


def streamed(at: Desk, request: dict[str, Any]) -> Response:
    """The same from a stream: each event is one of the vendor's, and their numbers count up."""
    connection = at.running.connect()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    body = json.dumps({"model": MODEL, "stream": True, **request})
    connection.request("POST", "/v1/responses", body, headers)
    pieces = connection.getresponse().read().decode().strip().split("\n\n")
    connection.close()
    assert pieces.pop() == "data: [DONE]"
    events = []
    for piece in pieces:
        name, _, data = piece.partition("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
        EVENTS[events[-1]["type"]].model_validate(events[-1], strict=True)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in (events[0], events[-1])] == [
        *("response.created", "response.completed")
    ]
    return Response.model_validate(events[-1]["response"], strict=True)


@pytest.mark.parametrize("ask", [whole, streamed])
def test_a_request_is_answered_in_the_described_form(tmp_path: Path, ask: Any) -> None:
    """Basic, streaming, system prompt, tool call, image, file, several turns, offline search."""
    with desk(tmp_path, model) as at:
        for name, (request, kinds) in CASES.items():
            response = ask(at, request)
            assert response.status == "completed", name
            assert {item.type for item in response.output} >= kinds, name
            told = response.output_text
            if name == "several turns":
                assert "Ada" in told
            if name == "file":
                assert "The harbour plan" in told
            if name == "offline web search":
                [first, *_] = response.output
                assert first.type == "web_search_call"
                urls = [source.url for source in first.action.sources or ()]  # type: ignore[union-attr]
                assert urls
                assert all(url.startswith("library://") for url in urls)


def test_a_call_goes_out_and_its_result_comes_back(tmp_path: Path) -> None:
    """The round trip of a function, with a forced choice."""
    with desk(tmp_path, model) as at:
        choice = {"type": "function", "name": "get_weather"}
        request = asked("How warm is Oslo?", tools=[TOOL], tool_choice=choice)
        first = whole(at, request)
        [call] = [item for item in first.output if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "11 degrees"}
        history = [*request["input"], call.to_dict(), result]
        second = whole(at, {"input": history, "tools": [TOOL]})
        assert second.status == "completed"
        assert "11 degrees" in second.output_text


def test_an_answer_goes_on_by_its_id(tmp_path: Path) -> None:
    """The server keeps the turn before."""
    with desk(tmp_path, model) as at:
        first = whole(at, {"input": "The word is quince."})
        second = whole(at, {"input": "Which word?", "previous_response_id": first.id})
        assert second.status == "completed"
        assert second.previous_response_id == first.id
        assert "quince" in second.output_text


def test_a_search_of_files_is_refused(tmp_path: Path) -> None:
    """The one optional case that is not there: no store of vectors is kept here."""
    with desk(tmp_path, model) as at:
        tools = [{"type": "file_search", "vector_store_ids": ["vs_1"]}]
        request = {"model": MODEL, "input": "Find it.", "tools": tools}
        status, told = at.running.ask("POST", "/v1/responses", request)
        assert (status, told["error"]["type"]) == (400, "invalid_request_error")
        assert "file_search" in told["error"]["message"]
