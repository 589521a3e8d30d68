"""Gemini: what is sent, how answers are read, what their ends mean, and where links lead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.providers.gemini.grounding import AnswerParts
from searchloop.agent.providers.gemini.links import is_redirect, resolved, target
from searchloop.agent.types import Citation, Finished, Mark, Message, NativeSearch, Source
from tests.agent.providers.vendors import FERRY, GEMINI, KEY, NATIVE, USER
from tests.fakes import FakeServer, Received, Reply
from tests.tables import each_row

stream_of, decode, finished = GEMINI.stream_of, GEMINI.decode, GEMINI.finished


def chunks(*candidates: dict[str, Any], **more: Any) -> bytes:
    found = [{"candidates": [candidate], **more} for candidate in candidates]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in found)


def said(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": [{"text": text} for text in texts]}, **more}


# --- searched answers ---


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


# --- requests ---


@each_row(
    ("more", "word"),
    [
        ({"native_search": NativeSearch(("a.example",))}, "domains"),
        ({"native_search": NativeSearch((), ("b.example",))}, "domains"),
        ({"native_search": NATIVE, "tools": (FERRY,), "model": "gemini-2.5-flash"}, "other tools"),
    ],
)
def test_what_this_search_cannot_do(more: dict[str, Any], word: str) -> None:
    """A limit to domains would be lost without a word, an older model not even asked."""
    with pytest.raises(NativeSearchRejected) as caught:
        GEMINI.ask(**more)
    assert word in caught.value.message
    assert "local search" in caught.value.remedy


GOOGLE = "https://vertexaisearch.cloud.google.com"
PATH = "/grounding-api-redirect/"


def marks(*spans: tuple[int, int]) -> tuple[Mark, ...]:
    """Places without a quote."""
    return tuple(Mark(span) for span in spans)


# --- links ---


def test_links_become_the_pages_behind_them() -> None:
    """Each is asked once, without the key; the page itself is not. One that leads nowhere stays."""
    pages = {"AAtides": "https://tides.example/t?a=1", "BBharbour": "https://harbour.example/"}
    links = {**pages, "CCferry": "javascript:alert(1)"}

    def reply(request: Received) -> Reply:
        if request.method == "POST":
            return Reply(GEMINI.stream_of("search_stream").replace(GOOGLE.encode(), url.encode()))
        location = links.get(request.path.removeprefix(PATH))
        return Reply([], 302, {"location": location}) if location else Reply([b"?"], 200)

    with FakeServer(reply) as server:
        url = server.url
        end = GEMINI.stream(server, GEMINI.request(native_search=NATIVE), key=KEY)[-1]
    assert isinstance(end, Finished)
    message = end.message
    assert [(c.n, c.url, c.title) for c in message.citations] == [
        (1, pages["AAtides"], "tides.example"),
        (2, pages["BBharbour"], "harbour.example"),
    ]
    assert [(s.url, s.state, s.n) for s in message.sources] == [
        (pages["AAtides"], "cited", 1),
        (pages["BBharbour"], "cited", 2),
        (f"{server.url}{PATH}CCferry", "found", None),
    ]
    asked = [request for request in server.requests if request.method == "GET"]
    names = ("AAtides", "BBharbour", "CCferry")
    assert sorted(request.path for request in asked) == [f"{PATH}{name}" for name in names]
    assert not any("x-goog-api-key" in request.headers for request in asked)


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
        Citation(2, two, "u.example", marks=marks((10, 20))),
    )
    assert [(s.url, s.n) for s in found.sources] == [("https://t.example/", 1), (two, 2)]
    assert resolved(message, {}) is message
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
