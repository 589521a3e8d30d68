"""What servers and families of models do otherwise: requests, refusals, answers, each as data.

The shapes are those of real traffic; `docs/guides/local-models.md` names where it was seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.agent.providers.openai_chat.models import Dialects, ListedModels
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    Notice,
    Request,
    SearchFinished,
    SearchStarted,
    ToolCall,
)
from tests.agent.providers.vendors import CHAT, DONE, MISTRAL, USER, chunk, results
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.rules_openai_chat import check_mistral
from tests.tables import each_row


def whole(message: Mapping[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"choices": [{**choice, **more.pop("choice", {})}], **more}).encode()


# --- requests: ids, order, reasoning, arguments ---


def test_an_id_of_mistral_s_own_is_kept() -> None:
    """What the server gave fits and goes back as it was."""
    call = {"id": "aB3dE6gH9", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    data = chunk({"tool_calls": [call]}, "tool_calls") + DONE
    message = MISTRAL.finished(data).message
    sent = MISTRAL.ask(USER, message, *results(message))
    assert sent["messages"][1]["tool_calls"][0]["id"] == "aB3dE6gH9"


def test_reasoning_that_a_server_demands() -> None:
    """With DeepSeek each message with calls has it: its own, or a blank for another's."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas = chunk({"reasoning_content": "Hm."}) + chunk({"tool_calls": [call]}, "tool_calls")
    own = CHAT.finished(deltas + DONE, model="deepseek-v4").message
    other = Message("assistant", "", thinking="Mine.", tool_calls=(ToolCall("b", "f", {}),))
    plain = Message("assistant", "At 07:40.", thinking="Hm.")
    told = [USER, own, *results(own), other, *results(other), plain, USER]
    sent = CHAT.ask(*told, model="deepseek-v4")["messages"]
    assert [m.get("reasoning_content") for m in sent if m["role"] == "assistant"] == [
        "Hm.",
        " ",
        None,
    ]
    assert "reasoning_content" not in json.dumps(CHAT.ask(*told))


# --- search ---

OPENROUTER = "openrouter.ai"


def test_what_models_of_openrouter_can() -> None:
    """Those that call tools search beside them; one that its list says calls none does not."""
    listed = ListedModels(Dialects(OPENROUTER))
    listed.learn({"data": [{"id": "a/mute", "supported_parameters": ["stop"]}]})
    can = [listed.capabilities(name) for name in ("a/b", "a/mute", "perplexity/sonar")]
    assert [(c.native_search, c.tools_with_native_search, c.tools) for c in can] == [
        (True, True, True),
        (False, False, False),
        (True, False, False),
    ]


NOTE = {"type": "url_citation", "url_citation": {"url": "https://tides.example/", "title": "Tides"}}


@pytest.mark.parametrize(
    ("end", "searched"),
    [
        (chunk({"annotations": [NOTE]}) + chunk({"content": "07:40"}, "stop"), True),
        (
            chunk({"content": "07:40"}, "stop")
            + chunk({}, usage={"server_tool_use_details": {"web_search_requests": 1}}),
            True,
        ),
        (chunk({"content": "07:40"}, "stop"), False),
    ],
)
def test_a_server_s_tool_tells_only_what_it_did(end: bytes, searched: bool) -> None:
    """A search is announced where pages or counts show one."""
    events = CHAT.at(OPENROUTER).decode(end + DONE, model="a/b", native_search=NativeSearch())
    kinds = [type(e) for e in events if isinstance(e, SearchStarted | SearchFinished)]
    assert kinds == [SearchStarted, SearchFinished] * searched


PAGES = ["https://a.example/", "https://b.example/", "https://c.example/"]


@each_row(
    ("text", "more", "told"),
    [
        ("At 07:40.[1][2]", {}, True),
        ("At 07:40 [3].", {"citations": []}, True),
        ("At 07:40.[1]", {"citations": PAGES}, False),
        ("At 07:40.", {}, False),
        ("Write `a[1]`.", {}, False),
    ],
)
def test_marks_that_lead_nowhere_are_told(text: str, more: Any, told: bool) -> None:
    """Where a model counts through pages and its provider names none, the reader learns it."""
    data = whole({"content": text}, **more)
    notices = [e for e in CHAT.decode(data, model="sonar") if type(e) is Notice]
    assert [n.code for n in notices] == ["marks_without_pages"] * told
    assert not any(type(e) is Notice for e in CHAT.decode(data))


# --- what a refusal teaches ---

REFUSALS = {
    "mistral": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    "order": "Unexpected role 'user' after role 'tool'",
    "template": "conversation roles must alternate user/assistant/user/assistant/...",
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "moonshot": "thinking is enabled but reasoning_content is missing in assistant tool call "
    "message at index 2",
    "older": "Missing `reasoning_content` field in the assistant message at message index 2.",
}


class Strict(FakeServer):
    """A server of a model that nobody listed, which refuses what its dialect does not allow."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(self._answer)
        self._words, self._status = words, status

    def _answer(self, request: Received) -> Reply:
        try:
            if "reasoning_content" in self._words:
                for message in request.json["messages"]:
                    assert not message.get("tool_calls") or message.get("reasoning_content")
            else:
                check_mistral(request.json)
        except AssertionError:
            return json_reply({"error": {"message": self._words}}, self._status)
        return sse_reply([{"choices": [{"index": 0, "delta": {"content": "07:40"}}]}, DONE])


def ask(server: FakeServer, messages: list[Message], times: int) -> list[Finished]:
    events = CHAT.stream(server, *[Request("tidewater-8b", messages)] * times)
    return [event for event in events if isinstance(event, Finished)]


@each_row("words", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_teaches_the_dialect(words: str) -> None:
    """One further request, once; from then on all requests are as this model wants them."""
    call = ToolCall("call_1", "f", {})
    answer = Message("assistant", "", tool_calls=(call,))
    told = [USER, answer, *results(answer), Message("user", "And then?")]
    with Strict(words) as server:
        ends = ask(server, told, times=2)
    assert [e.message.content for e in ends] == ["07:40"] * 2
    assert len(server.requests) == 3
