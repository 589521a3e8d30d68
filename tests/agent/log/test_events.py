"""The fold from a log to a transcript, and the way there and back through JSON.

What stands beside an event, and what it notices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log.events import (
    STOPPED,
    Event,
    checksum,
    data_in,
    message_data,
    messages_from,
    public_data,
    result_data,
    result_message,
    unfinished,
)
from searchloop.agent.types import (
    Citation,
    Mark,
    Message,
    ProviderData,
    Source,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.agent.scripted import check_calls_are_answered

Pending = tuple[str, dict[str, Any]]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def log(pending: Iterable[Pending]) -> list[Event]:
    """Numbered events."""
    return [Event(seq, kind, data, 0.0) for seq, (kind, data) in enumerate(pending, 1)]


def said(message: Message, **more: Any) -> Pending:
    """A message event."""
    data = message_data(message, step=1, usage=Usage(), stop_reason="stop", **more)
    return "message", json.loads(json.dumps(data))


@st.composite
def runs(draw: st.DrawFn) -> list[Pending]:
    """The log of some turns: steps with parallel calls, results in any order, any ending."""
    pending: list[Pending] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        pending.append(("user_message", {"text": draw(st.text(max_size=5))}))
        pending.append(("run_started", {"run_id": "r"}))
        for _ in range(draw(st.integers(0, 3))):
            pending += [("text_delta", {"text": "…"})] * draw(st.integers(0, 2))
            made = [
                ToolCall(f"c{number + i}", draw(st.sampled_from(["", "note"])), {})
                for i in range(draw(st.integers(0, 3)))
            ]
            number += len(made)
            pending.append(said(Message("assistant", "x", tool_calls=tuple(made))))
            pending += [("tool_call", {"call_id": c.id}) for c in made]
            for c in draw(st.permutations(made)):
                result = ToolResult(c.id, c.name, "ok")
                pending.append(("tool_result", result_data(result)))
        pending += [("text_delta", {"text": "half"})] * draw(st.integers(0, 1))
        pending.append(("run_finished", {"run_id": "r"}))
    return pending


@given(runs(), st.integers(0, 80))
def test_any_prefix_of_a_log_is_a_transcript_a_provider_takes(
    pending: list[Pending], cut: int
) -> None:
    """Wherever a crash or a stop cut the log: the next question finds every call answered."""
    transcript = messages_from(log([*pending[:cut], ("user_message", {"text": "go on"})]))
    check_calls_are_answered(transcript)
    assert transcript[-1].content == "go on"


@given(runs(), st.randoms(use_true_random=False))
def test_even_a_shuffled_log_is_one(pending: list[Pending], luck: Any) -> None:
    """Two writers may interleave: late and doubled results are left out, missing ones made up."""
    shuffled = luck.sample(pending * 2, k=len(pending))
    check_calls_are_answered(messages_from(log(shuffled)))


def test_an_interrupted_call_says_so() -> None:
    """The made-up result tells the model that nothing came."""
    call = ToolCall("c1", "note", {})
    pending = [("user_message", {"text": "hi"}), said(Message("assistant", "", tool_calls=(call,)))]
    made_up = messages_from(log(pending))[-1]
    assert (made_up.tool_call_id, made_up.is_error, made_up.content) == ("c1", True, STOPPED)


def test_half_an_answer_stays_in_the_transcript() -> None:
    """What was said before a crash is what the model is shown it said; a message replaces it."""
    pending = [
        ("user_message", {"text": "hi"}),
        ("text_delta", {"text": "Half an "}),
        ("thinking_delta", {"text": "hmm"}),
        ("text_delta", {"text": "answer"}),
        ("user_message", {"text": "go on"}),
    ]
    assert [m.content for m in messages_from(log(pending))] == ["hi", "Half an answer", "go on"]
    assert unfinished(log(pending[:-1])) == "Half an answer"
    whole = [*pending[:-1], said(Message("assistant", "Whole."))]
    assert [m.content for m in messages_from(log(whole))] == ["hi", "Whole."]
    assert unfinished(log(whole)) == ""


@given(st.lists(JSON, max_size=4), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_provider_blocks_come_back_byte_for_byte(blocks: list[Any], text: str) -> None:
    """What a provider sent is replayed exactly, through the log's JSON and back."""
    raw = ProviderData("scripted", "one", "1", tuple(blocks))
    event = log([said(Message("assistant", text, provider_data=raw))])
    (message,) = messages_from(event)
    assert message.provider_data is not None
    assert json.dumps(message.provider_data.blocks) == json.dumps(blocks)
    assert message.provider_data.version == "1"


def test_every_field_of_a_message_and_of_a_result_survives() -> None:
    """Thinking, calls, citations, sources, details: the fold gives back what was written."""
    message = Message(
        "assistant",
        "Water is wet [1].",
        thinking="Is it?",
        tool_calls=(ToolCall("c1", "note", {"word": "ü", "n": 1.0}, problem="cut"),),
        citations=(Citation(1, "https://a.example/", "A", (Mark((13, 16), "wet", True),)),),
        sources=(Source("https://a.example/", "A", "cited", 1), Source("https://b.example/")),
        details={"kind": "x"},
    )
    source = Source("https://a.example/", n=3)
    result = ToolResult("c1", "note", "none", True, {"kind": "search"}, (source,))
    back, told = messages_from(log([said(message), ("tool_result", result_data(result))]))
    for was, now in ((message, back), (result_message(result), told)):
        for field in fields(Message):
            assert getattr(was, field.name) == getattr(now, field.name), field.name


def test_opaque_blocks_never_leave_the_process() -> None:
    """What goes to a browser or an API client has no provider data in it."""
    raw = ProviderData("scripted", "one", "1", ({"signature": "s3cret"},))
    (event,) = log([said(Message("assistant", "Hello", provider_data=raw))])
    assert "s3cret" in json.dumps(event.data)
    assert "s3cret" not in json.dumps(public_data(event))


def test_results_stand_in_call_order_whichever_was_done_first() -> None:
    """The log holds results as they came; the transcript holds them as they were asked for."""
    calls = [{"id": f"c{i}", "name": "echo", "arguments": {}, "problem": None} for i in (1, 2)]
    result = {"name": "echo", "is_error": False, "content": "x", "details": {}, "sources": []}
    events = [
        Event(1, "user_message", {"text": "go"}, 0.0),
        Event(2, "message", {"text": "", "tool_calls": calls}, 0.0),
        Event(3, "tool_result", {"call_id": "c2", **result}, 0.0),
        Event(4, "tool_result", {"call_id": "c1", **result}, 0.0),
    ]
    assert [m.tool_call_id for m in messages_from(events)] == [None, None, "c1", "c2"]


WORDS = '{"text": "At 07:40.", "step": 1}'


def flipped(text: str, bit: int) -> str:
    """The text with one bit of one letter changed."""
    place, bit = divmod(bit % (len(text) * 7), 7)
    return text[:place] + chr(ord(text[place]) ^ 1 << bit) + text[place + 1 :]


@given(
    st.integers(1, 1 << 31),
    st.floats(0, 1e11, exclude_max=True),
    st.sampled_from(["session", "seq", "kind", "text", "at", "stored"]),
    st.integers(0, 1 << 20),
)
def test_one_bit_is_noticed(seq: int, at: float, name: str, bit: int) -> None:
    """Of the session's id, the number, the type, the data, the time, or the checksum itself."""
    row: dict[str, Any] = {
        "session": "gK2m",
        "seq": seq,
        "kind": "message",
        "text": WORDS,
        "at": at,
    }
    row["stored"] = checksum(**row)
    assert data_in(**row) == {"text": "At 07:40.", "step": 1}
    value = row[name]
    if name == "at":
        row[name] = -value - 1.0
    else:
        row[name] = flipped(value, bit) if isinstance(value, str) else value ^ 1 << bit % 31
    assert data_in(**row) is None
