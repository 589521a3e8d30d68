"""A server that does not know the provider's own search tool, in whatever words it says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import NativeSearchRejected, ProviderError
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Message, NativeSearch, Request
from tests.fakes import FakeServer, json_reply
from tests.tables import each_row

MODELS = {
    "openai": "gpt-6-luna",
    "gemini": "gemini-3.5-flash",
    "anthropic": "claude-sonnet-5-5",
}
BLAMES: list[Any] = [
    {"error": {"message": "Invalid value.", "param": "tools[0].type"}},
    {"error": {"message": "Unsupported tool type"}},
    {"error": {"message": "('body', 'tools', 0, 'type'): \"Input should be 'function'\""}},
    {"error": {"message": "Unknown tool"}},
    {"error": {"message": "This model does not support internet search."}},
    {"error": {"message": "tools.0.custom.input_schema: Field required"}},
    {"error": {"message": "Missing required parameter: 'tools[0].function'."}},
    {"error": {"message": "unknown variant `web_search`, expected `function` at line 1 column 88"}},
    {"error": {"message": "Invalid JSON payload. Unknown name \"googleSearch\" at 'tools[0]'"}},
    {"error": {"message": "Only function tools are allowed here."}},
    {"error": {"message": "Unknown parameter: 'tools[0].user_location'."}},
    {"detail": [{"loc": ["body", "tools", 0, "function"], "msg": "Field required"}]},
    {"object": "error", "message": "Input should be 'function'", "code": 400},
]  # fmt: skip
OTHERS: list[Any] = [
    {"error": {"message": "The temperature is not allowed."}},
    {"error": {"message": "tools[0].filters.allowed_domains: not a domain"}},
    {"error": {"message": "Invalid schema for function 'weather': bad type"}},
]


def refused(name: str, body: Any, status: int, search: NativeSearch | None) -> ProviderError:
    async def main(url: str) -> None:
        transport = Transport()
        env = Environment({"environment": {f"{name.upper()}_BASE_URL": url}})
        request = Request(MODELS[name], [Message("user", "Hi")], native_search=search)
        try:
            async for _ in providers.load(name, env, transport).stream(request):
                pass
        finally:
            await transport.aclose()

    with FakeServer([json_reply(body, status)]) as server, pytest.raises(ProviderError) as caught:
        asyncio.run(main(server.url))
    return caught.value


@each_row("status", [400, 422])
@each_row("body", BLAMES)
@each_row("name", MODELS)
def test_a_blamed_tool_is_a_rejected_search(name: str, body: Any, status: int) -> None:
    """So `auto` falls back, and `native` says what to choose."""
    error = refused(name, body, status, NativeSearch())
    assert isinstance(error, NativeSearchRejected)
    assert "local search" in error.remedy


@each_row("body", OTHERS)
@each_row("name", MODELS)
def test_other_refusals_stand(name: str, body: Any) -> None:
    """What the user chose, wrote or asked for is not the search's fault."""
    assert not isinstance(refused(name, body, 400, NativeSearch()), NativeSearchRejected)


@pytest.mark.parametrize("name", MODELS)
def test_without_a_search_nothing_is_rejected(name: str) -> None:
    """The same words about a tool of the user's are an ordinary refusal."""
    error = refused(name, {"error": {"message": "Unsupported tool type"}}, 400, None)
    assert error.code == "bad_request"
