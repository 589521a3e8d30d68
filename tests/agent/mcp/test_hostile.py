"""Servers that hang, flood, crash, lie, change and steal: each is contained, and the rest works."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from searchloop.agent.errors import AgentError, ToolError
from searchloop.agent.mcp import McpServers, connection
from searchloop.agent.mcp.server import has_hidden
from searchloop.agent.run.prompts import NamedAgent
from searchloop.agent.run.prompts import settings_of as settings_for
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool
from searchloop.agent.tools.dispatcher import Toolset
from tests.agent.mcp.served import Chat, by_name, hostile, lines, run, serving, write
from tests.agent.scripted import Memory, call
from tests.waiting import eventually


def gone(note: str) -> bool:
    """Whether the process that noted its id is no longer there."""
    return not Path(f"/proc/{int(note.split()[1])}").exists()


def rest(source: McpServers) -> None:
    """What failed is tried again in a minute: this test, on a slow machine, may take a second."""
    for each in source._connections.values():
        if each.state == "failed":
            assert each._again > 0
            each._again += 60


async def test_a_server_is_reached_and_used(tmp_path: Path) -> None:
    """The result is text of somebody else's; hints of the server give its tool no rights."""
    async with serving(tmp_path, {"a": hostile(private=True)}) as source:
        tools = by_name(await source.tools(Chat()))
        echo = tools["mcp_a_echo"]
        result = await run(echo, text="hi")
        assert (result.content, result.is_error, result.sources) == ("you said hi", False, ())
        assert (echo.spec.effect, echo.server, echo.origin) == ("exec", "a", "mcp")
        assert (echo.untrusted, echo.private, echo.suspended) == (True, True, None)
        assert echo.spec.parameters["required"] == ["text"]
        told = source.overview()["servers"][0]
        assert (told["state"], told["title"], told["command"][-1]) == ("ready", "hostile", "ok")
        assert told["tokens"] == sum(t["tokens"] for t in told["tools"]) > 100


async def test_results_of_every_kind(tmp_path: Path) -> None:
    """Errors, bytes, links, structured data, too much text, and what is no result at all."""
    async with serving(tmp_path, {"a": hostile()}) as source:
        tools = by_name(await source.tools(Chat()))
        failed = await run(tools["mcp_a_error"])
        assert (failed.is_error, failed.content) == (True, "It failed: try b.")
        media = await run(tools["mcp_a_media"])
        assert "[image: image/png, 75 bytes" in media.content
        assert "Resource page: https://evil.example/?q=secret (a page)" in media.content
        assert "Resource file:///a.txt:\ninside" in media.content
        assert '{"answer": 42, "text": "aaa' in media.content  # no pattern of theirs ran here
        assert media.sources == ()
        assert "AAAA" not in media.content
        huge = await run(tools["mcp_a_huge"])
        assert 1_000_000 <= len(huge.content) < 1_000_100
        with pytest.raises(ToolError, match="breaks the protocol"):
            await run(tools["mcp_a_wrong"])
        assert (await run(tools["mcp_a_echo"], text="on")).content == "you said on"


async def test_a_server_sees_no_secret(tmp_path: Path) -> None:
    """Ten variables at most, and what its own settings name."""
    secrets = {"OPENAI_API_KEY": "sk-canary-1", "AWS_SECRET_ACCESS_KEY": "canary-2", "LANG": "C"}
    server = hostile(env={"TOKEN": "mine", "KEY": "${OPENAI_API_KEY}"})
    async with serving(tmp_path, {"a": server, "b": hostile()}, **secrets) as source:
        tools = by_name(await source.tools(Chat()))
        mine = json.loads((await run(tools["mcp_a_env"])).content)
        assert (mine["TOKEN"], mine["KEY"], mine["LANG"]) == ("mine", "sk-canary-1", "C")
        theirs = json.loads((await run(tools["mcp_b_env"])).content)
        assert "canary" not in str(theirs)
        assert set(theirs) <= {"PATH", "LANG", "LC_CTYPE"}
        assert "canary" not in json.dumps(source.overview()["servers"])


async def test_servers_that_do_not_start_are_named(tmp_path: Path) -> None:
    """One hangs, one exits, one lies, one is not there: the others work, and what failed rests."""
    seen = tmp_path / "seen"
    servers = {
        "mute": hostile("mute", seen, startup_timeout=0.3),
        "exit": hostile("exit"),
        "lie": hostile("lie"),
        "wrong": hostile("wrong"),
        "gone": {"command": "no-such-program-xyz"},
        "folder": hostile(cwd="/no/such/folder"),
        "off": hostile(disabled=True),
        "garbage": hostile("garbage"),
        "stderr": hostile("stderr"),
    }
    async with serving(tmp_path, servers) as source:
        tools = by_name(await source.tools(Chat()))
        for name in ("garbage", "stderr"):
            assert (await run(tools[f"mcp_{name}_echo"], text="hi")).content == "you said hi"
        assert {tool.server for tool in tools.values()} == {"garbage", "stderr"}
        told = {s["name"]: s for s in source.overview()["servers"]}
        failed = {name: s["error"]["code"] for name, s in told.items() if s["state"] == "failed"}
        assert failed == {
            "mute": "mcp_timeout",
            "exit": "mcp_lost",
            "gone": "missing_command",
            **dict.fromkeys(("lie", "wrong"), "mcp_bad_answer"),
            "folder": "missing_folder",
        }
        assert "tools.1.inputSchema.type" in told["wrong"]["error"]["message"]
        assert told["off"]["state"] == "disabled"
        again = await source.test("exit")
        assert "exit code 4" in again["error"]["message"]
        assert again["stderr"] == "no such database\n"
        rest(source)
        starts = lines(seen)
        await source.tools(Chat())  # what failed is not started a second time
        assert lines(seen) == starts


async def test_a_call_that_hangs_is_called_off(tmp_path: Path) -> None:
    """The time limit holds, the server is told, and the next call works."""
    seen = tmp_path / "seen"
    async with serving(tmp_path, {"a": hostile("ok", seen, timeout=0.3)}) as source:
        tools = by_name(await source.tools(Chat()))
        with pytest.raises(TimeoutError):
            await run(tools["mcp_a_slow"])
        await eventually(lambda: lines(seen)[-1] == "notifications/cancelled")
        names = ("mcp_a_echo", "mcp_a_slow")
        echo, slow = (replace(tools[name], seconds=60.0) for name in names)
        assert (await run(echo, text="x")).content == "you said x"
        stopped = asyncio.create_task(run(slow))
        await eventually(lambda: lines(seen)[-1] == "call slow")
        stopped.cancel()
        await asyncio.wait([stopped])
        await eventually(lambda: lines(seen)[-1] == "notifications/cancelled")


async def test_a_crash_is_told_and_mended(tmp_path: Path) -> None:
    """A call ends with the exit code; the first new attempt comes at once, later ones wait."""
    async with serving(tmp_path, {"a": hostile()}) as source:
        tools = by_name(await source.tools(Chat()))
        with pytest.raises(ToolError, match="exit code 3"):
            await run(tools["mcp_a_crash"])
        assert (await run(tools["mcp_a_echo"], text="again")).content == "you said again"
        with pytest.raises(ToolError, match="exit code 3"):
            await run(tools["mcp_a_crash"])
        rest(source)
        with pytest.raises(ToolError, match="tried again in"):
            await run(tools["mcp_a_echo"], text="too soon")
        told = await source.test("a")
        assert told["state"] == "ready"
        with pytest.raises(AgentError, match="other"):
            await source.test("other")


async def test_answers_count_for_their_own_call(tmp_path: Path) -> None:
    """One for a call before, one for the next, one for nobody, and each twice: all of no effect."""
    async with serving(tmp_path, {"a": hostile("others")}) as source:
        echo = by_name(await source.tools(Chat()))["mcp_a_echo"]
        for n in range(5):
            assert (await run(echo, text=str(n))).content == f"you said {n}"
        assert source.overview()["servers"][0]["state"] == "ready"


async def test_a_message_without_end_is_cut_off(tmp_path: Path) -> None:
    """Nobody keeps more than one message's worth of it."""
    async with serving(tmp_path, {"a": hostile()}) as source:
        tools = by_name(await source.tools(Chat()))
        with pytest.raises(ToolError, match="more than 8 MB"):
            await run(tools["mcp_a_line"])


async def test_endless_notifications_stall_nobody(tmp_path: Path) -> None:
    """A flood is slowed down: another server answers meanwhile, and lists are not asked for again
    and again.
    """
    seen = tmp_path / "seen"
    servers = {"a": hostile("ok", seen), "b": hostile()}
    began = time.monotonic()
    async with serving(tmp_path, servers) as source:
        tools = by_name(await source.tools(Chat()))
        notify = tools["mcp_a_notify"]
        flood = asyncio.create_task(run(notify))
        await eventually(lambda: "call notify" in lines(seen))
        for _ in range(5):
            assert (await run(tools["mcp_b_echo"], text="x")).content == "you said x"
        assert not flood.done()
        with pytest.raises(TimeoutError):
            await run(replace(notify, seconds=0.2))
        flood.cancel()
        await asyncio.wait([flood])
        assert lines(seen).count("list") <= 2 + (time.monotonic() - began)
        for each in source._connections.values():
            each.said.hurry = True  # it would not end by itself


@pytest.mark.parametrize("mode", ["ok", "quiet"])
async def test_a_change_during_a_session_is_noticed(tmp_path: Path, mode: str) -> None:
    """A tool that is no longer what the model was shown is refused, also where no server says so:
    it is looked at again after a while."""
    async with serving(tmp_path, {"a": hostile(mode)}) as source:
        tools = by_name(await source.tools(Chat()))
        assert (await run(tools["mcp_a_change"])).content == "changed"
        (known,) = source._connections.values()
        if mode == "quiet":
            known._listed -= connection._RELIST
        else:
            await eventually(lambda: known._changed)
        with pytest.raises(ToolError, match="has changed since"):
            await run(tools["mcp_a_echo"], text="x")
        assert by_name(await source.tools(Chat()))["mcp_a_echo"].suspended


async def test_names_cannot_be_stolen(tmp_path: Path) -> None:
    """Tools named like ours, like another server's, twice, or in a way no provider takes."""
    servers = {"a_b": hostile("theft"), "a": hostile("theft"), "other": hostile()}
    async with serving(tmp_path, servers) as source:
        tools = await source.tools(Chat())
        names = [tool.spec.name for tool in tools]
        assert len(set(names)) == len(names)
        assert all(name.startswith("mcp_") and len(name) <= 64 for name in names)
        assert all(name.isascii() for name in names)
        owners = {tool.spec.name: tool.server for tool in tools}
        assert owners["mcp_a_b_web_search"] == "a_b"
        assert owners["mcp_other_echo"] == "other"
        assert [n for n, s in owners.items() if n.startswith("mcp_a_b") and s == "a"] == []
        told = next(s for s in source.overview()["servers"] if s["name"] == "a")
        assert told["oddities"] == ["It lists 'web_search' twice; the first is used."]


async def test_poisoned_definitions_are_cleaned_or_left_out(tmp_path: Path) -> None:
    """No hidden characters, no endless text, no schema that breaks the border."""
    async with serving(tmp_path, {"a": hostile("poison"), "b": hostile("endless")}) as source:
        tools = by_name(await source.tools(Chat()))
        mine = [n for n, tool in tools.items() if tool.server == "a"]
        assert mine == ["mcp_a_hidden", "mcp_a_long"]
        for tool in tools.values():
            assert not has_hidden(json.dumps(tool.spec.parameters, ensure_ascii=False))
            assert not has_hidden(tool.spec.description)
            assert len(tool.spec.description) < 5000
        told = next(s for s in source.overview()["servers"] if s["name"] == "a")
        unusable = {t["name"]: t["unusable"] for t in told["tools"] if t["unusable"]}
        assert set(unusable) == {"deep", "secret_name"}
        endless = next(s for s in source.overview()["servers"] if s["name"] == "b")
        assert "40 pages" in endless["oddities"][0]


async def test_a_server_is_not_started_for_an_agent_that_may_not_use_it(tmp_path: Path) -> None:
    """Its tools are not there, not even for `find_tool` to name."""
    seen = tmp_path / "seen"
    servers = {"a": hostile("ok", seen), "b": hostile("ok")}
    only = Chat("agent", settings=settings_for(NamedAgent("x", servers=("b",))))
    async with serving(tmp_path, servers, window=1) as source:
        tools: list[Tool] = await source.tools(only)  # type: ignore[arg-type]
        assert {t.server for t in tools if t.server} == {"b"}
        (finder,) = [t for t in tools if t.server is None]
        assert "mcp_a_" not in finder.spec.description
        assert not seen.exists()


async def test_a_change_of_the_file_holds_from_the_next_turn(tmp_path: Path) -> None:
    """Servers come, go and change without a restart; what is gone is stopped."""
    seen = tmp_path / "seen"
    async with serving(tmp_path, {"a": hostile("ok", seen)}) as source:
        tools = by_name(await source.tools(Chat()))
        write(tmp_path, {"b": hostile()})
        assert {t.server for t in await source.tools(Chat())} == {"b"}
        with pytest.raises(ToolError):
            await run(tools["mcp_a_echo"], text="x")
        await eventually(lambda: gone(lines(seen)[0]))
        (tmp_path / "mcp.json").write_text("{broken")
        assert await source.tools(Chat()) == []
        assert source.overview()["problems"][0]["code"] == "bad_json"


async def test_switches_hold_at_once_and_need_no_new_start(tmp_path: Path) -> None:
    """The same process goes on, with its tools known; one switched off meanwhile is not called."""
    seen = tmp_path / "seen"
    async with serving(tmp_path, {"a": hostile("ok", seen)}) as source:
        before = by_name(await source.tools(Chat()))
        source.switch("a", {"tools": {"echo": {"enabled": False}}})
        (told,) = source.overview()["servers"]
        off = [tool["name"] for tool in told["tools"] if not tool["enabled"]]
        assert (told["state"], off) == ("ready", ["echo"])
        with pytest.raises(ToolError, match="switches of mcp_a_echo"):
            await run(before["mcp_a_echo"], text="x")
        assert "call echo" not in lines(seen)
        now = by_name(await source.tools(Chat()))
        assert set(before) - set(now) == {"mcp_a_echo"}
        source.switch("a", {"tools": {"echo": {"enabled": True}}})
        again = by_name(await source.tools(Chat()))["mcp_a_echo"]
        assert (await run(again, text="x")).content
        assert lines(seen, "pid") == lines(seen)[:1]
        source.switch("a", {"private": True})
        with pytest.raises(ToolError):
            await run(again, text="x")
        source.switch("a", {"disabled": True})
        await eventually(lambda: gone(lines(seen)[0]))
        assert source.overview()["servers"][0]["state"] == "disabled"


async def test_above_a_share_of_the_context_tools_have_to_be_found(tmp_path: Path) -> None:
    """Only names and `find_tool`; what it found is listed from the next step on, and stays."""

    def listed(tools: Mapping[str, Tool]) -> set[str]:
        return {name for name, tool in tools.items() if tool.listed}

    servers = {"a": hostile("many"), "b": hostile()}
    async with serving(tmp_path, servers, window=20_000) as source:
        tools = by_name(await source.tools(Chat()))
        find = tools["find_tool"]
        assert listed(tools) == {"find_tool"}
        assert "mcp_a_tool_7" in find.spec.description
        assert (find.spec.effect, find.untrusted, find.server) == ("read", True, None)
        revealed: list[str] = []
        result = await run(find, reveal=revealed.extend, query="mcp_a_tool_7, mcp_b_echo")
        assert result.details["tools"] == revealed == ["mcp_a_tool_7", "mcp_b_echo"]
        assert '"required"' in result.content
        assert "mcp_b_env" in (await run(find, query="dump the env")).details["tools"]
        assert (await run(find, query="zebra")).details["tools"] == []
        again = listed(by_name(await source.tools(Chat())))
        assert {"find_tool", "mcp_a_tool_7", "mcp_b_echo", "mcp_b_env"} <= again
        assert "mcp_a_tool_9" not in again
        offered = Toolset(tools.values(), "agent", SourceTable())
        asked = (call("mcp_b_echo", 1, text="hi"), call("mcp_b_echoo", 2), call("read_more", 3))
        results = await offered.call_all(asked, Memory())
        assert [r.is_error for r in results] == [False, True, True]
        assert "mcp_b_echo" in {spec.name for spec in offered.specs}
        assert listed(by_name(await source.tools(Chat(id="s2")))) == {"find_tool"}
    async with serving(tmp_path, servers, window=1_000_000) as source:
        tools = by_name(await source.tools(Chat()))
        assert "find_tool" not in tools
        assert listed(tools) == set(tools)


async def test_a_server_that_still_starts_is_let_go_at_once(tmp_path: Path) -> None:
    """Whoever ends the program does not wait for one that never got ready."""
    seen = tmp_path / "seen"
    async with serving(tmp_path, {"a": hostile("mute", seen)}) as source:
        waiting = asyncio.create_task(source.tools(Chat()))
        await eventually(lambda: lines(seen))
        began = time.monotonic()
        await source.aclose()
        assert time.monotonic() - began < connection._CLOSE
        assert await waiting == []
        assert gone(lines(seen)[0])


async def test_projects_have_servers_of_their_own(tmp_path: Path) -> None:
    """Each folder its own, once trusted; where nobody works any more they go after a while."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        write(folder, {"it": hostile("ok", folder / "seen")}, ".mcp.json")
    async with serving(tmp_path, {"mine": hostile()}, idle=0.0) as source:
        one, two = (Chat(workspace=str(folder)) for folder in folders)
        assert {tool.server for tool in await source.tools(one)} == {"mine"}
        notice = source.notices(one)[0]
        assert notice["code"] == "mcp_untrusted"
        assert source.notices(one) == []
        for folder in folders:
            waits = source.catalogue.find(str(folder)).untrusted
            assert waits
            source.catalogue.trust(str(folder), waits.hash)
        assert {tool.server for tool in await source.tools(one)} == {"mine", "it"}
        assert {tool.server for tool in await source.tools(Chat())} == {"mine"}
        tools = by_name(await source.tools(two))
        await eventually(lambda: gone(lines(folders[0] / "seen")[0]))
        assert (await run(tools["mcp_it_echo"], text="two")).content == "you said two"
        assert (await run(tools["mcp_mine_echo"], text="me")).content == "you said me"
        assert lines(folders[1] / "seen")[-1] == "call echo"
