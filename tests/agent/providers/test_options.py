"""Options and schemas on the wire: each API's own names, and a sentence for what it has not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.calls.instructions import OPTIONS, Instructions
from searchloop.agent.calls.schema import is_strict
from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.providers import abilities_of, check_options
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Message, ToolSpec
from searchloop.agent.types.attachments import Attachment
from tests.agent.providers.vendors import BY_NAME, CHAT, using
from tests.fakes import FakeServer, json_reply
from tests.tables import each_row

VALUES = {"temperature": 0.2, "top_p": 0.9, "seed": 7, "stop": ["END"]}
EFFORT = {"effort": "low"}
STRICT = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
LOOSE = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}}
TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
MODELS = {
    "openai": "gpt-4.1",
    "openai-chat": "any",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-3-flash-preview",
    "xai": "grok-4.5",
    "ollama": "qwen3:8b",
}


def taken(name: str) -> Any:
    return providers.load(name, {}, Transport())


@each_row("name", [*MODELS, "builtin"])
@each_row("option", OPTIONS)
def test_an_option_is_taken_or_refused_by_name(name: str, option: str) -> None:
    """Before anything is sent."""
    provider = taken(name)
    own = Instructions.of(options={option: {**VALUES, "max_tokens": 50, "effort": "high"}[option]})
    thinks = name in ("gemini", "xai") or option != "effort"
    if option in abilities_of(provider).options and thinks:
        check_options(provider, own, MODELS[name])
        return
    with pytest.raises(ConfigError) as refused:
        check_options(provider, own, MODELS.get(name, "extractive"))
    assert option in refused.value.message
    assert name in refused.value.message


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        *((STRICT, True), (LOOSE, False), ({"type": "string"}, True), (None, False), ([], False)),
        ({**STRICT, "required": []}, False),
        ({**STRICT, "properties": {"name": {"type": "string", "format": "date"}}}, False),
    ],
)
def test_a_schema_is_enforced_to_the_letter_only_where_it_can_be(schema: Any, strict: bool) -> None:
    """A vendor refuses or rewrites the others."""
    assert is_strict(schema) is strict


@each_row(
    ("member", "words"),
    [
        ("response_format", "This response_format type is unavailable now"),
        ("response_format", "'json_schema' is not supported by this model"),
        ("stream_options", "Unknown field: stream_options"),
    ],
)
def test_a_server_is_asked_without_what_it_does_not_know(member: str, words: str) -> None:
    """Once: what was learnt and does not help is not tried again."""
    refused, request = json_reply({"error": {"message": words}}, 400), CHAT.request(schema=STRICT)
    with FakeServer(lambda _: refused) as server, pytest.raises(ProviderError):
        CHAT.stream(server, request)
    assert [member in received.json for received in server.requests] == [True, False]


@pytest.mark.integration
@pytest.mark.parametrize("name", MODELS)
def test_all_that_a_request_may_hold_fits_the_vendor_s_own_types(name: str) -> None:
    """Every option, how long to think, a form, and files of each kind that it reads.

    Anthropic's types are those of a version of its API that takes no sampling any more.
    """
    from ollama._types import ChatRequest  # the packages take seconds to load

    from tests.chaos.test_sdk_types import FITS, missing, plain

    vendor, able = BY_NAME[name], abilities_of(taken(name))
    options = {k: v for k, v in (VALUES | EFFORT).items() if k in able.options}
    kinds = sorted(using(name, {}, lambda provider: provider.abilities.files(MODELS[name])))
    files = tuple(Attachment("a", kind, 1, "0" * 64, data="aGk=") for kind in kinds)
    question = Message("user", "What is it?", attachments=files)
    for more in ({"options": options}, {"schema": STRICT}, {"tools": (TOOL,), "answer_now": True}):
        request = vendor.request(question, model=MODELS[name], max_output_tokens=50, **more)
        body = json.loads(vendor.codec.encode(request))
        if name == "ollama":
            known = plain(ChatRequest(**{k: v for k, v in body.items() if k != "truncate"}))
            assert not list(missing({**body, "truncate": None}, known))
        else:
            if name == "anthropic":
                body = {k: body[k] for k in body.keys() - {"temperature", "top_p"}}
            FITS["openai" if name == "xai" else name](body)
