"""Gemini: how answers are read, whole and in pieces, and what their ends mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import IncompleteError, NativeSearchRejected, ProviderError
from searchloop.agent.providers.gemini import GeminiCodec
from searchloop.agent.providers.gemini.grounding import AnswerParts
from searchloop.agent.providers.gemini.request import FunctionCalls
from searchloop.agent.providers.gemini.response import STUMBLED, WITHHELD
from searchloop.agent.types import (
    Finished,
    Message,
    PageOpened,
    Request,
    SearchFinished,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from tests.tables import each_row

OURS = Path(__file__).resolve().parents[3] / "recordings" / "gemini"
KEY = "AIzaCanary0123456789abcdef"
MODEL = "gemini-3.5-flash"
CODEC = GeminiCodec(KEY)
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"


def stream_of(name: str, number: int = 0) -> bytes:
    answer = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"][number]["response"]
    return (answer.get("text") or json.dumps(answer["body"])).encode()


def decode(
    data: bytes, content_type: str = "text/event-stream", messages: tuple[Message, ...] = ()
) -> list[StreamEvent]:
    decoder = CODEC.decoder(Request(MODEL, messages), content_type)
    return [*decoder.feed(data), *decoder.close()]


def finished(data: bytes, content_type: str = "text/event-stream") -> Finished:
    last = decode(data, content_type)[-1]
    assert isinstance(last, Finished)
    return last


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


def test_a_searched_answer() -> None:
    """Thinking, text, a search for each query, citations in code points, sources, counts."""
    *events, last = decode(stream_of("search_stream"))
    assert isinstance(last, Finished)
    message = last.message
    assert [e for e in events if not isinstance(e, TextDelta)] == [
        ThinkingDelta("**Looking for a tide table**"),
        SearchStarted("lindhøj tide table"),
        SearchFinished("lindhøj tide table"),
        SearchStarted("lindhøj high water today"),
        SearchFinished("lindhøj high water today"),
    ]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.content
    cited = [
        (c.n, c.url, c.title, [message.content[s:e] for s, e in c.spans]) for c in message.citations
    ]
    first, second = "High water at Lindhøj is at 07:40 🌊.", "The harbour office expects 2.1 m."
    assert cited == [
        (1, f"{REDIRECT}AAtides", "tides.example", [first, second]),
        (2, f"{REDIRECT}BBharbour", "harbour.example", [second]),
    ]
    assert [(s.title, s.state, s.n) for s in message.sources] == [
        ("tides.example", "cited", 1),
        ("harbour.example", "cited", 2),
        ("ferry.example", "found", None),
    ]
    usage = last.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (84, 69, 31)
    assert (usage.searches, usage.pages) == (2, 0)
    assert last.stop_reason == "stop"


def test_search_suggestions_are_data() -> None:
    """What the provider wants shown beside its answer is kept as it came, for who shows it."""
    suggestions = finished(stream_of("search_stream")).message.details["search_suggestions"]
    assert suggestions["queries"] == ["lindhøj tide table", "lindhøj high water today"]
    assert suggestions["html"].startswith("<style>")


def test_stream_and_plain_body_agree() -> None:
    """The same response without streaming gives the same message."""
    streamed = finished(stream_of("search_stream"))
    whole = finished(stream_of("plain_body"), "application/json; charset=UTF-8")
    assert repr(whole.message) == repr(streamed.message)
    assert whole.usage == streamed.usage


def test_grounding_that_came_early() -> None:
    """It may come before the text is whole and be empty or missing at the end."""
    streamed = finished(stream_of("search_stream")).message
    early = finished(stream_of("search_early_grounding_stream"))
    assert early.message.citations == streamed.citations
    assert early.usage.searches == 1
    assert early.usage.input_tokens == 14


def test_searches_that_show_as_parts() -> None:
    """They are told when they happen, once, and not again by the grounding of the next step."""
    events = decode(stream_of("search_and_function_stream"))
    assert [type(e).__name__ for e in events] == [
        *("TextDelta", "SearchStarted", "SearchFinished", "TextDelta", "Finished"),
    ]
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.message.content == "I will look it up\n\nand note it."
    assert last.stop_reason == "tool_calls"
    assert last.usage.searches == 1
    assert last.message.provider_data is not None
    before = (Message("user", "When?"), last.message)
    *events, after = decode(stream_of("search_and_function_stream", 1), messages=before)
    assert all(isinstance(e, TextDelta) for e in events)
    assert isinstance(after, Finished)
    assert after.usage.searches == 0
    assert after.usage.cached_tokens == 64
    (citation,) = after.message.citations
    assert after.message.content[slice(*citation.spans[0])] == "High water at Lindhøj is at 07:40."


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


def test_pages_that_were_read() -> None:
    """Each is told once, with what became of it; only what was read is a source."""
    *events, last = decode(stream_of("pages_read_stream"))
    assert [e for e in events if isinstance(e, PageOpened)] == [
        PageOpened("https://museum.example/hours"),
        PageOpened("https://paper.example/x", "paywall"),
    ]
    assert isinstance(last, Finished)
    (source,) = last.message.sources
    assert (source.url, source.state, source.n) == ("https://museum.example/hours", "cited", 1)
    assert (last.usage.pages, last.usage.searches, last.usage.input_tokens) == (1, 0, 932)


def test_leaked_marks_are_gone() -> None:
    """The places of citations are those of the text as it is shown."""
    message = finished(stream_of("leaked_marks_stream")).message
    assert message.content == "The lighthouse is 31 m tall. It was built in 1897."
    (citation,) = message.citations
    assert message.content[slice(*citation.spans[0])] == "It was built in 1897."


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


def test_parallel_calls() -> None:
    """Calls in several chunks, with the ids of the server, after visible thinking."""
    events = decode(stream_of("function_calls_parallel_stream"))
    last = events[-1]
    assert isinstance(last, Finished)
    assert [(c.id, c.name, dict(c.arguments)) for c in last.message.tool_calls] == [
        ("a1", "ferry_times", {"day": "Saturday"}),
        ("b2", "ferry_times", {"day": "Sunday – søndag"}),
    ]
    assert last.stop_reason == "tool_calls"
    assert events[0] == ThinkingDelta("**Two days**")


def test_arguments_in_pieces() -> None:
    """A call is read when it is complete, and sent back whole with its signature."""
    last = finished(stream_of("function_call_in_pieces"))
    (call,) = last.message.tool_calls
    days = [{"name": "Saturday"}, {"name": "Sunday"}]
    assert (call.arguments, call.problem) == ({"days": days, "limit": 3}, None)
    assert last.message.provider_data is not None
    (block,) = last.message.provider_data.blocks
    assert block["functionCall"] == {"name": "ferry_times", "args": {"days": days, "limit": 3}}
    assert block["thoughtSignature"]


@pytest.mark.parametrize("path", ["$[0", "$.a[99999]", "$.x.y", "$[0].z", "nonsense"])
def test_paths_that_lead_nowhere(path: str) -> None:
    """Such a call says so and is not run with half its arguments."""
    calls = FunctionCalls()
    begun = {"name": "f", "partialArgs": [{"jsonPath": "$.x", "numberValue": 1}]}
    calls.add({"functionCall": {**begun, "willContinue": True}})
    calls.add({"functionCall": {"partialArgs": [{"jsonPath": path, "boolValue": True}]}})
    assert calls.done[0].problem


def test_arguments_that_are_no_object() -> None:
    """The call says what is wrong and goes back in a form that the server takes."""
    calls = FunctionCalls()
    kept = calls.add({"functionCall": {"name": "f", "args": [1]}, "thoughtSignature": "cQ=="})
    assert "list" in (calls.done[0].problem or "")
    assert kept == {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "cQ=="}


def test_a_call_that_was_sent_twice() -> None:
    """It is one call, by the id of the server; many calls are as many."""
    calls = FunctionCalls()
    for number in [*range(500), 0, 499]:
        calls.add({"functionCall": {"name": "f", "id": f"c{number}"}})
    assert len(calls.done) == 500


def test_a_call_that_never_ended() -> None:
    """An answer that stops inside its call is not whole."""
    data = stream_of("function_call_in_pieces").split(b"\r\n\r\n")
    cut = b"\r\n\r\n".join(data[:2]) + b"\r\n\r\n" + chunks(said("", finishReason="STOP"))
    with pytest.raises(IncompleteError):
        decode(cut)


# --- ends ---


def test_a_cut_answer_keeps_its_text() -> None:
    """At the limit the text stays and the call is neither run nor sent back."""
    last = finished(stream_of("max_tokens_stream"))
    assert (last.stop_reason, last.message.tool_calls) == ("length", ())
    assert last.message.content == "The ferry leaves at seven and then it"
    assert last.message.provider_data is not None
    assert len(last.message.provider_data.blocks) == 1
    assert finished(stream_of("thoughts_only_max_tokens")).message.provider_data is None


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
    """Without any candidate: the reason in words, with those of the server if it has some."""
    last = finished(stream_of("blocked_prompt_stream"))
    assert last.stop_reason == "refusal"
    assert "the question was stopped" in last.message.content
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


def test_a_missing_signature_is_our_fault() -> None:
    """Asking again would not help."""
    with pytest.raises(ProviderError) as caught:
        decode(chunks({"finishReason": "MISSING_THOUGHT_SIGNATURE"}))
    assert not caught.value.retryable
    assert caught.value.remedy


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


def test_the_end_mark_of_others() -> None:
    """A server that speaks several interfaces may write it; it says nothing here."""
    data = chunks(said("High water", finishReason="STOP"))
    assert finished(data + b"data: [DONE]\n\n").message.content == "High water"
    with pytest.raises(IncompleteError):
        decode(chunks(said("High water")) + b"data: [DONE]\n\n")


def test_unknown_parts_pass() -> None:
    """They are kept for the next request, and a second candidate is not mixed in."""
    message = finished(stream_of("unknown_parts_stream")).message
    assert message.content == "It is 42."
    assert message.provider_data is not None
    assert message.provider_data.blocks[0] == {"quantumCall": {"a": 1}, "thoughtSignature": "cQ=="}
    assert len(message.provider_data.blocks) == 4


@pytest.mark.parametrize("name", ["search_stream", "function_calls_parallel_stream"])
def test_cut_after_every_byte(name: str) -> None:
    """Without its last chunk a stream is never an answer, wherever it broke off."""
    data = stream_of(name)
    final = data.rindex(b"data: ")
    for end in (*range(0, 400, 7), final // 2, final - 1, final, final + 40, len(data) - 20):
        decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
        assert not any(isinstance(e, Finished) for e in decoder.feed(data[:end]))
        with pytest.raises(IncompleteError) as caught:
            list(decoder.close())
        assert caught.value.retryable
    whole = data.rstrip()
    assert isinstance(decode(whole)[-1], Finished)


@each_row("body", [b"", b"[]", b"{}", b'[{"candidates": [', b"<html>", b"null"])
def test_bodies_that_are_no_answers(body: bytes) -> None:
    """An empty, half or foreign body is incomplete, not an empty answer."""
    for kind in ("application/json", "text/event-stream"):
        with pytest.raises(IncompleteError):
            decode(body, kind)


def test_framing_that_nobody_asked_for() -> None:
    """An array, an array without its end, and events under another content type are all read."""
    array = stream_of("json_array_stream")
    for data in (array, array.rstrip(b"]"), stream_of("max_tokens_stream")):
        assert finished(data, "application/json").message.content
    assert finished(array, "text/event-stream").message.content == "High water at 07:40."


@pytest.mark.parametrize(
    "event", [b"data: {nonsense\n\n", b"data: 3\n\n", b'data: {"candidates": 3}\n\n']
)
def test_garbage_in_the_stream(event: bytes) -> None:
    """A chunk that cannot be read is one clear error, after the text that came before it."""
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    events = iter(decoder.feed(chunks(said("Hi")) + event))
    assert next(events) == TextDelta("Hi")
    with pytest.raises(ProviderError) as caught:
        next(events)
    assert caught.value.code == "bad_response"


# --- errors ---

DAY = {"violations": [{"quotaId": "RequestsPerDay-FreeTier", "quotaValue": "20"}]}
NONE = {"violations": [{"quotaId": "TokensPerMinute", "quotaValue": "0"}]}
DELAY = {"retryDelay": "47.434392449s"}
BAD_KEY = {"reason": "API_KEY_INVALID"}


@each_row(
    ("status", "error", "code", "retryable", "says"),
    [
        (400, {"details": [BAD_KEY], "message": KEY}, "unauthorized", False, "GEMINI_API_KEY"),
        (401, {}, "unauthorized", False, "GEMINI_API_KEY"),
        (403, {"status": "PERMISSION_DENIED"}, "forbidden", False, "project"),
        (400, {"status": "FAILED_PRECONDITION"}, "forbidden", False, "billing"),
        (404, {"status": "NOT_FOUND"}, "model_not_found", False, "searchloop models"),
        (404, {}, "bad_url", False, "GEMINI_BASE_URL"),
        (429, {"details": [DELAY]}, "rate_limited", True, ""),
        (429, {"details": [DAY, DELAY]}, "quota", False, "billing"),
        (429, {"details": [NONE]}, "quota", False, "another model"),
        (429, {"details": "none"}, "rate_limited", True, ""),
        (400, {"message": "The input token count (9) exceeds the maximum number of tokens allowed"},
         "context_length", False, "new session"),
        (400, {"message": "Invalid value"}, "bad_request", False, ""),
        (408, {}, "server_error", True, ""),
        (500, {"status": "INTERNAL"}, "server_error", True, ""),
        (503, {"status": "UNAVAILABLE"}, "server_error", True, ""),
        (504, {}, "server_error", True, ""),
    ],
)  # fmt: skip
def test_what_a_status_means(
    status: int, error: dict[str, Any], code: str, retryable: bool, says: str
) -> None:
    """The vendor's cause in our words, who must act, and whether a retry helps; never a key."""
    body = json.dumps([{"error": {"code": status, **error}}]).encode() if error else b"<html>"
    found = CODEC.error(status, {}, body)
    assert (found.code, found.retryable, found.status) == (code, retryable, status)
    assert says in found.remedy
    assert found.remedy
    assert KEY not in str(found.as_dict())
    assert found.retry_after == (47.434392449 if error.get("details") == [DELAY] else None)


@each_row(
    "message",
    [
        "Tool use with function calling is unsupported by the model.",
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools.",
        "Built-in tools ({google_search}) and Custom tools cannot be combined.",
        "Search Grounding is not supported.",
        "google_search is not supported; please use google_search_retrieval instead.",
        "Unable to submit request because url context is not available.",
    ],
)
def test_a_refused_search_tool(message: str) -> None:
    """It is told apart, so that our own search can step in once."""
    body = json.dumps({"error": {"code": 400, "message": message}}).encode()
    assert isinstance(CODEC.error(400, {}, body), NativeSearchRejected)


def test_keys_are_not_quoted() -> None:
    """A vendor's message that repeats a key, ours or another, is cleaned and short."""
    message = f"You sent {KEY} and AIzaSomeOther123 at ?key=abcdef123 " + "x" * 1000
    found = CODEC.error(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert "AIza" not in found.message
    assert "abcdef123" not in found.message
    assert len(found.message) < 400


@each_row("size", [1, 5, 1000])
@each_row("name", ["error_event_stream", "error_bare_stream"])
def test_errors_inside_a_stream(name: str, size: int) -> None:
    """As an event or as bare JSON, after the text that came; they mean what a status would."""
    data = stream_of(name)
    decoder = CODEC.decoder(Request(MODEL, ()), "text/event-stream")
    events: list[StreamEvent] = []

    def read() -> None:
        for start in range(0, len(data), size):
            events.extend(decoder.feed(data[start : start + size]))
        events.extend(decoder.close())

    with pytest.raises(ProviderError) as caught:
        read()
    assert (caught.value.code, caught.value.retryable) == ("server_error", True)
    assert size == 1000 or events == [TextDelta("High water")]
