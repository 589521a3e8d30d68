"""What we send is what the vendors' own packages would let a program send.

Their request types are checked with pydantic, over conversations that hold everything we can say:
own and foreign answers, calls, failed calls, searches of both kinds, stops, every option. A field
that a type does not know is lost by validating, so what comes out is compared with what went in.
Where a type is known to be too strict or too lax, it is said here by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chaos.test_interleavings import Turn, take_walk, turns

pytestmark = pytest.mark.integration

Body = dict[str, Any]

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


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(turns, min_size=1, max_size=7))
def test_conversations(home: Path, walk: list[Turn]) -> None:
    """Every request of any session, whoever took part in it."""

    def fits_too(name: str, body: Body) -> None:
        if name in FITS:
            FITS[name](json.loads(json.dumps(body)))

    take_walk(home, walk, fits_too)


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
