"""What a Chat Completions server refuses in a request, and what chat templates add to that.

https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SEARCHES = re.compile(r"search-api|search-preview|:online$|^perplexity/|^sonar")
DATA_URL = re.compile(r"data:(image/(?:png|jpeg|webp|gif)|application/pdf);base64,[A-Za-z0-9+/]+=*")
NOT_WITH_SEARCH = ("temperature", "top_p", "frequency_penalty", "presence_penalty")


def check(body: Mapping[str, Any]) -> None:
    """Raises AssertionError with the rule that `body` breaks."""
    assert isinstance(body.get("model"), str), "model is a string"
    assert isinstance(body.get("messages"), list), "messages is a list"
    check_options(body)
    waiting: list[str] = []
    for message in body["messages"]:
        role = message.get("role")
        assert role in ("system", "developer", "user", "assistant", "tool"), f"no role {role!r}"
        if role == "tool":
            called = message.get("tool_call_id")
            assert called in waiting, "a tool message follows the call that it answers"
            waiting.remove(called)
            assert isinstance(message.get("content"), str), "a result is text"
            continue
        assert not waiting, "tool_calls must be followed by tool messages for each tool_call_id"
        if role == "assistant" and message.get("tool_calls") is not None:
            waiting = check_calls(message["tool_calls"])
            assert message.get("content") is None or isinstance(message["content"], str)
        else:
            assert isinstance(message.get("content"), str | list), "content is text or parts"
            if isinstance(message["content"], list):
                assert role == "user", "only the user sends parts"
                check_parts(message["content"])
    assert not waiting, "tool_calls must be followed by tool messages for each tool_call_id"


def check_parts(parts: list[Any]) -> None:
    """Text, `image_url` and `file` parts of a user message."""
    assert parts, "content is not empty"
    for part in parts:
        kind = part["type"]
        assert set(part) == {"type", kind}, f"a part has only its {kind}"
        if kind == "text":
            assert part["text"], "a text is not empty"
        elif kind == "image_url":
            assert set(part[kind]) <= {"url", "detail"}, "unknown field of an image"
            assert DATA_URL.fullmatch(part[kind]["url"])[1] != "application/pdf"  # type: ignore[index]
        else:
            assert kind == "file", f"Invalid value: {kind!r}"
            assert set(part[kind]) <= {"filename", "file_data", "file_id"}, "unknown field"
            assert part[kind]["filename"], "a file has a name"
            assert DATA_URL.fullmatch(part[kind]["file_data"])[1] == "application/pdf"  # type: ignore[index]


def check_options(body: Mapping[str, Any]) -> None:
    """What stands beside the messages."""
    assert "stream_options" not in body or body.get("stream"), "stream_options need a stream"
    assert not {"max_tokens", "max_completion_tokens"} <= set(body), "one limit, not two"
    refused = NOT_WITH_SEARCH if SEARCHES.search(body["model"]) else ("web_search_options",)
    assert not body.keys() & {*refused}, f"model incompatible request argument: {refused}"
    tools = body.get("tools")
    assert tools is None or tools, "tools is not empty"
    assert "tool_choice" not in body or tools, "tool_choice needs tools"
    names = []
    for tool in tools or ():
        if ":" in tool["type"]:
            continue  # a router's own tool
        assert tool["type"] == "function", "tools are functions"
        assert NAME.fullmatch(tool["function"]["name"]), "a bad function name"
        names.append(tool["function"]["name"])
    assert len(names) == len(set(names)), "function names are unique"


def check_calls(calls: Any) -> list[str]:
    """The ids of the calls of one message."""
    assert isinstance(calls, list), "tool_calls is a list"
    assert calls, "tool_calls is not empty"
    for call in calls:
        assert isinstance(call["id"], str), "an id is a string"
        assert call["id"], "an id is not empty"
        assert len(call["id"]) <= 40, "an id has at most 40 characters"
        assert call["type"] == "function", "calls are of functions"
        assert NAME.fullmatch(call["function"]["name"]), "a bad function name"
        assert isinstance(call["function"]["arguments"], str), "arguments are a string"
        assert isinstance(json.loads(call["function"]["arguments"]), dict), "of a JSON object"
    ids = [call["id"] for call in calls]
    assert len(ids) == len(set(ids)), "ids are unique"
    return ids


def check_templates(body: Mapping[str, Any]) -> None:
    """What the strictest chat templates demand: turns alternate, and nothing is empty."""
    ids: list[str] = []
    before = ""
    for message in body["messages"]:
        role, calls = message["role"], message.get("tool_calls")
        assert role != "system" or not before, "the system message is the first"
        assert message.get("content") or calls, "a message is not empty"
        assert role == "tool" or role != before, f"two {role} messages in a row"
        ids += [call["id"] for call in calls or ()]
        before = "calls" if calls else role
    assert len(ids) == len(set(ids)), "an id names one call of the request"


NINE = re.compile(r"[a-zA-Z0-9]{9}")


def check_mistral(body: Mapping[str, Any]) -> None:
    """What Mistral and the templates of its models demand beyond that.

    https://mistralai.github.io/mistral-common/usage/tools/
    """
    before = ""
    turns: list[str] = []
    for message in body["messages"]:
        role, calls = message["role"], message.get("tool_calls") or ()
        assert (before, role) != ("tool", "user"), "Unexpected role 'user' after role 'tool'"
        for wire in (*(c["id"] for c in calls), *filter(None, [message.get("tool_call_id")])):
            assert NINE.fullmatch(wire), f"Tool call id was {wire} but must be of length 9"
        if role == "user" or (role == "assistant" and not calls):
            turns.append(role)
        before = role
    assert all(a != b for a, b in pairwise(turns)), "roles must alternate"
