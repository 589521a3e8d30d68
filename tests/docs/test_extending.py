"""The provider, the engine and the reader in docs/guides/extending.md work as printed there."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.errors import ConfigError, IncompleteError, ProviderError
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Finished, Message, Request, StreamEvent, TextDelta, ToolSpec
from searchloop.search_backend import engines
from searchloop.search_backend.engines import Engine, own_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.readers import Service, find_services, services
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Query
from tests.docs.conftest import ROOT
from tests.fakes import FakeServer, Received, Reply, json_reply

TEXT = (ROOT / "docs" / "guides" / "extending.md").read_text("utf-8")
(PROVIDER,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
ENGINE, READER, *_ = re.findall(r"^```py\n(.*?)^```$", TEXT, re.M | re.S)
USER = Message("user", "Who is a clever bird?")
TRICK = ToolSpec("whistle", "Whistles.", {"type": "object", "properties": {}})


def placed(folder: Path, package: ModuleType, name: str, code: str) -> Iterator[None]:
    """The example as a file of the package."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    package.__path__.append(str(folder))
    try:
        yield
    finally:
        package.__path__.remove(str(folder))
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)


@pytest.fixture
def parrot(tmp_path: Path) -> Iterator[None]:
    """The provider, found by its file name."""
    yield from placed(tmp_path, providers, "parrot", PROVIDER)


@pytest.fixture
def heron(tmp_path: Path) -> Iterator[Engine]:
    """The engine, found by its file name."""
    for _ in placed(tmp_path, engines, "heron", ENGINE):
        yield own_engines.__wrapped__()["heron"]


@pytest.fixture
def otter(tmp_path: Path) -> Iterator[Service]:
    """The reader, found by its file name."""
    for _ in placed(tmp_path, services, "otter", READER):
        yield find_services.__wrapped__()["otter"]


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


def test_the_engine_searches(tmp_path: Path, heron: Engine) -> None:
    """Results, a refused key, and a wish that it cannot respect."""
    hit = {
        "url": "https://a.example/",
        "name": "A <b>bird</b>",
        "text": "Wades.",
        "day": "3 days ago",
    }
    replies = [json_reply({"hits": [hit]}), json_reply({"error": "no such key"}, 401)]
    with FakeServer(replies) as server:
        keys = {"HERON_API_KEY": "key-0123456789", "HERON_BASE_URL": server.url}
        own = SearchSettings(tmp_path, ("heron",), keys=keys)
        chain = Chain(own, Library(tmp_path, dict), {"heron": heron})
        query = Query("birds", language="de", safe_search="strict")
        found, refused = chain.search(query), chain.search(Query("bees"))
        assert server.requests[0].path == "/find?q=birds&n=8&lang=de"
        assert server.requests[0].headers["authorization"] == "Bearer key-0123456789"
    (one,) = found.results
    assert (one.title, one.source, found.not_applied) == ("A bird", "heron", ("safe_search",))
    assert one.published is not None
    assert refused.attempts[0].error is not None
    assert refused.attempts[0].error.code == "auth"


def test_the_reader_reads(otter: Service) -> None:
    """A page, one that it could not open, and an answer that is none."""
    page = {"markdown": "# Otters\n\nThey [swim](https://b.example/).", "at": "https://a.example/x"}
    replies = [json_reply(page), json_reply({"fault": "gone"}), json_reply([])]
    with FakeServer(replies) as server:
        calls = ServiceCalls({"OTTER_URL": server.url}, 5.0)
        read, gone, broken = (calls.read(otter, "https://a.example/") for _ in range(3))
        assert server.requests[0].json == {"address": "https://a.example/"}
    assert (read.status, read.title, read.links) == ("ok", "Otters", ("https://b.example/",))
    assert read.final_url == "https://a.example/x"
    assert gone.error is not None
    assert gone.error.message == "Otter could not open the page: gone."
    assert broken.error is not None
    assert broken.error.code == "reader_parse"
