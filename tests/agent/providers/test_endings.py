"""Each provider's ends that are no answer, and how long a limit lasts: nothing ends in silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ProviderError
from searchloop.agent.loop import Outcome, run_agent_loop
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.transport.refusals import with_delay
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Message, Request
from tests.agent.scripted import Memory
from tests.fakes import FakeServer, Reply, json_reply, sse_reply
from tests.tables import each_row

MODELS = {
    "openai": "gpt-6-luna",
    "gemini": "gemini-3.5-flash",
    "anthropic": "claude-sonnet-5-5",
    "openai-chat": "any-model",
    "ollama": "any:1b",
}


def responses(status: str, text: str = "", why: str = "") -> Reply:
    part = {"type": "output_text", "text": text}
    output = [{"type": "message", "content": [part]}] if text else []
    response = {"status": status, "output": output, "incomplete_details": {"reason": why}}
    return sse_reply([{"type": f"response.{status}", "response": response}])


def messages(why: str, text: str = "") -> Reply:
    block = {"type": "text", "text": text}
    blocks = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    ]
    end = [{"type": "message_delta", "delta": {"stop_reason": why}}, {"type": "message_stop"}]
    return sse_reply([{"type": "message_start", "message": {}}, *(blocks if text else []), *end])


def contents(why: str, text: str = "") -> Reply:
    content = {"content": {"parts": [{"text": text}]}} if text else {}
    return sse_reply([{"candidates": [{**content, "finishReason": why}]}])


def chat(why: str, text: str = "") -> Reply:
    delta = {"content": text} if text else {}
    return sse_reply([{"choices": [{"delta": delta, "finish_reason": why}]}, b"data: [DONE]\n\n"])


def lines(*values: Mapping[str, Any]) -> Reply:
    return Reply([json.dumps(value).encode() + b"\n" for value in values])


def run(name: str, reply: Reply) -> Outcome | ProviderError:
    """How a run with one answer of this provider ends."""

    async def main() -> Outcome:
        transport = Transport()
        host = "OLLAMA_HOST" if name == "ollama" else f"{name.upper().replace('-', '_')}_BASE_URL"
        with FakeServer(lambda _: reply) as server:
            env = Environment({"environment": {host: server.url}})
            provider = providers.load(name, env, transport)
            try:
                table = SourceTable()
                return await run_agent_loop(
                    [Message("user", "When is high water?")],
                    Request(MODELS[name], ()),
                    provider=provider,
                    tools=Toolset([], "ask", table),
                    emit=Memory(),
                )
            finally:
                await transport.aclose()

    try:
        return asyncio.run(main())
    except ProviderError as error:
        return error


HALF = {"content": "Half"}
CASES = [
    ("openai", responses("incomplete", "Half", "max_output_tokens"), "answer_cut"),
    ("openai", responses("incomplete", "", "max_output_tokens"), "answer_cut"),
    ("openai", responses("incomplete", "Half", "content_filter"), "withheld"),
    ("openai", responses("incomplete", "", "content_filter"), "withheld"),
    ("openai", responses("completed"), "empty_answer"),
    ("anthropic", messages("max_tokens", "Half"), "answer_cut"),
    ("anthropic", messages("model_context_window_exceeded", "Half"), "answer_cut"),
    ("anthropic", messages("refusal", "Half"), "withheld"),
    ("anthropic", messages("refusal"), "withheld"),
    ("anthropic", messages("pause_turn", "Half"), "endless_pause"),
    ("anthropic", messages("pause_turn"), "endless_pause"),
    ("anthropic", messages("end_turn"), "empty_answer"),
    ("anthropic", messages("stop_sequence"), "empty_answer"),
    ("gemini", contents("MAX_TOKENS", "Half"), "answer_cut"),
    ("gemini", contents("MAX_TOKENS"), "answer_cut"),
    ("gemini", contents("SAFETY"), "withheld"),
    ("gemini", contents("PROHIBITED_CONTENT", "Half"), "withheld"),
    ("gemini", sse_reply([{"promptFeedback": {"blockReason": "SAFETY"}}]), "withheld"),
    ("gemini", contents("STOP"), "empty_answer"),
    ("openai-chat", chat("length", "Half"), "answer_cut"),
    ("openai-chat", chat("content_filter"), "withheld"),
    ("openai-chat", chat("sensitive", "Half"), "withheld"),
    ("openai-chat", chat("RECITATION", "Half"), "withheld"),
    ("openai-chat", chat("repetition_truncation", "Half"), "answer_cut"),
    ("openai-chat", chat("insufficient_system_resource", "Half"), "server_error"),
    ("openai-chat", chat("abort", "Half"), "server_error"),
    ("openai-chat", chat("stop"), "empty_answer"),
    ("ollama", lines({"message": HALF, "done": True, "done_reason": "length"}), "answer_cut"),
    ("ollama", lines({"done": True}), "empty_answer"),
    ("ollama", lines({"message": {"thinking": "Hm."}, "done": True}), "empty_answer"),
]  # fmt: skip


@each_row(("name", "reply", "code"), CASES)
def test_an_end_that_is_no_answer_is_told(name: str, reply: Reply, code: str) -> None:
    """One sentence and what to do about it; never a silent stop."""
    ended = run(name, reply)
    error = ended.error if isinstance(ended, Outcome) else ended
    assert error
    assert error.code == code
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")
    if isinstance(ended, Outcome):
        assert ended.reason == "incomplete"


@each_row(
    ("seconds", "words"),
    [
        ("1", "in 1 second."),
        ("59", "in 59 seconds."),
        ("60.5", "in 2 minutes."),
        ("300", "in 5 minutes."),
        ("7200", "in 2 hours"),
        ("172800", "in 2 days"),
    ],
)
def test_the_length_of_a_wait_in_words(seconds: str, words: str) -> None:
    """Rounded up, in the largest unit that is reached."""
    error = ProviderError("rate_limited", "Stop.", "Wait.", retry_after=float(seconds))
    assert words in with_delay(error).remedy


@pytest.mark.parametrize("name", MODELS)
def test_a_limit_says_how_long_it_lasts(name: str) -> None:
    """Whoever sets it."""
    ended = run(name, json_reply({"error": {"message": "Slow."}}, 429, {"retry-after": "300"}))
    assert isinstance(ended, ProviderError)
    assert "in 5 minutes" in ended.remedy
