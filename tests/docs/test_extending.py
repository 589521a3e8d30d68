"""The provider in docs/guides/extending.md works as it is printed there."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ConfigError, IncompleteError, ProviderError
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Request, StreamEvent, TextDelta, ToolSpec
from tests.fakes import FakeServer, Received, Reply, json_reply

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guides" / "extending.md").read_text("utf-8")
USER = Message("user", "Who is a clever bird?")
TRICK = ToolSpec("whistle", "Whistles.", {"type": "object", "properties": {}})


@pytest.fixture
def parrot(tmp_path: Path) -> Iterator[None]:
    """The example as a file in a folder of providers."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
    (tmp_path / "parrot.py").write_text(code, "utf-8")
    providers.__path__.append(str(tmp_path))
    try:
        yield
    finally:
        providers.__path__.remove(str(tmp_path))
        sys.modules.pop("searchloop.agent.providers.parrot", None)
        vars(providers).pop("parrot", None)


def said(*lines: Any) -> Reply:
    """An answer in the example's wire format, in one piece."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return Reply([body], headers={"content-type": "application/x-ndjson"})


def stream(url: str, *messages: Message, **more: Any) -> list[StreamEvent]:
    async def main() -> list[StreamEvent]:
        transport = Transport()
        try:
            env = {"PARROT_URL": url, "PARROT_API_KEY": "key-0123456789"}
            provider = providers.load("parrot", env, transport)
            provider.check("grey")
            return [e async for e in provider.stream(Request("grey", messages or (USER,), **more))]
        finally:
            await transport.aclose()

    return asyncio.run(main())


@pytest.mark.usefixtures("parrot")
def test_the_example_answers() -> None:
    """It is found by its file name; text, counts and calls arrive, and the history goes back."""
    assert "parrot" in providers.names()
    replies = [
        said({"piece": "A "}, {"call": "whistle", "arguments": '{"tune": 1}'}, {"end": 1}),
        said({"piece": "You "}, {"piece": "are."}, {"end": 1, "heard": 5, "said": 2}),
    ]
    with FakeServer(replies) as server:
        first = stream(server.url, system="Be brief.", tools=(TRICK,))[-1]
        assert isinstance(first, Finished)
        (call,) = first.message.tool_calls
        result = Message("tool", "Done.", tool_call_id=call.id, tool_name=call.name)
        *deltas, last = stream(server.url, USER, first.message, result, tools=(TRICK,))
    assert (first.stop_reason, call.name, call.arguments) == ("tool_calls", "whistle", {"tune": 1})
    assert deltas == [TextDelta("You "), TextDelta("are.")]
    assert isinstance(last, Finished)
    assert (last.message.content, last.usage.input_tokens) == ("You are.", 5)
    asked, again = (received.json for received in server.requests)
    assert asked["manners"] == "Be brief."
    assert again["lines"][1]["calls"] == [[call.id, "whistle", {"tune": 1}]]
    assert again["lines"][2]["answers"] == call.id
    assert server.requests[0].headers["authorization"] == "Bearer key-0123456789"


@pytest.mark.usefixtures("parrot")
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (said({"piece": "Clev"}), IncompleteError),
        (said({"piece": "Clev"}, {"error": "asleep"}), ProviderError),
        (said({"piece": "Clev"}, 7), ProviderError),
        (json_reply({}, 401), ProviderError),
    ],
)
def test_the_example_fails_well(reply: Reply, kind: type[ProviderError]) -> None:
    """Each fault is an error that says what to do, and never a whole answer."""

    def always(received: Received) -> Reply:
        return reply

    with FakeServer(always) as server, pytest.raises(kind) as caught:
        stream(server.url)
    assert caught.value.remedy
    assert "key-0123456789" not in caught.value.message


@pytest.mark.usefixtures("parrot")
def test_the_example_says_what_it_needs() -> None:
    """Without its address it is refused before anything is sent, and the picker says why."""
    provider = providers.load("parrot", {}, Transport())
    with pytest.raises(ConfigError) as caught:
        provider.check("grey")
    assert "PARROT_URL" in caught.value.remedy
    (entry,) = asyncio.run(provider.models())
    assert (entry.available, entry.missing) == (False, "PARROT_URL")
