"""What we send is what the vendors' own packages would let a program send.

Their request types are checked with pydantic, over conversations that hold everything we can say:
own and foreign answers, calls, failed calls, searches of both kinds, stops, every option. A field
that a type does not know is lost by validating, so what comes out is compared with what went in.
Where a type is known to be too strict or too lax, it is said here by name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ConfigError, NativeSearchRejected
from searchloop.agent.settings import Environment
from searchloop.agent.types import Message, NativeSearch, Request, ToolSpec
from tests.chaos import dialects
from tests.chaos.test_interleavings import Played, Turn, Walk

pytestmark = pytest.mark.integration

Body = dict[str, Any]
SAVE = ToolSpec(
    "save_note",
    "Keeps a note.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}, "tags": {"type": ["array", "null"]}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
SEARCH = NativeSearch(("a.example",), (), "DK", 3)


# --- the vendors' types ---


@cache
def adapter(name: str) -> Any:
    """The type of a streamed request; imported when first needed, because that takes seconds."""
    from pydantic import TypeAdapter

    if name == "openai":
        from openai.types.responses import response_create_params

        return TypeAdapter(response_create_params.ResponseCreateParamsStreaming)
    if name == "openai-chat":
        from openai.types.chat import completion_create_params

        return TypeAdapter(completion_create_params.CompletionCreateParamsStreaming)
    from anthropic import types

    if name == "anthropic block":
        return TypeAdapter(types.ContentBlockParam)
    return TypeAdapter(types.message_create_params.MessageCreateParamsStreaming)


def fits(name: str, body: Body) -> None:
    """Raises for a body that the type refuses, or of which it does not know a part."""
    lost = list(missing(body, plain(adapter(name).validate_python(body))))
    assert not lost, lost


def plain(value: Any) -> Any:
    """Validated data as JSON has it: iterables are validated only when they are read."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [plain(item) for item in value]


def missing(sent: Any, known: Any, at: str = "") -> Iterator[str]:
    """Where the two differ. A null means as much as nothing: answers hold some that come back."""
    if isinstance(sent, dict) and isinstance(known, dict):
        for key in {*sent, *known}:
            yield from missing(sent.get(key), known.get(key), f"{at}.{key}")
    elif isinstance(sent, list) and isinstance(known, list) and len(sent) == len(known):
        for number, pair in enumerate(zip(sent, known, strict=True)):
            yield from missing(*pair, at=f"{at}[{number}]")
    elif sent != known:
        yield f"{at}: {sent!r} became {known!r}"


def openai_fits(body: Body) -> None:
    """The Responses API.

    Too strict: `filters.blocked_domains` of the search tool is not in the type, though served.
    """
    for each in body.get("tools") or ():
        each.get("filters", {}).pop("blocked_domains", None)
    fits("openai", body)


def chat_fits(body: Body) -> None:
    """Chat Completions. Too strict: servers' own `reasoning_content` is not in the type."""
    for message in body["messages"]:
        message.pop("reasoning_content", None)
    fits("openai-chat", body)


def anthropic_fits(body: Body) -> None:
    """The Messages API.

    Too lax: what a response held may stand in a message as it is, with fields that no type knows.
    So each block is also held to the types for requests alone.
    """
    fits("anthropic", body)
    for message in body["messages"]:
        for block in message["content"]:
            fits("anthropic block", block)


def gemini_fits(body: Body) -> None:
    """The Gemini API, whose package calls all but the contents a config.

    Too lax: a part may hold several payloads at once.
    """
    from google.genai import types

    settings = dict(body.pop("generationConfig", {}))
    for content in body.pop("contents"):
        same(types.Content, content)
    same(types.GenerateContentConfig, {**body, **settings})


def same(model: Any, value: Body) -> None:
    """Whether a model of the package reads `value` and writes the same."""
    read = model.model_validate_json(json.dumps(value))
    written = read.model_dump(mode="json", by_alias=True, exclude_none=True)
    lost = list(missing(settled(value), settled(written)))
    assert not lost, lost


def settled(value: Any) -> Any:
    """Base64 in one alphabet and without padding: both are on the wire."""
    if isinstance(value, dict):
        return {
            key: item.replace("-", "+").replace("_", "/").rstrip("=")
            if key == "thoughtSignature"
            else settled(item)
            for key, item in value.items()
        }
    return [settled(item) for item in value] if isinstance(value, list) else value


FITS: dict[str, Callable[[Body], None]] = {
    "anthropic": anthropic_fits,
    "gemini": gemini_fits,
    "openai": openai_fits,
    "openai-chat": chat_fits,
}
EVERY = pytest.mark.parametrize("name", FITS)


# --- what we send ---


def turn(provider: str, *acts: str, search: str = "off", end: str = "thought") -> Turn:
    """A turn in agent mode with tools."""
    return Turn(provider, False, search, "agent", acts, end, tools=True, restart=False)


def walk(name: str) -> list[Turn]:
    """Own turns of every kind, and between them those of all others."""
    own = [
        turn(name),
        turn(name, "three calls", "broken call"),
        turn(name, "unknown tool", "our search", "our page", search="local"),
        turn(name, "search and call", "their search", search="auto", end="searched"),
        turn(name, "pause", search="auto", end="searched"),
        turn(name, search="auto", end="stop: searching"),
        turn(name, "call", end="stop: calling"),
        turn(name, end="crash: talking"),
        turn(name, search="auto"),
        replace(turn(name, search="native", end="searched"), tools=False),
        turn(name),
    ]
    others = [other for other in dialects.names() if other != name]
    foreign = [turn(other, "three calls", "their search", search="auto") for other in others]
    return [*own, *foreign, turn(name, "call", search="auto"), turn(name, "call"), turn(name)]


@EVERY
async def test_conversations(name: str, tmp_path: Path) -> None:
    """Every request of a long session, whoever took part in it."""
    sent: list[Body] = []
    session = Walk(tmp_path)
    try:
        for each in walk(name):
            await session.take(each)
            sent.extend(body for d, _, body in session.transport.sent if d.name == name)
    finally:
        await session.close()
    assert len(sent) >= 20
    for body in sent:
        FITS[name](body)


@EVERY
@pytest.mark.parametrize("searching", [SEARCH, SEARCH._replace(country=None)])
def test_options(name: str, searching: NativeSearch) -> None:
    """Every option that a request may have, with and without tools."""
    dialect = dialects.load(name)
    question = Message("user", "When is high water?")
    model = dialect.searcher
    requests = [
        Request(dialect.models[0], (question,), "Be brief.", (SAVE,), max_output_tokens=99),
        Request(dialect.models[0], (question,), "Be brief.", (SAVE,), answer_now=True),
        Request(model, (question,), native_search=NativeSearch()),
        Request(model, (question,), native_search=searching, session_id="s" * 80),
        Request(model, (question,), native_search=NativeSearch(("a.example", "b.example"))),
        Request(model, (question,), native_search=NativeSearch((), ("c.example",))),
    ]
    for request in requests:
        body = asyncio.run(body_of(name, request))
        assert body is not None or request.native_search not in (None, NativeSearch())
        if body is not None:
            FITS[name](body)


async def body_of(name: str, request: Request) -> Body | None:
    """The body that this provider sends, or None when it says that it cannot do that."""
    dialect = dialects.load(name)
    transport = Played({name: dialect})
    env = Environment({"flag": dialect.settings(f"http://127.0.0.1:9/{name}")})
    provider = providers.load(name, env, transport)
    try:
        async for _ in provider.stream(request):
            pass
    except (ConfigError, NativeSearchRejected):
        return None
    return transport.sent[0][2]


def test_the_types_are_read_strictly() -> None:
    """A wrong value and an unknown field are found, inside lists too; or all shows nothing."""
    body: Body = {"model": "m", "stream": True, "input": [{"role": "user", "content": "hi"}]}
    fits("openai", body)
    wrong = [
        {**body, "tools": [{"type": "function", "name": "f"}]},
        {**body, "tools": [{"type": "web_search", "size": "low"}]},
        {**body, "input": [{"role": "nobody", "content": "hi"}]},
        {**body, "store": "perhaps"},
    ]
    for each in wrong:
        with pytest.raises((ValueError, AssertionError)):
            fits("openai", each)
