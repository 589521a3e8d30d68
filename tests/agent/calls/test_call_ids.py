"""Calls keep their ids, unless an id was used before in the session."""

from __future__ import annotations

from collections.abc import AsyncIterator

from searchloop.agent.calls.arguments import with_own_ids
from searchloop.agent.types import Finished, Message, ProviderData, Request, ToolCall
from searchloop.function_provider import provider


def answer(*ids: str) -> Message:
    calls = tuple(ToolCall(own, "note", {"id": own}) for own in ids)
    blocks = tuple(
        {"call": {"id": own, "args": {"id": own}, "text": own}, "more": [{"call_id": own}]}
        for own in ids
    )
    return Message(
        "assistant", "", tool_calls=calls, provider_data=ProviderData("p", "m", "1", blocks)
    )


def test_new_ids_are_kept() -> None:
    """A message whose ids nobody used is the same object."""
    message = answer("a", "b")
    assert with_own_ids(message, [answer("c"), Message("user", "a")]) is message


def test_used_ids_are_replaced() -> None:
    """In the call and wherever the raw blocks hold it as an id, but not in what the model wrote."""
    changed = with_own_ids(answer("a", "b"), [answer("a")])
    first, second = changed.tool_calls
    assert first.id != "a"
    assert second.id == "b"
    assert first.arguments == {"id": "a"}
    assert changed.provider_data is not None
    assert changed.provider_data.blocks[0] == {
        "call": {"id": first.id, "args": {"id": "a"}, "text": "a"},
        "more": [{"call_id": first.id}],
    }
    assert changed.provider_data.blocks[1] == answer("b").provider_data.blocks[0]


async def test_a_provider_of_one_s_own_may_count_from_one_each_time() -> None:
    """Other vendors would refuse the history in which two calls have one id, or one answer."""

    @provider("counting")
    async def counting(request: Request) -> AsyncIterator[ToolCall]:
        yield ToolCall("call_1", "note", {})
        yield ToolCall("call_2", "note", {})
        yield ToolCall("call_2", "note", {})

    *_, end = [event async for event in counting.stream(Request("m", [answer("call_1")]))]
    assert isinstance(end, Finished)
    first, second, third = (call.id for call in end.message.tool_calls)
    assert second == "call_2"
    assert len({"call_1", first, second, third}) == 4
