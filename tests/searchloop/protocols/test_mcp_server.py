"""Our MCP server: other programs search, read, check and ask, under one switch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from searchloop.agent.settings import Environment
from searchloop.compose import Services, open_services
from searchloop.protocols.mcp import server_of
from searchloop.protocols.runs import ClientRuns
from searchloop.protocols.tools import TOOLS, ClientTools

SWITCH = "library://docs/search-switch.md"
QUESTION = "What does the search switch decide?"
KEY = "sk-ant-REDACTED"


@asynccontextmanager
async def asking(home: Path, mode: Any = "auto", **env: str) -> AsyncIterator[tuple[Any, Services]]:
    """A client of our server on a bare machine without a network, and the services behind it."""
    flags = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_OFFLINE": "1", **env}
    services = open_services(Environment({"flag": flags}))
    try:
        server = server_of(ClientTools(ClientRuns(services)))
        async with aclosing(services.runner), Client(server, mode=mode) as client:
            yield client, services
    finally:
        services.close()


async def told(client: Any, name: str, **arguments: Any) -> tuple[bool, str, dict[str, Any]]:
    """Whether a call failed, its text for the model, and its data for the program."""
    result = await client.call_tool(name, arguments)
    return result.is_error, result.content[0].text, result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_program_searches_reads_checks_and_asks(tmp_path: Path, mode: str) -> None:
    """Both versions of the protocol: what is found is not read, what is opened is, each marked."""
    async with asking(tmp_path, mode) as (client, services):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [tool.name for tool in TOOLS]
        failed, text, found = await told(client, "web_search", query=QUESTION)
        assert not failed
        assert "none of them read" in text
        assert "untrusted" in text
        assert found["search_path"] == "offline"
        assert {row["state"] for row in found["results"]} == {"found"}
        failed, text, page = await told(client, "open_page", url=found["results"][0]["url"])
        assert (failed, page["state"]) == (False, "opened")
        assert page["content"] in text
        failed, text, page = await told(client, "open_page", url=SWITCH, find="zebra crossing")
        assert (failed, page["match_count"]) == (False, 0)
        assert "These words are not in its" in text
        claim = "One switch decides whether a turn may search the web."
        failed, _, verdict = await told(client, "check_claim", claim=claim, url=SWITCH)
        assert (failed, verdict["verdict"], verdict["by"]) == (False, "supported", "words")
        report = f"{claim} [1] It has 46 wheels ([gone](http://127.0.0.1:9/)).\n\n[1]: {SWITCH}"
        failed, text, audit = await told(client, "audit", text=report)
        assert (failed, audit["summary"]["by_verdict"]) == (False, {"supported": 1, "unread": 1})
        assert [each["text"] for each in audit["needs_a_look"]] == ["It has 46 wheels."]
        assert audit["pages_not_read"][0]["problem"] == "private"
        assert "untrusted" in text
        failed, text, answer = await told(client, "ask", question=QUESTION)
        assert (failed, answer["reason"], answer["search_path"]) == (False, "stop", "offline")
        assert answer["citations"][0]["marks"][0]["verdict"] == "quoted"
        assert "quoted" in text
        assert {row["url"] for row in answer["opened"]} >= {answer["citations"][0]["url"]}
        assert services.log.sessions() == []


def test_all_tools_together_cost_a_client_little() -> None:
    """Descriptions and schemas take at most 800 tokens of each request, at four characters each."""
    assert len(json.dumps([tool._asdict() for tool in TOOLS])) / 4 <= 800


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("web_search", {}, "'query' is missing"),
        ("web_search", {"query": 5}, "query must be"),
        ("web_search", {"query": "tea", "max_results": 99}, "at most 20"),
        ("web_search", {"query": f"what is {KEY}"}, "ANTHROPIC_API_KEY"),
        ("web_search", {"query": "tea", "pages": 2}, "pages"),
        ("open_page", {"url": "https://example.org/"}, "PAGE NOT READ"),
        ("open_page", {"url": "http://127.0.0.1/"}, "PAGE NOT READ"),
        ("check_claim", {"claim": "Tea."}, "one source"),
        ("check_claim", {"claim": " ", "text": "Tea."}, "claim is empty"),
        ("audit", {"text": " "}, "text is empty"),
        ("audit", {"text": f"Tea [1]. {KEY}"}, "ANTHROPIC_API_KEY"),
        ("ask", {"question": "Tea?", "model": "no:such"}, "no"),
        ("ask", {"question": "  "}, "empty"),
    ],
)
async def test_a_wrong_call_is_answered_in_words(
    tmp_path: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    """Each fault is a result that says what was wrong; no key of ours leaves."""
    async with asking(tmp_path, ANTHROPIC_API_KEY=KEY) as (client, _):
        failed, text, _ = await told(client, name, **arguments)
        assert failed
        assert words in text


async def test_a_call_that_is_cancelled_leaves_no_run(tmp_path: Path) -> None:
    """The question stops, and no task of it is left. A tool that is not there is the protocol's
    error, with its name."""
    async with asking(tmp_path) as (client, _):
        began = asyncio.Event()

        async def progress(*_: Any) -> None:
            began.set()

        asked = {"question": QUESTION}
        call = asyncio.create_task(client.call_tool("ask", asked, progress_callback=progress))
        await began.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        with pytest.raises(MCPError, match="no tool called 'fly'"):  # the server goes on
            await client.call_tool("fly", {})
        tasks = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]  # type: ignore[union-attr]
        assert "ClientRuns._run" not in tasks
