"""Gemini: what is sent, how answers are read, what their ends mean, and where links lead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import IncompleteError, NativeSearchRejected, ProviderError
from searchloop.agent.providers.gemini.grounding import AnswerParts
from searchloop.agent.providers.gemini.links import is_redirect, resolved, target
from searchloop.agent.providers.gemini.response import STUMBLED, WITHHELD
from searchloop.agent.types import (
    Citation,
    Finished,
    Mark,
    Message,
    NativeSearch,
    SearchFinished,
    Source,
    TextDelta,
    ToolSpec,
)
from tests.agent.providers.vendors import GEMINI, KEY, NATIVE, USER
from tests.fakes import FakeServer, Received, Reply
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


def test_a_call_that_was_sent_twice() -> None:
    """It is one call, by the id of the server; many calls are as many."""
    numbers = [*range(500), 0, 499]
    calls = [{"functionCall": {"name": "f", "id": f"c{number}"}} for number in numbers]
    message = finished(chunks({"content": {"parts": calls}, "finishReason": "STOP"})).message
    assert len(message.tool_calls) == 500


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


MODEL, ask, ours = GEMINI.model, GEMINI.ask, GEMINI.recorded
SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "additionalProperties": False,
}
FERRY = ToolSpec("ferry_times", "When ferries leave.", SCHEMA)


# --- requests ---


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("gemini-2.0-flash", [{"googleSearch": {}}]),
        ("gemini-2.5-pro", [{"googleSearch": {}, "urlContext": {}}]),
        (MODEL, [{"googleSearch": {}, "urlContext": {}}]),
    ],
)
def test_the_search_tool(model: str, tools: list[Any]) -> None:
    """Search, and reading of pages where the model can; the flag only where it is needed."""
    sent = ask(model=model, native_search=NativeSearch())
    assert sent["tools"] == tools
    assert "toolConfig" not in sent


def test_search_and_functions_together() -> None:
    """One tool object with the flag on newer models; an older one is not even asked."""
    sent = ask(tools=(FERRY,), native_search=NativeSearch())
    (tool,) = sent["tools"]
    assert set(tool) == {"googleSearch", "urlContext", "functionDeclarations"}
    assert sent["toolConfig"] == {"includeServerSideToolInvocations": True}
    with pytest.raises(NativeSearchRejected) as caught:
        ask(model="gemini-2.5-flash", tools=(FERRY,), native_search=NativeSearch())
    assert "local search" in caught.value.remedy


def test_what_this_search_cannot_do() -> None:
    """A limit to domains would be lost without a word, so it is refused."""
    for search in (NativeSearch(("a.example",)), NativeSearch((), ("b.example",))):
        with pytest.raises(NativeSearchRejected) as caught:
            ask(native_search=search)
        assert "domains" in caught.value.message


def test_thoughts_are_asked_for_where_they_exist() -> None:
    """A model without thinking would refuse the setting."""
    assert "generationConfig" not in ask(model="gemini-2.0-flash")
    assert "generationConfig" in ask(model="gemini-2.5-flash")
    assert "generationConfig" not in ask(model="stranger-1")


GOOGLE = "https://vertexaisearch.cloud.google.com"
PATH = "/grounding-api-redirect/"


def marks(*spans: tuple[int, int]) -> tuple[Mark, ...]:
    """Places without a quote."""
    return tuple(Mark(span) for span in spans)


def test_an_empty_answer_is_asked_for_again() -> None:
    """An end without words or calls, of which nothing was shown, is not an answer."""
    replies = [
        Reply([GEMINI.stream_of("empty_stop")]),
        Reply([GEMINI.stream_of("max_tokens_stream")]),
    ]
    with FakeServer(replies) as server:
        last = GEMINI.stream(server)[-1]
    assert isinstance(last, Finished)
    assert len(server.requests) == 2


# --- links ---


class Redirecting(FakeServer):
    """Answers a question with links of its own, and says where those lead."""

    def __init__(self, locations: dict[str, str]) -> None:
        self.locations = locations
        super().__init__(self.reply)

    def __enter__(self) -> Redirecting:
        super().__enter__()
        return self

    def reply(self, request: Received) -> Reply:
        if request.method == "POST":
            own = GEMINI.stream_of("search_stream").decode().replace(GOOGLE, self.url)
            return Reply([own.encode()])
        name = request.path.removeprefix(PATH)
        location = self.locations.get(name, "")
        return Reply([], 302, {"location": location}) if location else Reply([b"?"], 200)

    def asked(self) -> list[Received]:
        return [request for request in self.requests if request.method == "GET"]


def searched(server: Redirecting) -> Message:
    last = GEMINI.stream(server, GEMINI.request(native_search=NATIVE), key=KEY)[-1]
    assert isinstance(last, Finished)
    return last.message


def test_links_become_the_pages_behind_them() -> None:
    """Each is asked once, without the key; the page itself is not."""
    pages = {"AAtides": "https://tides.example/t?a=1", "BBharbour": "https://harbour.example/"}
    with Redirecting({**pages, "CCferry": "javascript:alert(1)"}) as server:
        message = searched(server)
    assert [(c.n, c.url, c.title) for c in message.citations] == [
        (1, pages["AAtides"], "tides.example"),
        (2, pages["BBharbour"], "harbour.example"),
    ]
    assert [(s.url, s.state, s.n) for s in message.sources] == [
        (pages["AAtides"], "cited", 1),
        (pages["BBharbour"], "cited", 2),
        (f"{server.url}{PATH}CCferry", "found", None),
    ]
    asked = server.asked()
    names = ("AAtides", "BBharbour", "CCferry")
    assert sorted(request.path for request in asked) == [f"{PATH}{name}" for name in names]
    assert not any("x-goog-api-key" in request.headers for request in asked)


def test_links_that_cannot_be_resolved() -> None:
    """They stay as they are; the answer comes all the same."""
    with Redirecting({"AAtides": "https://tides.example/"}) as server:
        message = searched(server)
    assert [c.url for c in message.citations] == [
        "https://tides.example/",
        f"{server.url}{PATH}BBharbour",
    ]


def test_two_links_to_one_page() -> None:
    """They are one source and one citation, with all places in order."""
    one, two, three = (f"{GOOGLE}{PATH}{n}" for n in "abc")
    message = Message(
        "assistant",
        "x" * 90,
        citations=(
            Citation(1, one, "t.example", marks=marks((0, 9), (40, 50))),
            Citation(2, two, "u.example", marks=marks((10, 20))),
            Citation(3, three, "t.example", marks=marks((30, 39), (40, 50))),
        ),
        sources=tuple(
            Source(u, "t.example", "cited", n) for n, u in enumerate((one, two, three), 1)
        ),
    )
    found = resolved(message, {one: "https://t.example/", three: "https://t.example/"})
    assert found.citations == (
        Citation(1, "https://t.example/", "t.example", marks=marks((0, 9), (30, 39), (40, 50))),
        Citation(2, two, "u.example (via Google)", marks=marks((10, 20))),
    )
    assert [(s.url, s.n) for s in found.sources] == [("https://t.example/", 1), (two, 2)]
    assert resolved(message, {}, mark=False) is message
    assert resolved(USER, {}) is USER


def test_what_is_a_redirect() -> None:
    """Only the provider's own host and path, and what they name must be a page."""
    assert is_redirect(f"{GOOGLE}{PATH}AA")
    assert not is_redirect(f"https://vertexaisearch.cloud.google.com.evil.example{PATH}AA")
    assert not is_redirect("https://www.google.com/search?q=weather")
    assert is_redirect(f"http://127.0.0.1:1{PATH}x", "http://127.0.0.1:1/v1beta")
    assert not is_redirect(f"http://127.0.0.1:2{PATH}x", "http://127.0.0.1:1/v1beta")
    assert not is_redirect(f"http://[{PATH}x", "http://127.0.0.1:1/v1beta")
    assert target("https://a.example/") == "https://a.example/"
    for wrong in (None, "", "/path", "file:///etc/passwd", "http://[", "https://x/" + "y" * 5000):
        assert target(wrong) is None
    assert target(f"{GOOGLE}{PATH}AA") is None
