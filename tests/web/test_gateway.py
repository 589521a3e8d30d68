"""Other programs at /v1: three protocols, read by their makers' own clients and types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings import Environment
from searchloop.agent.types import Message
from searchloop.compose import open_services
from searchloop.protocols.kept import Kept
from searchloop.web.serve import OK
from tests.fakes import FakeServer, Received, Reply, json_reply, sse
from tests.tables import each_row
from tests.waiting import until
from tests.web.test_serve import Running

KEY = "a-token-long-enough-0123"
MODEL, DONE = "openai-chat:tin", b"data: [DONE]\n\n"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SWITCH = "What does the search switch decide?"


def chunk(**delta: Any) -> bytes:
    """A piece of a Chat Completions stream."""
    reason = delta.pop("reason", None)
    return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def said(*texts: str, reason: str = "stop") -> Reply:
    """An answer in pieces."""
    return Reply([*(chunk(content=text) for text in texts), chunk(reason=reason), DONE])


def called(name: str, **arguments: Any) -> Reply:
    """A call of a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return Reply([chunk(tool_calls=[made]), chunk(reason="tool_calls"), DONE])


def model(asked: Received) -> Reply:
    """A model that looks things up where it can, and otherwise says hello."""
    if asked.path.endswith("/models"):
        return json_reply({"data": [{"id": "tin", "object": "model"}]})
    body = asked.json
    last, tools = body["messages"][-1], {t["function"]["name"] for t in body.get("tools", ())}
    if last["role"] == "tool":
        searched = "search-switch" in last["content"]
        return said("It decides whether a turn ", "may search [1]." if searched else "is warm.")
    if "get_weather" in tools:
        return called("get_weather", city="Paris")
    if "web_search" in tools:
        return called("web_search", query="search switch")
    if "wait" in last["content"]:
        return Reply([chunk(content="Hel")], end="stall")
    return said("Hel", "lo.")


@dataclass
class Desk:
    """A running server, its fake model, and the clients of two vendors."""

    running: Running
    server: FakeServer
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic


@contextmanager
def desk(home: Path, replies: Callable[[Received], Reply] = model, **env: str) -> Iterator[Desk]:
    """Everything in place, and nothing left behind."""
    with FakeServer(replies) as server:
        url = f"{server.url}/v1"
        flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_TOKEN": KEY, "OPENAI_CHAT_BASE_URL": url}
        running = Running(open_services(Environment({"flag": {**flags, **env}})))
        base = running.serving.base
        try:
            yield Desk(
                running,
                server,
                openai.OpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0),
                anthropic.Anthropic(base_url=base, api_key=KEY, max_retries=0),
            )
        finally:
            assert running.stop() == OK


@dataclass(frozen=True)
class Told:
    """What a client read: text, cited addresses, calls as (name, arguments), kinds of its parts."""

    text: str
    cited: tuple[str, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()
    kinds: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None


Ask = Callable[..., Told]


def chat(
    at: Desk, question: Any, *, stream: bool, search: bool = False, tool: bool = False
) -> Told:
    """Asks by Chat Completions."""
    more: dict[str, Any] = {"web_search_options": {}} if search else {}
    if tool:
        function = {"name": "get_weather", "parameters": WEATHER}
        more["tools"] = [{"type": "function", "function": function}]
    asked = [{"role": "user", "content": question}] if isinstance(question, str) else question
    with_model = {"model": MODEL, "messages": asked, **more}
    if not stream:
        whole = at.openai.chat.completions.create(**with_model)
        message = whole.choices[0].message
        calls = [
            (c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()
        ]
        cited = [note.url_citation.url for note in message.annotations or ()]
        extra = whole.model_extra["searchloop"]
        return Told(message.content or "", tuple(cited), tuple(calls), (), extra)
    text, cited, calls = "", [], []
    for piece in at.openai.chat.completions.create(stream=True, **with_model):
        delta = piece.choices[0].delta
        text += delta.content or ""
        calls += [
            (c.function.name, json.loads(c.function.arguments)) for c in delta.tool_calls or ()
        ]
        notes = (delta.model_extra or {}).get("annotations", ())
        cited += [note["url_citation"]["url"] for note in notes]
    return Told(text, tuple(cited), tuple(calls))


def respond(
    at: Desk, question: Any, *, stream: bool, search: bool = False, tool: bool = False
) -> Told:
    """Asks by Responses."""
    tools: list[Any] = [{"type": "web_search", "external_web_access": False}] if search else []
    if tool:
        tools.append({"type": "function", "name": "get_weather", "parameters": WEATHER})
    asked = {"model": MODEL, "input": question, "tools": tools}
    if stream:
        with at.openai.responses.stream(**asked) as events:
            text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
            whole = events.get_final_response()
            assert text == whole.output_text
    else:
        whole = at.openai.responses.create(**asked)
    cited, calls = [], []
    for item in whole.output:
        if item.type == "message":
            cited += [note.url for part in item.content for note in part.annotations]
        elif item.type == "function_call":
            calls.append((item.name, json.loads(item.arguments)))
    kinds = tuple(item.type for item in whole.output)
    extra = (whole.model_extra or {}).get("searchloop")
    return Told(whole.output_text, tuple(cited), tuple(calls), kinds, extra)


def message(
    at: Desk, question: Any, *, stream: bool, search: bool = False, tool: bool = False
) -> Told:
    """Asks by Messages."""
    tools: list[Any] = [{"type": "web_search_20250305", "name": "web_search"}] if search else []
    if tool:
        tools.append({"name": "get_weather", "input_schema": WEATHER})
    asked = [{"role": "user", "content": question}] if isinstance(question, str) else question
    given: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "messages": asked, "tools": tools}
    if stream:
        with at.anthropic.messages.stream(**given) as events:
            whole: Any = events.get_final_message()
    else:
        whole = at.anthropic.messages.create(**given)
    text = "".join(block.text for block in whole.content if block.type == "text")
    cited = [c.url for b in whole.content if b.type == "text" for c in b.citations or ()]
    calls = [(b.name, b.input) for b in whole.content if b.type == "tool_use"]
    kinds = tuple(block.type for block in whole.content)
    return Told(
        text, tuple(cited), tuple(calls), kinds, (whole.model_extra or {}).get("searchloop")
    )


FACES = {"chat": chat, "responses": respond, "messages": message}
each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES)


@each_face
def test_a_program_asks_searches_and_runs_its_own_tools(tmp_path: Path, face: Ask) -> None:
    """Whole and streamed alike; the search is cited, and a tool of the client never runs here."""
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        for stream in (False, True):
            assert face(at, "Say hello.", stream=stream) == Told(
                "Hello.",
                kinds=() if face is chat else ("message",) if face is respond else ("text",),
                extra=None if stream and face is chat else ANYTHING,
            )
            found = face(at, SWITCH, stream=stream, search=True)
            assert found.text.endswith("may search [1].")
            assert found.cited == (found.cited[0],)
            assert found.cited[0].startswith("library://docs/")
            if face is not chat:
                assert found.kinds[0] in ("web_search_call", "server_tool_use")
            if found.extra:
                wanted = "offline" if face is respond else "local:library"
                assert found.extra["search_path"] == wanted
                assert found.extra["citations"][0]["marks"][0]["verdict"]
            handed = face(at, "Is it warm?", stream=stream, tool=True)
            assert handed.calls == (("get_weather", {"city": "Paris"}),)
        assert at.running.house.log.sessions() == []


class _Anything:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ANYTHING: Any = _Anything()
CALL = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
RESULTS: dict[str, list[Any]] = {
    "chat": [
        {"role": "user", "content": "Is it warm?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ],
    "responses": [
        {"role": "user", "content": "Is it warm?"},
        {"type": "function_call", "call_id": "call_1", **CALL},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    ],
    "messages": [
        {"role": "user", "content": "Is it warm?"},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "call_1",
                    "name": "get_weather",
                    "input": {"city": "Paris"},
                }
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}],
        },
    ],
}


@pytest.mark.parametrize("name", FACES)
def test_a_result_of_the_clients_tool_goes_on(tmp_path: Path, name: str) -> None:
    """The model sees its call and the client's result."""
    with desk(tmp_path) as at:
        assert FACES[name](at, RESULTS[name], stream=False, tool=True).text.endswith("is warm.")
        told = at.server.requests[-1].json["messages"]
        assert [m["content"] for m in told if m["role"] == "tool"] == ["sunny"]


@each_face
def test_what_was_searched_before_a_call_is_not_lost(tmp_path: Path, face: Ask) -> None:
    """The client sends back its call and the result; the sources found on the way are cited."""

    def thorough(asked: Received) -> Reply:
        if asked.method == "GET":
            return model(asked)
        told = asked.json["messages"]
        results = [m["content"] for m in told if m["role"] == "tool"]
        if not results:
            return called("web_search", query="search switch")
        if len(results) == 1:
            return called("get_weather", city="Paris")
        return said("It decides that [1], and it is warm." if "switch" in results[0] else "Lost.")

    with desk(tmp_path, thorough) as at:
        tool = {"name": "get_weather", "input_schema": WEATHER}
        if face is respond:
            asked: dict[str, Any] = {
                "model": MODEL,
                "tools": [
                    {"type": "web_search", "external_web_access": False},
                    {"type": "function", "name": "get_weather", "parameters": WEATHER},
                ],
            }
            first = at.openai.responses.create(input=SWITCH, **asked)
            call = first.output[-1]
            history: Any = [
                {"role": "user", "content": SWITCH},
                *(i.to_dict() for i in first.output),
            ]
            history.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": "warm"}
            )
            last = at.openai.responses.create(input=history, **asked)
            notes = [note.url for part in last.output[-1].content for note in part.annotations]
        elif face is chat:
            asked = {
                "model": f"{MODEL}+offline",
                "tools": [
                    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}
                ],
            }
            history = [{"role": "user", "content": SWITCH}]
            done = at.openai.chat.completions.create(messages=history, **asked).choices[0].message
            history += [
                done.to_dict(),
                {"role": "tool", "content": "warm", "tool_call_id": done.tool_calls[0].id},
            ]
            end = at.openai.chat.completions.create(messages=history, **asked).choices[0].message
            notes = [note.url_citation.url for note in end.annotations]
        else:
            asked = {"model": f"{MODEL}+offline", "max_tokens": 99, "tools": [tool]}
            history = [{"role": "user", "content": SWITCH}]
            block = at.anthropic.messages.create(messages=history, **asked)
            history.append({"role": "assistant", "content": [b.to_dict() for b in block.content]})
            result = {"type": "tool_result", "tool_use_id": block.content[-1].id, "content": "warm"}
            history.append({"role": "user", "content": [result]})
            end_ = at.anthropic.messages.create(messages=history, **asked)
            notes = [c.url for b in end_.content for c in b.citations or ()]
        assert notes


def test_responses_are_kept_and_forgotten(tmp_path: Path) -> None:
    """One goes on from another by its id; a deleted one, or one not stored, is not there."""
    with desk(tmp_path) as at:
        first = at.openai.responses.create(model=MODEL, input="Say hello.")
        assert at.openai.responses.retrieve(first.id).output_text == "Hello."
        at.openai.responses.create(model=MODEL, input="Again.", previous_response_id=first.id)
        told = at.server.requests[-1].json["messages"]
        assert [m["role"] for m in told][-3:] == ["user", "assistant", "user"]
        at.openai.responses.delete(first.id)
        unkept = at.openai.responses.create(model=MODEL, input="Say hello.", store=False)
        for name in (first.id, unkept.id):
            with pytest.raises(openai.NotFoundError):
                at.openai.responses.retrieve(name)


REFUSED = [
    ("/v1/chat/completions", {"model": MODEL, "messages": []}, 400, "is empty"),
    (
        "/v1/chat/completions",
        {"model": "no:such", "messages": [{"role": "user", "content": "x"}]},
        404,
        "no provider",
    ),
    ("/v1/chat/completions", {"model": MODEL, "messages": "x"}, 400, "messages"),
    (
        "/v1/chat/completions",
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "n": 2},
        400,
        "n:",
    ),
    (
        "/v1/chat/completions",
        {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "fly": 1},
        400,
        "fly",
    ),
    (
        "/v1/chat/completions",
        {"model": MODEL, "messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]},
        400,
        "no call",
    ),
    (
        "/v1/responses",
        {"model": MODEL, "input": "x", "tools": [{"type": "file_search"}]},
        400,
        "file_search",
    ),
    (
        "/v1/responses",
        {"model": MODEL, "input": "x", "previous_response_id": "resp_0"},
        404,
        "resp_0",
    ),
    ("/v1/responses", {"model": MODEL, "input": "x", "background": True}, 400, "background"),
    ("/v1/responses", {"model": MODEL, "input": [{"type": "video"}]}, 400, "video"),
    (
        "/v1/messages",
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "x"}],
            "tool_choice": {"type": "tool", "name": "fly"},
        },
        400,
        "tool_choice",
    ),
    ("/v1/messages", {"model": MODEL, "messages": [{"role": "king", "content": "x"}]}, 400, "king"),
    ("/v1/nothing", {"model": MODEL}, 404, "not served"),
]


@each_row("case", REFUSED)  # type: ignore[untyped-decorator]
def test_a_wish_that_cannot_be_met_is_the_protocols_error(tmp_path: Path, case: Any) -> None:
    """The status and shape are the protocol's; the words name what to change."""
    path, body, status, words = case
    with desk(tmp_path) as at:
        got, told = at.running.ask("POST", path, body)
        assert got == status
        assert words in told["error"]["message"]
        assert ("type" in told) == path.startswith("/v1/messages")
        assert at.server.requests == [] or all(r.method == "GET" for r in at.server.requests)


@each_face
def test_a_search_that_is_switched_off_is_an_error(tmp_path: Path, face: Ask) -> None:
    """Nothing is sent to the model, and nothing is answered in silence."""
    with desk(tmp_path, SEARCHLOOP_CLIENT_SEARCH="off") as at:
        refused = (openai.PermissionDeniedError, anthropic.PermissionDeniedError)
        with pytest.raises(refused, match="switched off"):
            face(at, SWITCH, stream=False, search=True)
        assert face(at, "Say hello.", stream=False).text == "Hello."


@each_face
def test_a_provider_that_is_down_is_told(tmp_path: Path, face: Ask) -> None:
    """A stream ends with the protocol's error, an answer has its status."""

    def down(asked: Received) -> Reply:
        listing = json_reply({"data": [{"id": "tin"}]})
        return listing if asked.method == "GET" else json_reply({"error": "no"}, 400)

    with desk(tmp_path, down) as at:
        for stream in (False, True):
            with pytest.raises((openai.APIError, anthropic.APIError, RuntimeError)):
                face(at, "Say hello.", stream=stream)


@each_face
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_without_a_word_is_an_error(tmp_path: Path, face: Ask, stream: bool) -> None:
    """A program could not tell it from an answer that says nothing."""

    def silent(asked: Received) -> Reply:
        return said("") if asked.method == "POST" else json_reply({"data": [{"id": "tin"}]})

    with desk(tmp_path, silent) as at:
        if face is respond and stream:  # its last event says `failed`, which is no exception
            events = at.openai.responses.create(model=MODEL, input="Hi", stream=True)
            assert [event.type for event in events][-1] == "response.failed"
            return
        with pytest.raises((openai.APIError, anthropic.APIError)):
            face(at, "Say hello.", stream=stream)


def test_an_answer_that_misses_its_schema_is_an_error(tmp_path: Path) -> None:
    """Its reader would take it for what was asked for."""
    form: Any = {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER}}
    asked: Any = [{"role": "user", "content": "Where?"}]
    with desk(tmp_path) as at, pytest.raises(openai.APIError, match="does not fit"):
        at.openai.chat.completions.create(model=MODEL, messages=asked, response_format=form)


def test_a_field_without_effect_is_named(tmp_path: Path) -> None:
    """What no model of ours takes is told, and what says nothing is not."""
    with desk(tmp_path) as at:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
        body |= {"presence_penalty": 1, "frequency_penalty": 0, "logit_bias": {"5": 1}}
        _, told = at.running.ask("POST", "/v1/chat/completions", body)
        assert told["searchloop"]["ignored"] == ["presence_penalty", "logit_bias"]


def test_kept_answers_are_bounded_by_their_size() -> None:
    """The oldest are forgotten first, and the newest is always there."""
    kept = Kept(most=1_000)
    for n, size in enumerate((400, 400, 400, 5_000)):
        kept.put(f"resp_{n}", [Message("user", "x" * size)], {})
        assert kept.take(f"resp_{n}")
        for gone in range(n - 1 if n < 3 else n):
            with pytest.raises(ConfigError):
                kept.take(f"resp_{gone}")


def test_a_run_of_a_program_is_told_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By the name that the program gives itself, with counts and without a word of content."""
    with caplog.at_level("INFO"), desk(tmp_path) as at:
        chat(at, "Say hello.", stream=False)
    (line,) = [each for each in caplog.records if each.message == "client_answered"]
    told = line.__dict__["fields"]
    assert told["client"].startswith("OpenAI/Python")
    assert (told["model"], told["reason"], told["search_path"]) == (MODEL, "stop", "off")
    assert "hello" not in str(told).lower()


@each_face
def test_a_client_that_leaves_stops_its_run(tmp_path: Path, face: Ask) -> None:
    """The connection to the provider is closed soon after."""
    bodies: dict[Any, tuple[str, dict[str, Any]]] = {
        chat: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "wait"}]}),
        respond: ("/v1/responses", {"input": "wait"}),
        message: ("/v1/messages", {"messages": [{"role": "user", "content": "wait"}]}),
    }
    with desk(tmp_path) as at:
        path, body = bodies[face]
        connection = at.running.connect()
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        given = json.dumps({"model": MODEL, "stream": True, **body})
        connection.request("POST", path, given, headers)
        assert connection.getresponse().read(20)
        until(lambda: at.server.requests)
        connection.close()
        until(lambda: at.server.requests[-1].gone.is_set())


def test_models_and_tokens_are_told_to_both(tmp_path: Path) -> None:
    """Each model also with the suffixes that ask for a search; tokens are an estimate."""
    with desk(tmp_path) as at:
        names = [m.id for m in at.openai.models.list()]
        assert {MODEL, f"{MODEL}+web", f"{MODEL}+offline"} <= set(names)
        hello: Any = [{"role": "user", "content": "Say hello."}]
        assert at.anthropic.messages.count_tokens(model=MODEL, messages=hello).input_tokens > 3
        suffixed = f"{MODEL}+offline"
        found = at.openai.chat.completions.create(
            model=suffixed, messages=[{"role": "user", "content": SWITCH}]
        )
        assert found.choices[0].message.annotations


def test_a_wrong_token_is_refused_in_the_protocols_shape(tmp_path: Path) -> None:
    """Both ways to send a key; the error names no other."""
    with desk(tmp_path) as at:
        base = at.running.serving.base
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{base}/v1", api_key="wrong", max_retries=0).models.list()
        status, told = at.running.ask(
            "POST", "/v1/messages", {}, Authorization="", **{"X-Api-Key": "no"}
        )
        assert (status, told["error"]["type"]) == (401, "authentication_error")
        assert at.running.ask("HEAD", "/", **{"X-Api-Key": KEY}, Authorization="")[0] == 200
