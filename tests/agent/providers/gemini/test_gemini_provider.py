"""Gemini over the wire: keys, model lists, retries, and where links lead."""

from __future__ import annotations

from searchloop.agent.providers.gemini.links import is_redirect, resolved, target
from searchloop.agent.types import (
    Citation,
    Finished,
    Mark,
    Message,
    Source,
)
from tests.agent.providers.vendors import GEMINI, KEY, NATIVE, USER
from tests.fakes import FakeServer, Received, Reply

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
