"""Ollama: thinking, addresses, keys, and calls in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.providers.ollama.config import parse_address, read_config
from searchloop.agent.providers.ollama.response import OllamaCodec
from searchloop.agent.types import Message, ToolSpec
from tests.agent.providers.vendors import OLLAMA, USER
from tests.tables import each_row

ask, finished = OLLAMA.ask, OLLAMA.finished
END: dict[str, Any] = {"message": {"role": "assistant", "content": ""}, "done": True}


def codec(**env: str) -> OllamaCodec:
    """A codec with these settings."""
    return OllamaCodec(read_config(env))


def stream(*chunks: dict[str, Any]) -> bytes:
    """A stream of these chunks, ended as the server ends it."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in (*chunks, END))


# --- encoding ---------------------------------------------------------------------------------


def test_thinking_goes_back_inside_its_turn_only() -> None:
    """Thinking before a tool result is sent; that of an earlier turn or another model is not."""
    calls = [{"function": {"name": "f", "arguments": {}}}]
    made = finished(stream({"message": {"thinking": "Hm.", "tool_calls": calls}})).message
    result = Message("tool", "x", tool_call_id=made.tool_calls[0].id, tool_name="f")
    sent = ask(USER, made, result)["messages"]
    assert sent[1]["thinking"] == "Hm."
    later = ask(USER, made, result, Message("assistant", "Done."), USER)["messages"]
    assert "thinking" not in later[1]
    other = ask(USER, made, result, model="llama3.2")["messages"]
    assert "thinking" not in other[1]


# --- addresses --------------------------------------------------------------------------------


@each_row(
    ("given", "base"),
    [
        ("", "http://127.0.0.1:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:8080", "http://gpu-box:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("http://gpu-box", "http://gpu-box"),
        ("https://gpu-box", "https://gpu-box"),
        ("HTTP://gpu-box:80/", "http://gpu-box:80"),
        ("http://127.0.0.1:9999/v1", "http://127.0.0.1:9999/v1"),
        ("http://127.0.0.1:9999/a/b/", "http://127.0.0.1:9999/a/b"),
        ("gpu-box/ollama", "http://gpu-box:11434/ollama"),
        ("ollama.com", "https://ollama.com"),
        (' "gpu-box" ', "http://gpu-box:11434"),
        ("http://me:secret@gpu-box", "http://gpu-box"),
    ],
)
def test_where_ollama_is(given: str, base: str) -> None:
    """OLLAMA_HOST and OLLAMA_BASE_URL mean what they mean to Ollama's own tools."""
    assert parse_address(given).base == base
    assert codec(OLLAMA_BASE_URL=given).url(OLLAMA.request()) == f"{base}/api/chat"


@pytest.mark.parametrize(
    "given", ["ftp://x", "http://x:99999", "x:port", "http://[::1", "a b", "::1"]
)
def test_what_is_no_address(given: str) -> None:
    """A wrong OLLAMA_HOST is named, with an example of a right one."""
    with pytest.raises(ConfigError, match="OLLAMA_HOST") as caught:
        parse_address(given)
    assert "http://127.0.0.1:11434" in caught.value.remedy


def test_a_password_in_the_address_is_not_shown() -> None:
    """It becomes a header; what messages quote does not hold it."""
    assert codec(OLLAMA_HOST="http://me:secret@gpu-box").headers()["authorization"] == (
        "Basic bWU6c2VjcmV0"
    )
    with pytest.raises(ConfigError) as caught:
        parse_address("http://me:secret@gpu-box:bad")
    assert "secret" not in caught.value.message


KEYED = ["https://ollama.com", "ollama.com"]
UNKEYED = [
    *("http://ollama.com", "https://ollama.com.evil.example", "https://notollama.com", ""),
    *("https://gpu-box", "127.0.0.1:9"),
]


@each_row("host", [*KEYED, *UNKEYED])
def test_the_key_goes_only_where_it_belongs(host: str) -> None:
    """OLLAMA_API_KEY is for ollama.com over https, and for no other host."""
    sent = codec(OLLAMA_HOST=host, OLLAMA_API_KEY="k1").headers().get("authorization")
    assert (sent == "Bearer k1") is (host in KEYED)


def test_a_key_that_was_held_back_is_explained() -> None:
    """It is for another server than this one."""
    kept = codec(OLLAMA_HOST="https://gpu-box", OLLAMA_API_KEY="k1")
    assert "OLLAMA_HOST=https://NAME:PASSWORD@gpu-box" in kept.error(401, {}, b"{}").remedy


# --- calls in words ---------------------------------------------------------------------------

LOOKUP = ToolSpec(
    "web_search",
    "Search.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
WRITTEN = '<tool_call>\n{"name": "web_search", "arguments": {"query": "ferry"}}\n</tool_call>'


def test_a_call_in_the_thinking_alone_counts() -> None:
    """A model that thinks its call and says nothing has called; one that answers has not."""
    thought = {"message": {"content": "", "thinking": f"I need this.\n{WRITTEN}"}}
    (called,) = finished(stream(thought), tools=(LOOKUP,)).message.tool_calls
    assert called.name == "web_search"
    answered = stream(thought, {"message": {"content": "At 07:40."}})
    assert finished(answered, tools=(LOOKUP,)).message.tool_calls == ()
