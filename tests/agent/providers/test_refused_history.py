"""A provider that refuses opaque parts of the history gets it once more without them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.openai_chat.window import named_size
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Finished,
    Message,
    Notice,
    ProviderData,
    Request,
    StreamEvent,
    ToolCall,
)
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.tables import each_row

USER = Message("user", "When is high water?")
OPAQUE = "OPAQUE0123456789"
WORDS = "At twenty to eight."
CALL = {"day": "Saturday"}
MODELS = {
    "openai": "gpt-6-luna",
    "gemini": "gemini-3.5-flash",
    "anthropic": "claude-sonnet-5-5",
    "openai-chat": "any-model",
}
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": OPAQUE},
        {"type": "message", "id": "m_1", "content": [{"type": "output_text", "text": WORDS}]},
        {"type": "function_call", "id": "f_1", "call_id": "c1", "name": "tide", "arguments": "{}"},
    ],
    "gemini": [
        {"text": WORDS},
        {"functionCall": {"name": "tide", "args": CALL}, "thoughtSignature": OPAQUE},
    ],
    "anthropic": [
        {"type": "thinking", "thinking": "Hm.", "signature": OPAQUE},
        {"type": "text", "text": WORDS},
        {"type": "tool_use", "id": "c1", "name": "tide", "input": CALL},
    ],
    "openai-chat": [
        {
            "role": "assistant",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": OPAQUE}],
            "tool_calls": [{"id": "c1", "function": {"name": "tide", "arguments": "{}"}}],
        }
    ],
}
VERSIONS = {"openai": "1", "gemini": "1", "anthropic": "1:", "openai-chat": "1 127.0.0.1"}
GOOD: dict[str, list[Any]] = {
    "openai": [
        {
            "type": "response.completed",
            "response": {
                "status": "completed",
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "Good."}]}
                ],
            },
        }
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Good."}]}, "finishReason": "STOP"}]}
    ],
    "anthropic": [
        {"type": "message_start", "message": {}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "Good."},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
    "openai-chat": [
        {"choices": [{"delta": {"content": "Good."}, "finish_reason": "stop"}]},
        b"data: [DONE]\n\n",
    ],
}
REFUSALS: dict[str, list[Any]] = {
    "openai": [
        {"code": "invalid_encrypted_content", "message": "It could not be verified."},
        {"message": "The encrypted content gAAA could not be verified."},
        {
            "message": "Item 'rs_1' of type 'reasoning' was provided without its required "
            "following item."
        },
        {
            "message": "Item 'm_1' of type 'message' was provided without its required 'reasoning' "
            "item: 'rs_1'."
        },
        {"message": "Item with id 'rs_1' not found. Items are not persisted."},
        {"message": "Duplicate item found with id rs_1."},
        {"message": "Unknown parameter: 'input[1].phase'.", "param": "input[1].phase"},
        {"message": "Could not decrypt reasoning content."},
        {"message": "The provided reasoning item has expired."},
    ],
    "gemini": [
        {"message": "Corrupted thought signature."},
        {"message": "Function call is missing a thought_signature in functionCall parts."},
        {"message": "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES)"},
        {"message": "Thought signature is not valid."},
        {"message": "Unable to submit request because Thought Signature is not valid.."},
        {"message": "A function response turn comes immediately after a function call turn."},
    ],
    "anthropic": [
        {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"},
        {"message": "Invalid `encrypted_content` in `search_result` block"},
        {"message": "messages.1.content.0.signature: signature verification failed"},
        {"message": "messages.1.content.0: Expected `thinking` or `redacted_thinking`."},
        {"message": "The thinking block was made by a different model."},
        {"message": "`web_search_tool_result` block(s) without a preceding `server_tool_use`"},
    ],
    "openai-chat": [
        {"message": "Function call is missing a thought_signature in functionCall parts."},
        {"message": "Corrupted thought signature."},
        {"message": "property 'reasoning_content' is unsupported"},
        {"message": "messages.2: property 'reasoning' is unsupported"},
        {"code": "invalid_encrypted_content", "message": "The encrypted content is not valid."},
    ],
}


def history(name: str) -> list[Message]:
    made = ProviderData(name, MODELS[name], VERSIONS[name], tuple(BLOCKS[name]))
    call = ToolCall("c1", "tide", CALL)
    answer = Message("assistant", WORDS, tool_calls=(call,), provider_data=made)
    result = Message("tool", "07:40", tool_call_id="c1", tool_name="tide")
    return [USER, answer, result, Message("assistant", "At 07:40."), USER]


def asked(name: str, server: FakeServer, *sessions: str | None) -> list[StreamEvent]:
    """What comes of the same question in each session, through one provider."""
    prefix = name.upper().replace("-", "_")
    env = Environment({"environment": {f"{prefix}_BASE_URL": f"{server.url}/v1"}})

    async def main() -> list[StreamEvent]:
        transport = Transport()
        try:
            provider = providers.load(name, env, transport)
            requests = [Request(MODELS[name], history(name), session_id=s) for s in sessions]
            return [event for each in requests async for event in provider.stream(each)]
        finally:
            await transport.aclose()

    return asyncio.run(main())


def cases() -> Iterator[tuple[str, Any]]:
    for name, errors in REFUSALS.items():
        yield from ((name, error) for error in errors)


def refusing(name: str, error: Any) -> FakeServer:
    """A server that refuses what it cannot read, whenever it comes."""

    def reply(received: Received) -> Reply:
        if OPAQUE in received.body.decode():
            return json_reply({"error": {"type": "invalid_request_error", **error}}, 400)
        return sse_reply(GOOD[name])

    return FakeServer(reply)


@each_row(("name", "error"), list(cases()))
def test_opaque_parts_are_left_out_once_for_the_session(name: str, error: Any) -> None:
    """The second question pays nothing, another session learns for itself; each is told once."""
    with refusing(name, error) as server:
        events = asked(name, server, "a", "a", "b")
    assert [OPAQUE in r.body.decode() for r in server.requests] == [True, False, False, True, False]
    for received in server.requests:
        assert WORDS in received.body.decode()
        assert "tide" in received.body.decode()
    answers = [e.message.content for e in events if isinstance(e, Finished)]
    assert answers == ["Good."] * 3
    notices = [e.code for e in events if isinstance(e, Notice)]
    assert notices == ["history_as_text"] * 2


@pytest.mark.parametrize("name", MODELS)
def test_a_server_that_refuses_everything(name: str) -> None:
    """There is an end to it, and no request is sent twice."""
    error = {"code": "invalid_encrypted_content", **REFUSALS[name][0]}
    refused = json_reply({"error": error}, 400)
    with FakeServer(lambda _: refused) as server, pytest.raises(ProviderError) as caught:
        asked(name, server, None)
    assert caught.value.remedy == "Start a new session."
    bodies = [json.dumps(r.json) for r in server.requests]
    assert len(bodies) == 2
    assert all(before != after for before, after in pairwise(bodies))


@pytest.mark.parametrize(
    "words",
    ["Invalid 'input[0].content': string too long.", "Bad 'temperature'.", "Unknown parameter."],
)
def test_other_refusals_are_not_sent_again(words: str) -> None:
    """What the history has no part in is told at once."""
    refused = json_reply({"error": {"message": words}}, 400)
    with FakeServer([refused]) as server, pytest.raises(ProviderError) as caught:
        asked("openai", server, None)
    assert caught.value.code == "bad_request"


LONG = (
    "This model's maximum context length is 8,192 tokens, however you sent 9000.",
    "prompt is too long: 9000 tokens > 8192 maximum",
    "Input length 9000 exceeds maximum allowed length 8192",
    "Range of input length should be [1, 8192]",
    "Token limit exceeded: 9000 > 8192",
    "Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
    "The total number of tokens (9000) is greater than the model's maximum (8192)",
    "request is too large: 9000 tokens, the limit is 8192 tokens",
)


@pytest.mark.parametrize("name", MODELS)
def test_too_long_in_every_servers_words(name: str) -> None:
    """Every dialect is spoken by servers of other makers; a limit of answers or files is none."""

    def code_of(words: str) -> str:
        error = {"message": words, "type": "invalid_request_error"}
        refused = [json_reply({"error": error}, 400)] * 2
        with FakeServer(refused) as server, pytest.raises(ProviderError) as caught:
            asked(name, server, None)
        return caught.value.code

    assert {code_of(words) for words in LONG} == {"context_length"}
    assert [named_size(words) for words in LONG] == [8192] * len(LONG)
    others = ("max_tokens: 99999 > 64000, the maximum allowed for answers", "image is too large")
    assert {code_of(words) for words in others} == {"bad_request"}


def test_a_gemini_stream_that_misses_a_signature() -> None:
    """The reason of an end counts as well as a status; the calls get the documented mark."""
    ends = {"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]}
    with FakeServer([sse_reply([ends]), sse_reply(GOOD["gemini"])]) as server:
        asked("gemini", server, None)
    assert "skip_thought_signature_validator" in server.requests[1].body.decode()
