"""Chat Completions: what is sent, how answers are read, settings, keys, and lists of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.providers.openai_chat import ChatCodec, create
from searchloop.agent.providers.openai_chat.models import find_server
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, ModelInfo, NativeSearch, Request, ToolCall
from tests.agent.providers.vendors import CHAT, USER, results, using
from tests.fakes import sse
from tests.tables import each_row

MODEL, CODEC, ask, stream_of = CHAT.model, CHAT.codec, CHAT.ask, CHAT.stream_of
decode, finished = CHAT.decode, CHAT.finished


SEARCHER = "gpt-5-search-api"
SEARCHERS = (
    *("gpt-4o-mini-search-preview-2025-03-11", "openai/gpt-4o-search-preview"),
    "perplexity/sonar-pro",
)


# --- requests ---


@each_row(
    ("model", "search", "code"),
    [
        *((name, None, "always_searches") for name in (SEARCHER, "tide/x:online", *SEARCHERS)),
        (MODEL, NativeSearch(), "no_native_search"),
        (SEARCHER, NativeSearch(allowed_domains=("a.example",)), "no_domain_filter"),
        (SEARCHER, NativeSearch(blocked_domains=("a.example",)), "no_domain_filter"),
        ("perplexity/sonar", NativeSearch(("a.example",)), "no_domain_filter"),
        ("sonar", NativeSearch(("a.example",), ("b.example",)), "no_domain_filter"),
    ],
)
def test_a_switch_that_cannot_be_kept(model: str, search: NativeSearch | None, code: str) -> None:
    """Off means off: a model that would search anyway is refused before anything is sent."""
    with pytest.raises(ConfigError) as caught:
        CODEC.encode(Request(model, (USER,), native_search=search))
    assert caught.value.code == code
    assert caught.value.remedy


# --- histories ---


def test_an_id_of_another_maker_that_was_used_already() -> None:
    """Each id names one call of the request, even if two makers chose the same."""
    own = finished(stream_of("tool_calls_parallel_stream")).message
    other = Message("assistant", "", tool_calls=(ToolCall("call_aa", "f", {}),))
    sent = ask(USER, own, *results(own), other, *results(other))["messages"]
    assert sent[-1]["tool_call_id"] not in ("call_aa", "call_bb")


def test_what_stands_beside_a_piece() -> None:
    """Groq says there why it stopped early, and Moonshot how much it took."""
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    counted = {**end, "usage": {"prompt_tokens": 9}}
    assert finished(sse({"choices": [counted]})).usage.input_tokens == 9
    with pytest.raises(ProviderError, match="over capacity"):
        decode(sse({"choices": [end], "x_groq": {"error": "over capacity"}}))


CHUNK = {"choices": [{"index": 0, "delta": {"content": "07:40"}, "finish_reason": "stop"}]}
OFFICIAL = "https://api.openai.com/v1"


def models(env: Mapping[str, str]) -> list[ModelInfo]:
    return using("openai-chat", env, lambda provider: provider.models())


@each_row(
    ("base", "usage", "cost"),
    [
        ("http://127.0.0.1:1/v1", {"prompt_tokens": 5}, 0.0),
        ("http://localhost:1/v1", {"cost": 0.25}, 0.25),
        ("https://api.openai.com/v1", {}, None),
        *(("https://api.openai.com/v1", {"cost": odd}, None) for odd in (float("nan"), -1, True)),
        ("http://10.0.0.7/v1", {}, None),
    ],
)
def test_what_an_answer_costs(base: str, usage: dict[str, Any], cost: float | None) -> None:
    """Nothing on this machine, unless the server says so; of other machines nobody knows."""
    decoder = ChatCodec(find_server({"OPENAI_CHAT_BASE_URL": base})).decoder(Request("m", (USER,)))
    *_, last = [*decoder.feed(sse({**CHUNK, "usage": usage})), *decoder.close()]
    assert isinstance(last, Finished)
    assert last.usage.cost_usd == cost


@each_row(
    ("env", "base", "key"),
    [
        ({}, "", ""),
        ({"OPENAI_CHAT_API_KEY": "own"}, "", "own"),
        ({"OPENAI_CHAT_BASE_URL": "http://h:1/v1"}, "http://h:1/v1", ""),
        ({"OPENAI_CHAT_BASE_URL": "http://h:1/v1", "OPENAI_CHAT_API_KEY": "own"}, None, "own"),
        ({"OPENAI_BASE_URL": "http://h:1/v1"}, "http://h:1/v1", "shared"),
        ({"OPENAI_BASE_URL": "http://h/v1", "OPENAI_CHAT_BASE_URL": "http://h:80"}, None, "shared"),
        ({"OPENAI_BASE_URL": "http://h:1/v1", "OPENAI_CHAT_BASE_URL": "http://h:2/v1"}, None, ""),
        ({"OPENAI_BASE_URL": "https://h/v1", "OPENAI_CHAT_BASE_URL": "http://h/v1"}, None, ""),
        ({"OPENAI_CHAT_BASE_URL": f"{OFFICIAL}/"}, None, "shared"),
        ({"OPENAI_CHAT_BASE_URL": "http://api.openai.com/v1"}, None, ""),
        ({"OPENAI_CHAT_BASE_URL": "https://api.openai.com.evil.example/v1"}, None, ""),
        ({"OPENAI_CHAT_BASE_URL": "http://[broken"}, None, ""),
    ],
)
def test_a_key_goes_only_where_it_belongs(env: dict[str, str], base: str | None, key: str) -> None:
    """The general key goes to OpenAI over https and to the origin that was set beside it."""
    server = find_server({"OPENAI_API_KEY": "shared", **env})
    assert server.key == key
    assert base is None or server.base == base
    assert "own" not in repr(server)


def test_nobody_set_it_up() -> None:
    """The picker and the error say which setting it needs; no request is made for that."""
    for env in ({}, {"OPENAI_API_KEY": "shared"}, {"OPENAI_CHAT_API_KEY": "own"}):
        (entry,) = models(env)
        assert (entry.available, entry.missing) == (False, "OPENAI_CHAT_BASE_URL")
        with pytest.raises(ConfigError) as caught:
            create(env, Transport()).check("m")
        assert (caught.value.code, caught.value.remedy) == ("missing_url", entry.remedy)
