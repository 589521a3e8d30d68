"""Gemini over the wire: keys, model lists, retries, and where links lead."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.providers.gemini import MODELS, create
from searchloop.agent.providers.gemini.links import is_redirect, resolved, target
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Citation,
    Finished,
    Mark,
    Message,
    ModelInfo,
    NativeSearch,
    Request,
    Source,
    StreamEvent,
)
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.tables import each_row

OURS = Path(__file__).resolve().parents[3] / "recordings" / "gemini"
KEY = "AIzaCanary0123456789abcdef"
MODEL = "gemini-2.5-flash"
USER = Message("user", "When is high water?")
GOOGLE = "https://vertexaisearch.cloud.google.com"
PATH = "/grounding-api-redirect/"


def stream_of(name: str) -> bytes:
    answer = json.loads((OURS / f"{name}.json").read_text("utf-8"))["exchanges"][0]["response"]
    data: bytes = answer["text"].encode()
    return data


def env(**values: str) -> Environment:
    return Environment({"environment": values})


def answer(chosen: Environment, request: Request) -> list[StreamEvent]:
    async def main() -> list[StreamEvent]:
        transport = Transport()
        try:
            events = providers.load("gemini", chosen, transport).stream(request)
            return [event async for event in events]
        finally:
            await transport.aclose()

    return asyncio.run(main())


def listed(**values: str) -> list[ModelInfo]:
    async def main() -> list[ModelInfo]:
        transport = Transport()
        models = await create(env(**values), transport).models()
        await transport.aclose()
        return models

    return asyncio.run(main())


def marks(*spans: tuple[int, int]) -> tuple[Mark, ...]:
    """Places without a quote."""
    return tuple(Mark(span) for span in spans)


def test_what_models_can_do() -> None:
    """By the longest known beginning of the name; newer ones are like the newest, others safe."""
    assert not MODELS.of("gemini-2.5-flash").can.tools_with_native_search
    assert MODELS.of("models/gemini-2.5-pro-preview-06").can.thinking
    assert not MODELS.of("gemini-2.5-flash").signs
    for name in ("gemini-3-flash-preview", "gemini-4.2-pro", "gemini-flash-latest"):
        assert MODELS.of(name).signs
        assert MODELS.of(name).can.tools_with_native_search
    assert not MODELS.of("gemma-3-27b-it").can.tools
    assert not MODELS.of("gemini-1.5-pro").can.native_search
    stranger = MODELS.of("stranger-1").can
    assert (stranger.tools, stranger.native_search, stranger.thinking) == (True, True, False)


def test_a_missing_key() -> None:
    """Said before anything is sent, unless the server is one of the user's own."""
    with pytest.raises(ConfigError) as caught:
        create(env(), Transport()).check(MODEL)
    assert "GEMINI_API_KEY" in caught.value.remedy
    create(env(GEMINI_BASE_URL="http://127.0.0.1:1/v1beta"), Transport()).check(MODEL)
    create(env(GOOGLE_API_KEY=KEY), Transport()).check(MODEL)


def test_models_without_a_key() -> None:
    """The picker still shows them, with what is missing."""
    models = listed()
    assert models
    assert {entry.missing for entry in models} == {"GEMINI_API_KEY"}
    assert all(entry.id.startswith("gemini:gemini-") for entry in models)


LISTED: dict[str, Any] = {
    "models": [
        {
            "name": "models/gemini-2.5-flash",
            "displayName": "Gemini 2.5 Flash",
            "inputTokenLimit": 4096,
            "supportedGenerationMethods": ["generateContent"],
        },
        {"name": "models/own-1"},
        {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
    ]
}


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        (json_reply(LISTED), ["own-1", "Gemini 2.5 Flash"]),
        (Reply([b"<html>"], 500), None),
        (json_reply([1]), None),
        (json_reply({"models": [1]}), None),
    ],
)
def test_models_of_a_server(reply: Reply, names: list[str] | None) -> None:
    """A server that lists its models is believed; one that cannot never breaks the picker."""
    with FakeServer([reply]) as server:
        models = listed(GEMINI_BASE_URL=f"{server.url}/v1beta", GEMINI_API_KEY=KEY)
    assert server.requests[0].path.partition("?")[0] == "/v1beta/models"
    assert server.requests[0].headers["x-goog-api-key"] == KEY
    assert [m.title for m in models] == names if names else len(models) > 3
    if names:
        assert models[1].capabilities.context == 4096


def test_a_question_over_the_wire() -> None:
    """Key in the header and not in the URL, one retry after the time that the server names."""
    body = json.loads((OURS / "error_429_minute.json").read_text("utf-8"))["exchanges"][0]
    body = body["response"]["body"]
    body["error"]["details"][1]["retryDelay"] = "0.001s"
    data = stream_of("search_stream")
    with FakeServer([json_reply(body, 429), Reply([data[:700], data[700:]])]) as server:
        chosen = env(GEMINI_API_KEY=KEY, GEMINI_BASE_URL=f"{server.url}/v1beta/")
        last = answer(chosen, Request(MODEL, (USER,), native_search=NativeSearch()))[-1]
    assert isinstance(last, Finished)
    first, second = server.requests
    assert first.body == second.body
    assert second.path == f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    assert second.headers["x-goog-api-key"] == KEY
    assert second.json["tools"] == [{"googleSearch": {}, "urlContext": {}}]
    # A server of one's own stands in the middle: Google is not asked behind its back.
    assert [c.title for c in last.message.citations] == [
        "tides.example",
        "harbour.example",
    ]


def test_an_empty_answer_is_asked_for_again() -> None:
    """An end without words or calls, of which nothing was shown, is not an answer."""
    replies = [Reply([stream_of("empty_stop")]), Reply([stream_of("max_tokens_stream")])]
    with FakeServer(replies) as server:
        chosen = env(GEMINI_BASE_URL=server.url)
        last = answer(chosen, Request(MODEL, (USER,)))[-1]
    assert isinstance(last, Finished)
    assert len(server.requests) == 2


def test_a_server_that_is_not_there() -> None:
    """The remedy names the setting that points to it."""
    with pytest.raises(ProviderError) as caught:
        answer(env(GEMINI_BASE_URL="http://127.0.0.1:9/v1beta"), Request(MODEL, (USER,)))
    assert caught.value.code == "unreachable"
    assert "GEMINI_BASE_URL" in caught.value.remedy


@each_row(
    ("reply", "code"),
    [
        (Reply([stream_of("search_stream")[:900]], end="cut"), "incomplete"),
        (Reply([stream_of("search_stream")[:900]]), "incomplete"),
        (Reply([stream_of("search_stream")[:900]], end="reset"), "incomplete"),
        (Reply([b"data: \xff\xfe\r\n\r\n"]), "bad_response"),
        (Reply([b"<html>"], 404), "bad_url"),
        (Reply([], 307, {"location": "http://127.0.0.1:9/"}), "bad_response"),
    ],
)
def test_faults_are_one_clear_error(reply: Reply, code: str) -> None:
    """Whatever happens on the way is told once, and the next question works."""
    with FakeServer([reply, Reply([stream_of("max_tokens_stream")])]) as server:
        chosen = env(GEMINI_BASE_URL=server.url)
        with pytest.raises(ProviderError) as caught:
            answer(chosen, Request(MODEL, (USER,)))
        assert isinstance(answer(chosen, Request(MODEL, (USER,)))[-1], Finished)
    assert caught.value.code == code
    assert caught.value.remedy


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
            own = stream_of("search_stream").decode().replace(GOOGLE, self.url)
            return Reply([own.encode()])
        name = request.path.removeprefix(PATH)
        location = self.locations.get(name, "")
        return Reply([], 302, {"location": location}) if location else Reply([b"?"], 200)

    def asked(self) -> list[Received]:
        return [request for request in self.requests if request.method == "GET"]


def searched(server: Redirecting, **values: str) -> Message:
    chosen = env(GEMINI_API_KEY=KEY, GEMINI_BASE_URL=f"{server.url}/v1beta", **values)
    last = answer(chosen, Request(MODEL, (USER,), native_search=NativeSearch()))[-1]
    assert isinstance(last, Finished)
    return last.message


def test_links_become_the_pages_behind_them() -> None:
    """Each is asked once, without the key; the page itself is not; both addresses are kept."""
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
    assert message.details["redirects"] == {
        url: f"{server.url}{PATH}{name}" for name, url in pages.items()
    }
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
