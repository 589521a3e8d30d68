"""A chat that a vendor finds too long goes on: its raw blocks go, its rules are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchloop.agent.log.events import messages_from
from searchloop.agent.search.source_numbers import SourceTable
from tests.chaos import dialects
from tests.chaos.house import House, check_requests, read, reply
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
