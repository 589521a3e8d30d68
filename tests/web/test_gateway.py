"""Other programs at /v1: three protocols, read by their makers' own clients and types."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import Message
from searchloop.protocols.kept import Kept
from tests.attached import png
from tests.fake_ollama import FakeOllama, Model, say
from tests.fakes import Received, Reply, json_reply
from tests.web.faces import (
    FACES,
    MODEL,
    SEARCHING,
    SWITCH,
    WEATHER,
    Face,
    called,
    desk,
    each_face,
    listing,
    model,
    said,
    typed,
    user,
)

API_ERRORS = (openai.APIError, anthropic.APIError)
OVER = (openai.RateLimitError, anthropic.RateLimitError)


@each_face
def test_a_program_asks_searches_and_runs_its_own_tools(tmp_path: Path, face: Face) -> None:
    """Whole and streamed alike; the search is cited, and a tool of the client never runs here."""
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        for stream in (False, True):
            hello = face.ask(at, user("Say hello."), stream=stream)
            assert (hello.text, hello.cited, hello.calls) == ("Hello.", (), ())
            search = "offline" if face.name == "responses" else "web"
            found = face.ask(at, user(SWITCH), stream=stream, search=search)
            assert found.text.endswith("may search [1].")
            assert len(found.cited) == 1
            assert found.cited[0].startswith("library://docs/")
            if face.name != "chat":
                assert found.kinds[0] in ("web_search_call", "server_tool_use")
            if found.extra:
                wanted = "offline" if search == "offline" else "local:library"
                assert found.extra["search_path"] == wanted
                assert found.extra["citations"][0]["marks"][0]["verdict"]
            asked = user("Is it warm?")
            handed = face.ask(at, asked, stream=stream, tool=True)
            assert handed.calls == (("get_weather", {"city": "Paris"}),)
            if handed.turn:
                history = [*asked, *handed.turn, face.result(handed.call, "sunny")]
                assert face.ask(at, history, stream=stream, tool=True).text.endswith("is warm.")
                assert [m["content"] for m in at.told if m["role"] == "tool"] == ["sunny"]
        assert at.running.house.log.sessions() == []


@each_face
def test_what_was_searched_before_a_call_is_not_lost(tmp_path: Path, face: Face) -> None:
    """The client sends back its call and the result; the sources found on the way are cited."""

    def thorough(asked: Received) -> Reply:
        if asked.method == "GET":
            return model(asked)
        results = [m["content"] for m in asked.json["messages"] if m["role"] == "tool"]
        if len(results) < 2:
            step = called("get_weather", city="Paris")
            return step if results else called("web_search", query="search switch")
        return said("It decides that [1], and it is warm." if "switch" in results[0] else "Lost.")

    with desk(tmp_path, thorough) as at:
        given: Any = {"stream": False, "search": "offline", "tool": True}
        first = face.ask(at, user(SWITCH), **given)
        history = [*user(SWITCH), *first.turn, face.result(first.call, "warm")]
        assert face.ask(at, history, **given).cited


@each_face
def test_many_pieces_come_whole(tmp_path: Path, face: Face) -> None:
    """However they are gathered on the way: signs, lines and marks of any script, in order."""
    pieces = [f'{n} «\n"\\ 漢 {chr(0x1F600 + n % 40)}» ' for n in range(600)]
    with desk(tmp_path, lambda asked: listing(asked) or said(*pieces)) as at:
        assert face.ask(at, user("All of it."), stream=True).text == "".join(pieces)


def test_responses_are_kept_and_forgotten(tmp_path: Path) -> None:
    """One goes on from another by its id; a deleted one, one not stored, or one of another program
    is not there."""
    with desk(tmp_path) as at:
        first = at.openai.responses.create(model=MODEL, input="Say hello.")
        assert at.openai.responses.retrieve(first.id).output_text == "Hello."
        with pytest.raises(openai.BadRequestError, match="no stream"):
            at.openai.responses.retrieve(first.id, stream=True)
        more: Any = {"input": "Again.", "previous_response_id": first.id}
        assert at.openai.responses.create(model=MODEL, **more).previous_response_id == first.id
        assert [m["role"] for m in at.told][-3:] == ["user", "assistant", "user"]
        named: Any = [*user("Hi"), {"type": "item_reference", "id": first.output[0].id}]
        at.openai.responses.create(model=MODEL, input=[*named, *user("Again.")])
        assert [m["content"] for m in at.told][-3:] == ["Hi", "Hello.", "Again."]
        at.openai.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError, match="no item"):
            at.openai.responses.create(model=MODEL, input=[*named, *user("Again.")])
        unkept = at.openai.responses.create(model=MODEL, input="Say hello.", store=False)
        third = at.openai.responses.create(model=MODEL, input="Say hello.")
        made = at.running.ask("POST", "/api/programs", {"name": "other", "models": ["*"]})[1]
        other = at.openai.with_options(api_key=made["key"])
        for name, client in ((first.id, at.openai), (unkept.id, at.openai), (third.id, other)):
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(name)
            with pytest.raises(openai.NotFoundError):
                client.responses.create(model=MODEL, input="x", previous_response_id=name)


@each_face
def test_a_file_in_the_result_of_a_tool_is_not_lost_in_silence(tmp_path: Path, face: Face) -> None:
    """The model is told that there was one, and the client that it had no effect."""
    given = {
        "chat": {"type": "file", "file": {"file_data": "data:;base64,eA=="}},
        "responses": {"type": "input_file", "file_data": "data:;base64,eA=="},
        "messages": {"type": "image", "source": {"type": "base64", "data": "eA=="}},
    }[face.name]
    with desk(tmp_path) as at:
        asked = user("Is it warm?")
        first = face.ask(at, asked, stream=False, tool=True)
        result = face.result(first.call, [given])  # type: ignore[arg-type]
        told = face.ask(at, [*asked, *first.turn, result], stream=False, tool=True)
        assert "A file was here" in at.told[-1]["content"]
        assert told.extra is not None
        assert told.extra["ignored"] == ["tool results.files"]


def test_a_call_has_the_name_that_the_client_gave_its_tool(tmp_path: Path) -> None:
    """Whatever stands in it; one in a namespace comes apart as it was put together, a custom one is
    called with a text."""
    spaced = [{"type": "custom", "name": "read"}, {**PLAIN, "name": "list"}]
    tools = [{**PLAIN, "name": "mcp__fs__read"}]
    tools += [{"type": "namespace", "name": "mcp__git", "tools": spaced}]
    rows: list[tuple[str, dict[str, str]]] = [
        ("mcp__fs__read", {"type": "function_call", "name": "mcp__fs__read"}),
        ("mcp__git__read", {"type": "custom_tool_call", "namespace": "mcp__git", "name": "read"}),
        ("mcp__git__list", {"type": "function_call", "namespace": "mcp__git", "name": "list"}),
    ]

    def obeys(asked: Received) -> Reply:
        last = {} if asked.method == "GET" else asked.json["messages"][-1]
        return listing(asked) or (
            said("So.") if last["role"] == "tool" else called(last["content"])
        )

    with desk(tmp_path, obeys) as at:
        for name, wanted in rows:
            body = FACES["responses"].body(name, tools=tools)
            [answer] = at.read(FACES["responses"], body)
            streamed = at.read(FACES["responses"], {**body, "stream": True})[-1]["response"]
            for [item] in (answer["output"], streamed["output"]):
                kept = {key: item.get(key) for key in ("type", "namespace", "name")}
                assert kept == {"namespace": None, **wanted}
            result = {"type": f"{wanted['type']}_output", "call_id": item["call_id"], "output": "y"}
            [told] = at.read(FACES["responses"], {**body, "input": [*user(name), item, result]})
            assert told["output"][0]["content"][0]["text"] == "So."
            assert at.told[-2]["tool_calls"][0]["function"]["name"] == name


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
BLOCK = {"type": "image", "source": {"type": "base64", "data": "eA=="}}
THOUGHT = typed("thinking", thinking="t")
CITED = {"type": "document", "source": {"type": "text", "data": "Tea."}, "citations": {"x": 1}}
# The protocol, a message of before, words of it that the model gets, what had no effect.
BEFORE: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("chat", {"role": "assistant", "refusal": "I will not."}, "I will not.", []),
    ("chat", {"role": "assistant", "content": [PICTURE]}, "A file was", ["messages.files"]),
    ("chat", {"role": "system", "content": [PICTURE]}, "A file was", ["messages.files"]),
    ("chat", {"role": "user", "content": "x", "name": "Ada"}, "x", ["messages.name"]),
    ("messages", {"content": [{"type": "compaction", "content": "She is Ada."}]}, "Ada", []),
    ("messages", {"content": [BLOCK, {"type": "text", "text": "b"}]}, "A file", ["messages.files"]),
    ("messages", {"role": "user", "content": [CITED]}, "Tea.", ["document.citations"]),
    ("messages", {"content": [THOUGHT, typed("text", text="b")]}, "b", ["messages.thinking"]),
    ("responses", {"type": "compaction", "encrypted_content": "x"}, "a", ["input.compaction"]),
]


def test_files_of_earlier_questions_are_seen_again(tmp_path: Path) -> None:
    """A client sends the whole chat each time, and the model gets all of it."""
    data = f"data:image/png;base64,{b64encode(png()).decode()}"
    seen = [{"type": "image_url", "image_url": {"url": data}}, {"type": "text", "text": "What?"}]
    read = [{"type": "file", "file": {"file_data": "data:;base64,QWRh", "filename": "a.txt"}}]
    asked = [{"role": "user", "content": seen}, {"role": "assistant", "content": "A cat."}]
    asked += [{"role": "user", "content": read}, {"role": "assistant", "content": "Ada."}]
    with desk(tmp_path) as at:
        body = FACES["chat"].body("x") | {"messages": [*asked, *user("Why?")]}
        status, told = at.running.ask("POST", FACES["chat"].path, body)
        assert (status, told["searchloop"]["ignored"]) == (200, [])
        assert at.told[-5]["content"][0]["image_url"]["url"] == data
        assert "Ada" in at.told[-3]["content"]


def test_what_stood_before_reaches_the_model_or_is_told_to_be_lost(tmp_path: Path) -> None:
    """Parts of earlier messages that have no place in the model's own."""
    with desk(tmp_path) as at:
        for name, message, words, lost in BEFORE:
            given = message if name == "responses" else {"role": "assistant", **message}
            field = "input" if name == "responses" else "messages"
            body = FACES[name].body("x") | {field: [*user("a"), given, *user("c")]}
            status, told = at.running.ask("POST", FACES[name].path, body)
            assert (status, told["searchloop"]["ignored"]) == (200, lost), (given, told)
            assert any(words in m["content"] for m in at.told), (given, at.told)


def test_tools_that_are_allowed_are_the_only_ones(tmp_path: Path) -> None:
    """A choice among several, in the words of each of OpenAI's protocols."""
    flat = [{**PLAIN, "name": name} for name in ("get_weather", "walk")]
    held = [{"type": "function", "function": {"name": tool["name"]}} for tool in flat]
    choice = {"mode": "required", "tools": held[:1]}
    with desk(tmp_path) as at:
        for name, tools, chosen in (
            ("chat", held, {"type": "allowed_tools", "allowed_tools": choice}),
            ("responses", flat, {"type": "allowed_tools", **choice, "tools": flat[:1]}),
        ):
            body = FACES[name].body("Hi", tools=tools, tool_choice=chosen)
            assert at.send("POST", FACES[name].path, body)[0] == 200
            sent = at.asks[-1].json
            assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather"]
            assert "Call a tool before you answer." in at.told[0]["content"]


def test_a_search_that_failed_has_a_result_of_its_own(tmp_path: Path) -> None:
    """Each use of the server's tool in Messages is followed by one: here, by an error."""
    env = {"SEARCH_ENGINES": "searxng", "SEARXNG_URL": "http://127.0.0.1:1"}
    for more in (env, {"SEARCH_BACKEND_URL": "http://127.0.0.1:1"}):
        with desk(tmp_path, **more) as at:
            for stream in (True, False):
                body = FACES["messages"].body(SWITCH, stream=stream, tools=[SEARCHING])
                events = at.read(FACES["messages"], body)
                blocks = [e["content_block"] for e in events if "content_block" in e]
                blocks = blocks or events[0]["content"]
                kinds = [block["type"] for block in blocks]
                assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
                assert blocks[1]["tool_use_id"] == blocks[0]["id"]
                assert blocks[1]["content"]["error_code"] == "unavailable"


def form(**schema: Any) -> dict[str, Any]:
    """The form of an answer, as Chat Completions has it; inside it that of the other two."""
    named = {"type": "json_schema", "name": "form", "schema": schema}
    return {"type": "json_schema", "json_schema": named}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = FACES["responses"].result("c", "x")
TWICE = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
NUMBER = {"type": "text", "text": 5}
PLAIN = {"type": "function", "name": "f", "parameters": WEATHER}
HELD = {"type": "function", "function": {"name": "f"}}
FLAT = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}


def chosen(function: Any) -> dict[str, Any]:
    """A choice among several tools, as Chat Completions has it."""
    held = {"mode": "auto", "tools": [{"type": "function", "function": function}]}
    return {"type": "allowed_tools", "allowed_tools": held}


# The protocol, what the smallest request has more, the status, words of the error.
slow = form(patternProperties={"^(a+)+$": {}})["json_schema"]
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("chat", {"messages": []}, 400, "is empty"),
    ("chat", {"model": "no:such"}, 404, "no provider"),
    ("chat", {"messages": "x"}, 400, "messages"),
    ("chat", {"n": 2}, 400, "n:"),
    ("chat", {"fly": 1}, 400, "fly"),
    ("chat", {"logprobs": True}, 400, "not given"),
    ("chat", {"messages": [FACES["chat"].result("c", "x")]}, 400, "no call 'c' waits"),
    ("chat", {"response_format": form(pattern="(?=a)b")}, 400, "linear time"),
    ("messages", {"output_config": {"format": slow}}, 400, "patternProperties"),
    ("responses", {"tools": [{"type": "file_search"}]}, 400, "file_search"),
    ("responses", {"previous_response_id": "resp_0"}, 404, "resp_0"),
    ("responses", {"background": True}, 400, "background"),
    ("responses", {"input": [{"type": "video"}]}, 400, "video"),
    ("messages", {"tool_choice": {"type": "tool", "name": "fly"}}, 400, "tool_choice"),
    ("messages", {"messages": [{"role": "king", "content": "x"}]}, 400, "king"),
    ("responses", {"input": " \n"}, 400, "is empty"),
    ("chat", {"messages": user("")}, 400, "is empty"),
    ("chat", {"messages": [{"role": "user", "content": [NUMBER]}]}, 400, "text"),
    ("responses", {"tools": [{"type": "web_search", "external_web_access": "no"}]}, 400, "access"),
    ("responses", {"tools": [{"type": "web_search", "external_web_access": 0}]}, 400, "access"),
    ("messages", {"tools": [{**SEARCHING, "max_uses": 0}]}, 400, "max_uses"),
    ("messages", {"tools": [{**SEARCHING, "max_uses": -2}]}, 400, "max_uses"),
    ("chat", {"tool_choice": "required"}, 400, "tool_choice"),
    ("messages", {"tool_choice": {"type": "any"}}, 400, "tool_choice"),
    ("responses", {"tools": [PLAIN], "tool_choice": {"type": "mcp"}}, 400, "mcp"),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": [TWICE, TWICE]}]}, 400, "same id"),
    ("responses", {"input": [CALL, CALL, RESULT]}, 400, "same id"),
    ("messages", {"messages": [{"role": "assistant", "content": [USE, USE]}]}, 400, "same id"),
    ("responses", {"input": [CALL, RESULT, RESULT]}, 400, "waits for this result"),
    ("responses", {"tools": [PLAIN, PLAIN]}, 400, "two of them are called f"),
    ("messages", {"tools": [SEARCHING, {**SEARCHING, "max_uses": 1}]}, 400, "two of them search"),
    ("messages", {"tools": [SEARCHING, {"name": "web_search"}]}, 400, "called web_search"),
    ("messages", {"tools": [{**SEARCHING, "user_location": {"country": "Oz land"}}]}, 400, "two l"),
    ("messages", {"tools": [{**SEARCHING, "blocked_domains": ["http://a.b"]}]}, 400, "Entry 1"),
    ("responses", {"previous_response_id": ["resp_0"]}, 400, "wrong type"),
    ("responses", {"text": {"format": {"type": "json_schema", "schema": True}}}, 400, "no object"),
    ("chat", {"tool_choice": {"type": "function", "function": {"name": "fly"}}}, 400, "'fly'"),
    ("chat", {"tools": [HELD], "tool_choice": chosen({"name": "g"})}, 400, "no tool 'g'"),
    ("responses", {"tools": [PLAIN], "tool_choice": FLAT}, 400, "no tool 'g'"),
    ("responses", {"tools": [{"type": "namespace", "tools": [PLAIN]}]}, 400, "no name"),
    ("responses", {"tools": [typed("namespace", name="n", tools=[SEARCHING])]}, 400, "web"),
    ("messages", {"messages": [{"role": "assistant", "content": [typed("x")]}]}, 400, "type 'x'"),
    ("chat", {"response_format": {"type": "json_schema", "json_schema": {}}}, 400, "no object"),
    ("chat", {"model": f"{MODEL}:online"}, 400, "cannot be told not to"),
    ("responses", {"input": [{"type": "item_reference", "id": "msg_0"}]}, 404, "no item 'msg_0'"),
]


def test_a_wish_that_cannot_be_met_is_the_protocols_error(tmp_path: Path) -> None:
    """The status and shape are the protocol's; the words name what to change."""
    with desk(tmp_path) as at:
        for name, more, status, words in REFUSED:
            body = {**FACES[name].body("x"), **more}
            got, told = at.running.ask("POST", FACES[name].path, body)
            assert (got, "type" in told) == (status, name == "messages"), (name, more, told)
            assert words in told["error"]["message"]
        assert at.running.ask("POST", "/v1/nothing", {})[0] == 404
        # An MCP stream on which nothing would ever come, and which would hold up the server's end.
        assert at.send("GET", "/mcp", Accept="text/event-stream")[0] == 405
        assert [r for r in at.server.requests if r.method != "GET"] == []


@each_face
def test_what_goes_wrong_at_the_provider_is_an_error(tmp_path: Path, face: Face) -> None:
    """A stream ends with it, an answer has its status: a refusal, and an answer without a word,
    which a program could not tell from one that says nothing. One that asks for fewer requests is
    told in the way that the client's library waits for."""
    faults = [json_reply({"error": "no"}, 400), said("")]
    with desk(tmp_path, lambda asked: listing(asked) or faults[0]) as at:
        for stream in (False, False, True, True):
            if face.name == "responses" and stream:  # `failed` is no exception of the client
                events = at.openai.responses.create(model=MODEL, input="Hi", stream=True)
                assert [event.type for event in events][-1] == "response.failed"
            else:
                with pytest.raises(API_ERRORS):
                    face.ask(at, user("Say hello."), stream=stream)
            faults.reverse()
        busy = {"error": {"message": "slow down"}}
        faults[0] = json_reply(busy, 429, {"retry-after-ms": "1"})
        with pytest.raises(OVER) as failed:
            face.ask(at, user("Hi"), stream=False)
        assert "rate_limit_error" in str(failed.value.body)


def test_an_answer_that_misses_its_schema_is_an_error(tmp_path: Path) -> None:
    """Its reader would take it for what was asked for."""
    more: Any = {"messages": user("Where?"), "response_format": form(**WEATHER)}
    with desk(tmp_path) as at, pytest.raises(openai.APIError, match="does not fit"):
        at.openai.chat.completions.create(model=MODEL, **more)


def test_a_field_without_effect_is_named(tmp_path: Path) -> None:
    """What no model of ours takes is told, and what says nothing is not; nor how long a model is to
    think that does not."""
    with desk(tmp_path) as at:
        without = {"presence_penalty": 1, "frequency_penalty": 0, "logit_bias": {"5": 1}}
        body = FACES["chat"].body("Hi", **without)
        _, told = at.running.ask("POST", "/v1/chat/completions", body)
        assert told["searchloop"]["ignored"] == ["presence_penalty", "logit_bias"]
        for name, more in THINKING.items():
            body = FACES[name].body("Hi", **more)
            told = at.running.ask("POST", FACES[name].path, body)[1]
            assert told["searchloop"]["ignored"][-1] == EFFORT[name]
            assert "effort" not in at.server.requests[-1].body.decode()


THINKING: dict[str, dict[str, Any]] = {
    "chat": {"reasoning_effort": "high"},
    "responses": {"reasoning": {"effort": "high"}},
    "messages": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
}
EFFORT = {
    "chat": "reasoning_effort",
    "responses": "reasoning.effort",
    "messages": "output_config.effort",
}


@each_face
def test_how_long_to_think_reaches_a_model_that_thinks(tmp_path: Path, face: Face) -> None:
    """In the words of its own API."""
    model = Model("gpt-oss:20b", ("completion", "tools", "thinking"))
    with (
        FakeOllama([model], [say("Hello.")]) as server,
        desk(tmp_path, OLLAMA_HOST=server.url) as at,
    ):
        body = face.body("Hi", **THINKING[face.name]) | {"model": "ollama:gpt-oss:20b"}
        status, told = at.running.ask("POST", face.path, body)
        assert (status, server.chats[-1]["think"]) == (200, "high")
        assert not set(told["searchloop"]["ignored"]) - {"thinking"}


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
        FACES["chat"].ask(at, user("Say hello."), stream=False)
    (line,) = [each for each in caplog.records if each.message == "client_answered"]
    told = line.__dict__["fields"]
    assert told["client"].startswith("OpenAI/Python")
    assert (told["model"], told["reason"], told["search_path"]) == (MODEL, "stop", "off")
    assert "hello" not in str(told).lower()


def test_models_and_tokens_are_told_to_both(tmp_path: Path) -> None:
    """Each model also with the suffixes that ask for a search; tokens are an estimate."""
    with desk(tmp_path) as at:
        names = [m.id for m in at.openai.models.list()]
        assert {"default+web", MODEL, f"{MODEL}+web", f"{MODEL}+offline"} <= set(names)
        assert [c.models.retrieve(MODEL).id for c in (at.openai, at.anthropic)] == [MODEL, MODEL]
        with pytest.raises(openai.NotFoundError, match=r"no model nobody:none\. GET /v1/models"):
            at.openai.models.retrieve("nobody:none")
        hello: Any = user("Say hello.")
        assert at.anthropic.messages.count_tokens(model=MODEL, messages=hello).input_tokens > 3
        with pytest.raises(anthropic.BadRequestError, match="messages: at least one"):
            at.anthropic.messages.count_tokens(model=MODEL, messages=[])
        with pytest.raises(anthropic.NotFoundError, match="no provider called 'nobody'"):
            at.anthropic.messages.count_tokens(model="nobody:x", messages=hello)
        assert FACES["chat"].ask(at, user(SWITCH), stream=False, search="offline").cited
