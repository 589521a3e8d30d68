"""Requests that are wrong, made by rule: each is refused in its protocol's shape, or met and told.

Nothing is left running behind one, no model is asked for one, and no field is ignored in silence.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import AgentError
from searchloop.agent.settings import Environment
from searchloop.compose import open_services
from searchloop.protocols import chat_completions, messages, responses
from searchloop.protocols.runs import ClientRuns
from tests.fakes import Received, Reply
from tests.waiting import until
from tests.web.faces import (
    DONE,
    FACES,
    KEY,
    MODEL,
    SEARCHING,
    SWITCH,
    TYPES,
    Desk,
    Face,
    called,
    chunk,
    desk,
    each_face,
    listing,
    model,
    said,
    tool_of,
    typed,
    user,
)
from tests.web.test_real_requests import SAMPLES, WRONG, mutated, shape

CODECS: dict[str, tuple[Any, Any]] = {
    "chat": (chat_completions, chat_completions.ChatEncoder),
    "responses": (responses, responses.ResponsesEncoder),
    "messages": (messages, messages.MessagesEncoder),
}
SAMPLE = {"chat": "opencode", "responses": "codex", "messages": "claude-code"}
HISTORY = ("messages", "input", "system", "instructions", "model")
ENDED = {
    "error": None,
    "reason": "stop",
    "stop_reason": "stop",
    "limit": None,
    "usage": {},
    "search_path": "off",
    "citations": [],
    "sources": [],
}
Read = tuple[str, str, set[str]]


async def read(runs: ClientRuns, name: str, body: dict[str, Any]) -> Read:
    """What a request comes to, what its answer repeats, and what it says had no effect."""
    codec, encoder = CODECS[name]
    asked = codec.decode(body)
    ready = await runs.ready(asked.wish)
    asked = asked._replace(ignored=(*asked.ignored, *ready.ignored))  # as the gateway does
    made = encoder(asked)
    frames = [frame[1] for frame in (*made.begin(), *made.take("run_finished", ENDED))]
    sent = json.dumps(frames[0], ensure_ascii=False).encode("utf-8", "replace")
    TYPES[name][0].validate_json(sent, strict=True)
    shown = re.sub(r'"(id|created\w*|completed_at)": ("[^"]*"|\d+)', "", json.dumps(frames))
    come_to = (asked.stream, ready.wish, [m.content for m in ready.messages])
    return repr(come_to), shown, {*asked.ignored}


@pytest.mark.parametrize("name", CODECS)
def test_no_field_is_wrong_in_silence(tmp_path: Path, name: str) -> None:
    """Each part of a rich request has another type or is not there: it is read, or refused with
    words; the answer to what is read is as the vendor's types want it. A wrong field alone is
    refused by its name, has an effect, or is told to have none."""
    flags = {"SEARCHLOOP_HOME": str(tmp_path), "OPENAI_CHAT_BASE_URL": "http://127.0.0.1:1"}
    services = open_services(Environment({"flag": flags}))
    codec, base = CODECS[name][0], FACES[name].body("hi")
    rich = {**copy.deepcopy(SAMPLES[SAMPLE[name]][1]), "model": MODEL}
    known = dict.fromkeys((*codec._MET, *codec._WITHOUT_EFFECT))
    counts = {"read": 0, "refused": 0}

    async def outcome(runs: ClientRuns, body: dict[str, Any]) -> Read | AgentError:
        try:
            found: Read | AgentError = await read(runs, name, body)
        except AgentError as error:
            found = error
        counts["refused" if isinstance(found, AgentError) else "read"] += 1
        return found

    async def tried() -> list[str]:
        runs, silent = ClientRuns(services), []
        before = await read(runs, name, base)
        for wrong in mutated(rich, lambda new: new):
            if isinstance(wrong, dict):
                await outcome(runs, wrong)
        for field, wrong in ((f, w) for f in known for w in WRONG if f not in HISTORY and w):
            found = await outcome(runs, {**base, field: wrong})
            if isinstance(found, AgentError):
                told = getattr(found, "param", field) == field or field in found.message
            else:
                told = any(each.partition(".")[0] == field for each in found[2])
                told = told or found[:2] != before[:2]
            if not told and (field, wrong) != ("store", True):  # which it is by itself
                silent.append(f"{field}={wrong!r}: {found}")
        await services.runner.aclose()
        return silent

    assert asyncio.run(tried()) == []
    services.close()
    assert min(counts.values()) > 50


SOFTLY = {"search_context_size": "low"}
NEAR = typed("approximate", city="Oslo")
AROUND = typed("approximate", approximate={"city": "Oslo"})
REGION = typed("approximate", region="Oslo")
INSIDE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "chat": (
        {
            "stream_options": {"include_obfuscation": True},
            "web_search_options": {**SOFTLY, "user_location": AROUND},
            "parallel_tool_calls": False,
            "tools": [typed("function", function={"name": "f", "strict": True})],
        },
        {"stream_options.include_obfuscation", "web_search_options.search_context_size"}
        | {"approximate.city", "parallel_tool_calls", "tools.strict"},
    ),
    "responses": (
        {
            "text": {"verbosity": "low"},
            "reasoning": {"summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "parallel_tool_calls": False,
            "tools": [
                typed("custom", name="c", format={"type": "grammar"}),
                typed("web_search", user_location=NEAR, filters={"languages": ["de"]}, **SOFTLY),
            ],
        },
        {"text.verbosity", "reasoning.summary", "include.reasoning.encrypted_content"}
        | {"user_location.city", "filters.languages", "tools.search_context_size"}
        | {"parallel_tool_calls", "tools.format"},
    ),
    "messages": (
        {
            "output_config": {"task_budget": 5},
            "tool_choice": typed("auto", disable_parallel_tool_use=True),
            "tools": [
                {"name": "f", "strict": True},
                {**SEARCHING, "user_location": REGION, "defer_loading": True},
            ],
        },
        {"output_config.task_budget", "user_location.region", "tools.defer_loading"}
        | {"tool_choice.disable_parallel_tool_use", "tools.strict"},
    ),
}


@each_face
def test_a_field_inside_another_is_told_too(tmp_path: Path, face: Face) -> None:
    """What has no effect there is named, and an answer comes."""
    more, names = INSIDE[face.name]
    with desk(tmp_path, SEARCH_ENGINES="library") as at:
        status, told = at.running.ask("POST", face.path, {**face.body("Hi"), **more})
        assert (status, set(told["searchloop"]["ignored"]) & names) == (200, names)


def searched(*texts: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of one step: its maker's search between each two texts, a mark in the last."""
    for number, text in enumerate(texts):
        if number:
            about = {"query": "q", "by": "native:x", "status": "ok"}
            yield from (("search_started", about), ("search_finished", about))
        if text:
            yield "text_delta", {"text": text}
    whole = "".join(texts)
    mark = {"span": [whole.index("["), whole.index("]") + 1], "verdict": "unread"}
    cited = {"url": "https://a.example", "title": "A", "marks": [mark]}
    yield "message", {"text": whole, "citations": [cited], "tool_calls": []}
    yield "run_finished", ENDED


@pytest.mark.parametrize("stream", [True, False])
def test_texts_around_a_search_stand_once(stream: bool) -> None:
    """In their order, each mark in the text that holds it, at its place there."""
    for texts in (("I look. ", "It is [1]."), ("", "It is [1]."), ("It is [1]. ", "Yes."),
                  ("It is [1].", ""), ("One. ", "Two. ", "It is [1]. ")):  # fmt: skip
        wanted = [text for text in texts if text]
        marked = [("[1]" in text) for text in wanted]
        for name, (codec, encoder) in CODECS.items():
            made = encoder(codec.decode(FACES[name].body("hi", stream=stream)))
            frames = [*made.begin(), *(f for event in searched(*texts) for f in made.take(*event))]
            for _, data in frames:
                TYPES[name][0].validate_json(json.dumps(data), strict=True)
            whole = made.whole()
            if name == "responses":
                parts = [part for item in whole["output"] for part in item.get("content", ())]
                notes = [
                    [(n["start_index"], n["end_index"]) for n in p["annotations"]] for p in parts
                ]
                places = [[(t.index("["), t.index("]") + 1)] if "[" in t else [] for t in wanted]
                assert ([part["text"] for part in parts], notes) == (wanted, places)
                done = [data["text"] for type, data in frames if type.endswith("output_text.done")]
                assert done == wanted
            elif name == "messages":
                parts = [block for block in whole["content"] if block["type"] == "text"]
                assert [part["text"] for part in parts] == wanted
                assert ["citations" in part for part in parts] == marked
            else:
                assert whole["choices"][0]["message"]["content"] == "".join(texts)


def bodies(face: Face) -> Iterator[tuple[str, bytes, set[int]]]:
    """Bodies that are wrong or too much, and the status of each."""
    whole = json.dumps(face.body("Hi")).encode()
    history = "input" if face.name == "responses" else "messages"
    deep = {"type": "object"}
    for _ in range(400):
        deep = {"type": "object", "properties": {"a": deep}}

    def given(**more: Any) -> bytes:
        return json.dumps({**face.body("Hi"), **more}).encode()

    for body in (b"", b"{", b"[]", b"5", b"null", b'"x"', b"\xff\xfe", whole[:-1], whole + b"x"):
        yield "no JSON object", body, {400}
    yield "deep JSON", b'{"a":' * 100_000, {400}
    yield "deep lists", b"[" * 100_000 + b"]" * 100_000, {400}
    yield "a deep schema", given(tools=[tool_of(face.name, deep)]), {200, 400}
    yield "50 MB", b" " * 50_000_000, {413}
    yield "2 MB without a file", b'{"a":"' + b"x" * 2_000_000 + b'"}', {400, 413}
    yield "a huge string", given(**{history: user("x" * 3_000_000)}), {200, 400, 413}
    yield "10,000 messages", given(**{history: user("Hi") * 10_000}), {200}
    yield "10,000 unknown fields", given(**{f"f{n}": n for n in range(10_000)}), {400}
    yield "an unknown model", given(model="nobody:x"), {404}
    yield "a model without a provider", given(model="no such"), {400, 404}
    yield "a lone surrogate", given(**{history: user("\ud800")}), {400}
    yield "a key twice", whole[:-1] + b',"model":"x"}', {400}
    yield "no number", given(temperature=float("nan")), {400}
    yield "no messages", given(**{history: []}), {400}


@each_face
def test_a_body_that_is_wrong_or_too_much(tmp_path: Path, face: Face) -> None:
    """By a connection of its own, as clients send it; the server answers the next one."""
    with desk(tmp_path) as at:
        for what, body, statuses in bodies(face):
            status, _, raw = at.send("POST", face.path, body)
            assert status in statuses, (what, status, raw[:300])
            if status >= 400:
                assert shape(face.path)(json.loads(raw)), (what, raw[:300])
        assert face.ask(at, user("Say hello."), stream=False).text == "Hello."


@each_face
def test_odd_headers_and_versions(tmp_path: Path, face: Face) -> None:
    """A wrong token, a body of another kind, a version of tomorrow, two keys that differ; and what
    is null, or what a vendor's client sends by default, says nothing."""
    usual = {"logprobs": False, "modalities": ["text"]} if face.name == "chat" else {}
    body = json.dumps(face.body("Hi", fly=None, tools=None, tool_choice=None, **usual)).encode()
    with desk(tmp_path) as at:
        for status, more in (
            (401, {"Authorization": "Bearer wrong"}),
            (401, {"Authorization": "Basic eDp5"}),
            (401, {"Authorization": "", "x-api-key": "wrong"}),
            (200, {"x-api-key": "wrong"}),
            (200, {"Authorization": "Bearer wrong", "x-api-key": KEY}),
            (415, {"Content-Type": "text/plain"}),
            (403, {"Origin": "https://evil.example"}),
            (200, {"Authorization": "", "x-api-key": KEY}),
            (200, {"anthropic-version": "2099-01-01", "anthropic-beta": "tomorrow-2099-01-01"}),
            (200, {"OpenAI-Beta": "tomorrow=v9", "OpenAI-Organization": "org"}),
        ):
            got, _, raw = at.send("POST", face.path, body, **more)
            assert got == status, (more, raw[:200])
            assert status == 200 or shape(face.path)(json.loads(raw)), (more, raw[:200])
        for key in ({}, {"Authorization": "", "x-api-key": KEY}):  # an agent looks first
            assert at.running.ask("HEAD", "/", **key)[0] == 200


def begun(at: Desk, face: Face, text: str, link: socket.socket) -> None:
    """Sends a request for a stream on a connection that stays open."""
    port, body = at.running.serving.access.port, json.dumps(face.body(text, stream=True)).encode()
    head = f"POST {face.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    link.settimeout(90)
    link.connect(("127.0.0.1", port))
    link.sendall(f"{head}{kind}Authorization: Bearer {KEY}\r\n\r\n".encode() + body)


@each_face
def test_a_client_that_hangs_up_at_any_event_leaves_nothing(tmp_path: Path, face: Face) -> None:
    """After each event of a stream in turn, and before the first; no run goes on."""
    with desk(tmp_path) as at:
        for events in range(6):
            with socket.socket() as link:
                begun(at, face, "wait", link)
                until(lambda events=events: len(at.asks) > events)
                seen = b""
                while seen.count(b"\n\n") < events and (events < 3 or b"Hel" not in seen):
                    seen += link.recv(4096)
        until(lambda: all(each.gone.is_set() for each in at.asks))
        assert face.ask(at, user("Say hello."), stream=True).text == "Hello."


@each_face
def test_a_client_that_reads_slowly_or_sends_twice_gets_all(tmp_path: Path, face: Face) -> None:
    """1 MB through a small window; and the same request twice at once is two answers."""
    pieces = ["x" * 4000] * 250
    with (
        desk(tmp_path, lambda asked: listing(asked) or said(*pieces)) as at,
        socket.socket() as one,
        socket.socket() as other,
    ):
        for link in (one, other):
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            begun(at, face, "All", link)
        until(lambda: len(at.asks) == 2)
        for link in (one, other):
            got = bytearray()
            while piece := link.recv(65_536):
                got += piece
            assert got.count(b"x") >= 1_000_000
            assert got.rstrip().endswith(b"0")


# How each kind of answer is read by the vendors' own types, strictly.


def thinking(asked: Received) -> Reply:
    """A model that thinks, then says what it is asked for."""
    if models := listing(asked):
        return models
    words = str(asked.json["messages"][-1]["content"])
    if "think" in words:
        return Reply(
            [chunk(reasoning_content="Hm."), chunk(content="So."), chunk(reason="stop"), DONE]
        )
    if "cut" in words:
        return said("Half of", reason="length")
    if "refuse" in words:
        return said("I will", reason="content_filter")
    if "both" in words:
        return called("get_weather", city="Oslo")
    return model(asked)


ASKED: dict[str, dict[str, Any]] = {
    **{text: {} for text in ("Say hello.", "think", "cut", "refuse")},
    SWITCH: {"search": "offline"},
    "both": {"tool": True},
}


@each_face
def test_every_event_is_read_by_the_vendors_types(tmp_path: Path, face: Face) -> None:
    """Answers, thinking, searches, tools, cut and refused ones, whole and streamed: no field is
    missing or of another type."""
    kinds = set[str]()
    with desk(tmp_path, thinking, SEARCH_ENGINES="library") as at:
        for text, wish in ASKED.items():
            more: dict[str, Any] = {"tools": [tool_of(face.name)]} if wish.get("tool") else {}
            more |= {"model": f"{MODEL}+offline"} if wish.get("search") else {}
            at.read(face, face.body(text, **more))
            more |= {"stream_options": {"include_usage": True}} if face.name == "chat" else {}
            events = at.read(face, face.body(text, stream=True, **more))
            kinds |= {event.get("type", "chunk") for event in events}
    assert len(kinds) >= {"chat": 1, "responses": 14, "messages": 6}[face.name], kinds
