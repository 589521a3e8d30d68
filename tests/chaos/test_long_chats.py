"""A chat that a vendor finds too long goes on: its raw blocks go, its rules are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchloop.agent.log import EventLog
from searchloop.agent.log.events import messages_from
from searchloop.agent.run.runner import Runner
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.transport.transport import Transport
from tests.agent.scripted import SearchApp
from tests.chaos import dialects
from tests.chaos.house import PATIENT, House, check_requests, check_told, read, reply
from tests.fakes import FakeServer, Received, Reply, json_reply

pytestmark = pytest.mark.integration

VENDORS = ("anthropic", "gemini", "openai", "openai-chat")
SUMMARY = "The tide at Lindhoj was asked about, the ferry is called Sturmvogel [1]."
TOO_LONG = {
    "anthropic": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
    "gemini": {
        "status": "INVALID_ARGUMENT",
        "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    },
    "openai": {"code": "context_length_exceeded", "message": "Too long."},
    "openai-chat": {"code": "context_length_exceeded", "message": "Too long."},
    "xai": {"code": "context_length_exceeded", "message": "Too long."},
}


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_vendor_that_refuses_a_long_chat_gets_a_summary(
    tmp_path: Path, vendor: str
) -> None:
    """Answers with raw blocks of searches, then too many of them for the window."""
    dialect = dialects.load(vendor)
    refused = {"type": "error", "error": TOO_LONG[vendor]}
    most = 0

    def answer(received: Received) -> Reply:
        body = received.body.decode()
        dialect.hear(read(received.body))
        if "You summarise the earlier part" in body:
            return reply(dialect, dialect.text(SUMMARY))
        if most and len(dialect.conversation(read(received.body))) > most:
            return json_reply(refused, 400)
        searched = dialect.searched("High water is at 07:40.") if "Sea" in body else []
        return reply(dialect, searched or dialect.text("High water is at 07:40."))

    with FakeServer(answer) as server:
        async with House(tmp_path, dialect, server.url) as house:
            # What always searches, even for a summary, gets the list of questions instead.
            model = dialect.searcher if vendor != "openai-chat" else None
            for n in range(5):
                search = "native" if model else "off"
                told = await house.ask(f"Sea {n}?", model=model, search=search)
                assert told["reason"] == "stop", told
            most = len(dialect.conversation(read(server.requests[-1].body)))
            before = len(server.requests)
            told = await house.ask("And then?")
            assert told["reason"] == "stop", told
            asked = [r for r in server.requests[before:] if r.method == "POST"]
            first, summary, last = (request.body.decode() for request in asked)
            assert "Sturmvogel" in last
            assert "Sea 1?" not in last
            assert "Sea 4?" in last
            assert "Sea 4?" not in summary
            for opaque in ("EncIdx", '"encrypted_content":', '"thoughtSignature":'):
                assert opaque not in summary
                assert last.count(opaque) * 5 == first.count(opaque), "one turn of five stays"
            told = await house.ask("Thanks.")
            asked = [request for request in server.requests if request.method == "POST"]
            grown = [dialect.conversation(read(r.body)) for r in asked[-2:]]
            assert grown[1][: len(grown[0])] == grown[0], "append-only from then on"
            check_requests(dialect, asked)
            table = SourceTable.of(messages_from(house.events()))
            assert table.numbered(1) or vendor == "openai-chat"


WINDOW = 4096  # tokens that each of the five servers reads, at four characters
TURNS = 40
ORDERS = {name: (*(n for n in dialects.names() if n != name), name) for name in dialects.names()}
ORDERS |= {f"{name} alone": (name,) for name in dialects.names()}
FACT = re.compile(r"My ferry is called (\w+)\.")


def texts(value: object) -> Iterator[str]:
    """Every text in a request, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


class FiveServers:
    """Servers of five vendors with one small window; they know what is in a request, and no more.

    Asked for a summary they keep sentences that name something; asked for the ferry they look.
    """

    def __init__(self) -> None:
        self.dialects = {name: dialects.load(name) for name in dialects.names()}
        self.read: list[int] = []  # tokens of each request that was answered
        self.refused = 0
        self.server = FakeServer(self._reply)

    def settings(self) -> dict[str, str]:
        """The ordinary settings of all five."""
        every = (d.settings(f"{self.server.url}/{name}") for name, d in self.dialects.items())
        return {key: value for each in every for key, value in each.items()}

    def _reply(self, received: Received) -> Reply:
        _, name, path = received.path.split("/", 2)
        dialect = self.dialects[name]
        if path == "api/ps":
            loaded = {"name": dialect.models[0], "size": 1, "context_length": WINDOW}
            return json_reply({"models": [loaded]})
        known = dialect.aside(received.method, f"/{path}")
        if known is not None or received.method == "GET":
            return json_reply(known or {"data": []})
        body = read(received.body)
        dialect.check(body, f"/{path}")
        said = "\n".join(texts(body))
        if name == "ollama" and len(self.read) > 1:
            assert body["options"].get("num_ctx") in (None, WINDOW), "it would be loaded anew"
        if (size := len(said) // 4) > WINDOW:
            self.refused += 1
            if name == "ollama":
                words = f"request ({size} tokens) exceeds the available context size ({WINDOW}"
                return json_reply({"error": f"{words} tokens), try increasing it"}, 400)
            return json_reply({"type": "error", "error": TOO_LONG[name]}, 400)
        self.read.append(size)
        return reply(dialect, dialect.text(self._answer(said)))

    def _answer(self, said: str) -> str:
        facts = FACT.findall(said)
        if "You summarise the earlier part" in said:
            named = " ".join(f"My ferry is called {name}." for name in dict.fromkeys(facts))
            return f"The user told of tides and harbours. {named}"
        if "What is my ferry called?" in said.rpartition("Turn 40")[2]:
            return f"It is called {facts[0]}." if facts else "You have not told me."
        return "The tide comes and goes. " * 80


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_a_fact_of_the_first_turn_outlives_many_windows(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Forty turns over five vendors, ten windows long; whoever is asked in the end knows it."""
    five = FiveServers()
    with five.server:
        own = Settings.load(
            Environment({"flag": {"SEARCHLOOP_HOME": str(tmp_path), **five.settings()}})
        )
        log = EventLog(tmp_path / "s.sqlite3")
        runner = Runner(own, log, LocalBackend(SearchApp()), transport=Transport(PATIENT))
        session = log.create_session(model="builtin:extractive").id
        for turn in range(1, TURNS + 1):
            name = order[(turn - TURNS - 1) % len(order)]
            fact = {1: "My ferry is called Sturmvogel. ", TURNS: "What is my ferry called? "}
            text = f"Turn {turn}. {fact.get(turn, '')}{'How high is the water? ' * 95}"
            model = f"{name}:{five.dialects[name].models[0]}"
            await runner.start(session, text, model=model)
            await runner.wait(session)
            told = log.last_event(session).data
            assert (told["reason"], told.get("error")) == ("stop", None), (turn, name)
        assert told["answer"] == "It is called Sturmvogel."
        events = log.read(session)
        said = [e.data["text"] for e in events if e.type in ("user_message", "message")]
        assert sum(map(len, said)) // 4 >= 10 * WINDOW
        assert max(five.read) <= WINDOW
        check_told(events)
        await runner.aclose()
        log.close()
