"""Gemini: how answers are read, whole and in pieces, and what their ends mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.providers.gemini.grounding import AnswerParts
from searchloop.agent.providers.gemini.request import FunctionCalls
from searchloop.agent.providers.gemini.response import STUMBLED, WITHHELD
from searchloop.agent.types import (
    Finished,
    SearchFinished,
    TextDelta,
)
from tests.agent.providers.vendors import GEMINI
from tests.tables import each_row

stream_of, decode, finished = GEMINI.stream_of, GEMINI.decode, GEMINI.finished


def chunks(*candidates: dict[str, Any], **more: Any) -> bytes:
    found = [{"candidates": [candidate], **more} for candidate in candidates]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in found)


def said(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": [{"text": text} for text in texts]}, **more}


def grounding(*supports: dict[str, Any], pages: int = 2) -> dict[str, Any]:
    return {
        "groundingChunks": [
            {"web": {"uri": f"https://{n}.example/", "title": f"{n}.example"}} for n in range(pages)
        ],
        "groundingSupports": list(supports),
    }


def support(start: int, end: int, text: str, *pages: int, **more: int) -> dict[str, Any]:
    segment = {"startIndex": start, "endIndex": end, "text": text, **more}
    return {"segment": segment, "groundingChunkIndices": list(pages)}


# --- searched answers ---


def test_a_search_that_failed() -> None:
    """It is not one that found nothing; one without an answer ends with the answer."""
    call = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1", "args": {"queries": ["a"]}}}
    failed = {"toolResponse": {"id": "1", "response": {"error": {"message": "busy"}}}}
    data = chunks({"content": {"parts": [call, failed]}}, said("x", finishReason="STOP"))
    (ended,) = [e for e in decode(data) if isinstance(e, SearchFinished)]
    assert (ended.query, ended.status) == ("a", "error")
    assert "busy" in (ended.error or "")
    open_end = chunks({"content": {"parts": [call]}}, said("x", finishReason="STOP"))
    assert SearchFinished("a") in decode(open_end)


@each_row(
    ("supports", "spans"),
    [
        ([support(0, 7, "Grün 🌊", 0)], [(0, 6)]),
        ([support(1, 3, "", 0)], [(1, 3)]),
        ([support(3, 9, "", 0)], [(2, 6)]),
        ([support(0, 99, "", 0)], [(0, 10)]),
        ([support(0, 4, "Blau", 0, partIndex=1)], [(12, 16)]),
        ([support(99, 120, "Blau", 0)], [(12, 16)]),
        ([support(0, 5, "not in the text", 0)], [(0, 4)]),
        ([support(5, 5, "", 0)], []),
        ([{"groundingChunkIndices": [0]}], []),
    ],
)
def test_where_a_segment_lies(supports: list[Any], spans: list[tuple[int, int]]) -> None:
    """Bytes of a part or of the whole become code points; the words decide, ranges stay inside."""
    served = {"content": {"parts": [{"toolCall": {"toolType": "X", "id": "1"}}]}}
    data = chunks(
        said("Grün 🌊 Ro", "t"),
        served,
        said("Blau da.", finishReason="STOP", groundingMetadata=grounding(*supports)),
    )
    message = finished(data).message
    assert message.content == "Grün 🌊 Rot\n\nBlau da."
    (citation,) = message.citations
    assert list(citation.spans) == spans


def test_grounding_that_makes_no_sense() -> None:
    """Chunks without an address and numbers without a chunk are passed over."""
    data = chunks(
        said(
            "Hello there.",
            finishReason="STOP",
            groundingMetadata={
                "groundingChunks": [{"web": {}}, {"maps": {"uri": "https://m.example/"}}, {}],
                "groundingSupports": [support(0, 5, "Hello", 0, 1, 2, 7)],
                "webSearchQueries": ["", "q"],
            },
        )
    )
    last = finished(data)
    assert [c.url for c in last.message.citations] == ["https://m.example/"]
    assert last.usage.searches == 1


@given(st.lists(st.text(max_size=6), min_size=1, max_size=6), st.data())
def test_citations_of_any_text(pieces: list[str], data: st.DataObject) -> None:
    """Byte offsets of any place in any text, however it was cut, name exactly that place."""
    answer = AnswerParts()
    shown = "".join(answer.say(piece) for piece in pieces if piece) + answer.end()
    text = "".join(pieces)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    offsets = [len(text[:at].encode("utf-8", "surrogatepass")) for at in (start, end)]
    segment = {"startIndex": offsets[0], "endIndex": offsets[1], "text": text[start:end]}
    where = answer.locate(segment)
    if shown == text and start < end:
        assert where == (start, end)
    else:
        assert where is None or 0 <= where[0] < where[1] <= len(shown)


# --- calls ---


def test_a_call_that_was_sent_twice() -> None:
    """It is one call, by the id of the server; many calls are as many."""
    calls = FunctionCalls()
    for number in [*range(500), 0, 499]:
        calls.add({"functionCall": {"name": "f", "id": f"c{number}"}})
    assert len(calls.done) == 500


# --- ends ---


@each_row("reason", sorted(WITHHELD))
def test_withheld_answers_say_so(reason: str) -> None:
    """A filter is a refusal in words, after what was said until then."""
    data = chunks(said("Once upon "), {"finishReason": reason, "content": {}})
    events = decode(data)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.stop_reason == "refusal"
    assert last.message.content.startswith("Once upon \n\nGemini stopped this answer")
    assert reason in last.message.content
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.message.content
    assert last.message.provider_data is None


def test_a_blocked_question() -> None:
    """A reason of tomorrow, with the words of the server."""
    data = {"promptFeedback": {"blockReason": "NEW", "blockReasonMessage": "Because."}}
    other = finished(json.dumps(data).encode(), "application/json")
    assert "(NEW)" in other.message.content
    assert other.message.content.endswith("Because.")


@pytest.mark.parametrize("reason", sorted(STUMBLED))
def test_a_stumbling_model_is_asked_again(reason: str) -> None:
    """Nothing of it is an answer, least of all a call."""
    call = {"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": reason}
    with pytest.raises(ProviderError) as caught:
        decode(chunks(call))
    assert caught.value.retryable
    assert reason in caught.value.message


@pytest.mark.parametrize("reason", ["SOMETHING_NEW", "FINISH_REASON_UNSPECIFIED"])
def test_an_unknown_end_is_no_end(reason: str) -> None:
    """What nobody knows is not taken for a whole answer."""
    with pytest.raises(IncompleteError) as caught:
        decode(chunks(said("Hello", finishReason=reason)))
    assert reason in caught.value.message


def test_an_empty_answer() -> None:
    """Retried while nothing was shown; incomplete when something was."""
    with pytest.raises(ProviderError) as caught:
        decode(stream_of("empty_stop"))
    assert caught.value.retryable
    assert not isinstance(caught.value, IncompleteError)
    thought = {"content": {"parts": [{"text": "Hm.", "thought": True}]}}
    with pytest.raises(IncompleteError):
        decode(chunks(thought, {"finishReason": "STOP"}))


def test_a_reason_in_every_chunk() -> None:
    """Some models name a reason all the time: the answer ends with its bytes."""
    data = chunks(said("High ", finishReason="STOP"), said("water", finishReason="STOP"))
    assert finished(data).message.content == "High water"


def test_framing_that_nobody_asked_for() -> None:
    """An array, an array without its end, and events under another content type are all read."""
    array = stream_of("json_array_stream")
    for data in (array, array.rstrip(b"]"), stream_of("max_tokens_stream")):
        assert finished(data, "application/json").message.content
    assert finished(array, "text/event-stream").message.content == "High water at 07:40."
