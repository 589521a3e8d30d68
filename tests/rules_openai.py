"""What the Responses API refuses of a request whose answers it does not keep (`store: false`).

Spec: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.rules_openai_chat import DATA_URL, NAME

FOLLOWS = ("message", "web_search_call", "function_call", "quantum_call")


def check(body: Mapping[str, Any]) -> None:
    """The rules for a whole request; an AssertionError says which is broken."""
    assert body["store"] is False
    assert body["model"]
    names = [tool["name"] for tool in body.get("tools") or [] if tool["type"] == "function"]
    assert len(set(names)) == len(names), "two tools of one name"
    for tool in body.get("tools") or []:
        if tool["type"] == "function":
            assert NAME.fullmatch(tool["name"])
            assert tool["parameters"]["type"] == "object"
            assert isinstance(tool["strict"], bool)
    assert "tool_choice" not in body or body.get("tools"), "a choice among no tools"
    assert body["input"], "nothing to answer"
    check_items(body["input"], searching=bool(search_tools(body)))


def search_tools(body: Mapping[str, Any]) -> list[str]:
    """The search tools of the provider that a request offers."""
    return [t["type"] for t in body.get("tools") or [] if t["type"].startswith("web_search")]


PART = {
    "input_text": {"type", "text"},
    "input_image": {"type", "image_url", "file_id", "detail"},
    "input_file": {"type", "filename", "file_data", "file_id", "file_url", "detail"},
}


def check_parts(parts: Sequence[Mapping[str, Any]]) -> None:
    """`InputTextContent`, `InputImageContent` (`detail` is required) and `InputFileContent`."""
    assert parts, "content is not empty"
    for part in parts:
        assert set(part) <= PART[part["type"]], f"Unknown parameter: {set(part)}"
        if part["type"] == "input_text":
            assert isinstance(part["text"], str)
        elif part["type"] == "input_image":
            assert part["detail"] in ("low", "high", "auto", "original")
            assert DATA_URL.fullmatch(part["image_url"])[1] != "application/pdf"  # type: ignore[index]
        else:
            assert part["filename"], "a file has a name"
            assert DATA_URL.fullmatch(part["file_data"])[1] == "application/pdf"  # type: ignore[index]


def check_items(items: Sequence[Mapping[str, Any]], *, searching: bool = True) -> None:
    """The rules for the items of `input`: what must come together, in which order, with what."""
    calls: list[str] = []
    previous: Mapping[str, Any] = {}
    for item in [*items, {"role": "end"}]:
        kind = item.get("type")
        if previous.get("type") == "reasoning":
            assert kind in FOLLOWS, "a reasoning item without the item that follows from it"
            assert item.get("id"), "an item that follows from reasoning lost its id"
        assert kind != "item_reference"
        assert None not in item.values()
        if kind == "reasoning":
            assert item["encrypted_content"]
            assert item["id"]
            assert isinstance(item["summary"], list)
        elif kind == "web_search_call":
            assert searching
            assert item["id"]
            assert item["status"]
            assert not {"sources"} & set(item["action"])
            assert None not in item["action"].values()
        elif kind == "function_call":
            assert item["call_id"] not in calls
            assert len(item["call_id"]) <= 64
            assert isinstance(item["arguments"], str)
            assert NAME.fullmatch(item["name"])
            calls.append(item["call_id"])
        elif kind == "function_call_output":
            assert item["call_id"] in calls, "a result without its call"
            calls.remove(item["call_id"])
            calls.append(f"answered {item['call_id']}")
        else:
            if item.get("role") == "user" and not isinstance(item["content"], str):
                check_parts(item["content"])
            open_calls = [c for c in calls if not c.startswith("answered ")]
            assert kind == "message" or not open_calls or item.get("role") == "assistant"
        previous = item
    assert all(c.startswith("answered ") for c in calls), "a call without its result"
