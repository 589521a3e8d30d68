"""Real MCP servers: from npm (`npm ci --prefix tests/node`) and made with the Python SDK."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.mcp import connection
from tests.agent.mcp.served import Chat, by_name, run, serving
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
NODE = ROOT / "tests" / "node" / "node_modules" / ".bin"
SLOW: dict[str, Any] = {"startup_timeout": 90}  # seconds: node starts slowly on a busy machine


def node_path() -> str:
    """A PATH on which node and the servers are."""
    node = shutil.which("node")
    assert node, "node is not installed"
    return f"{Path(node).parent}:/usr/bin:/bin"


def node(name: str, *args: str, **more: Any) -> dict[str, Any]:
    """A server from npm."""
    return {"command": str(NODE / f"mcp-server-{name}"), "args": list(args), **more}


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as trying:
        return not trying.connect_ex(("127.0.0.1", port))


@contextmanager
def listening(command: list[str], port: int, **env: str) -> Iterator[str]:
    """A server over HTTP; its address."""
    with subprocess.Popen(
        command,
        env={"PATH": node_path(), **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until(lambda: process.poll() is not None or listens(port))
            assert process.returncode is None
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


async def use_everything(server: dict[str, Any], home: Path) -> None:
    """What the reference server has to show."""
    async with serving(home, {"all": {**server, **SLOW}}, PATH=node_path()) as source:
        told = await source.test(next(iter(source.overview()["servers"]))["name"])
        assert told["state"] == "ready", told["error"]
        tools = by_name(await source.tools(Chat()))
        assert (await run(tools["mcp_all_echo"], message="hi")).content == "Echo: hi"
        assert "is 3" in (await run(tools["mcp_all_get-sum"], a=1, b=2)).content
        image = await run(tools["mcp_all_get-tiny-image"])
        assert "image" in image.content
        links = await run(tools["mcp_all_get-resource-links"])
        assert "demo://resource" in links.content
        weather = await run(tools["mcp_all_get-structured-content"], location="New York")
        assert json.loads(weather.content)["temperature"]
        asked = list[str]()

        async def ask(words: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
            asked.append(words)
            return {"name": "Ada"}

        elicit = tools["mcp_all_trigger-elicitation-request"]  # by the protocol before this one
        assert "Ada" in (await run(elicit, ask=ask)).content
        assert "name:" in asked[0]
        assert "decline" in (await run(elicit)).content
        long = tools["mcp_all_trigger-long-running-operation"]
        assert "completed" in (await run(long, duration=2, steps=2)).content
        stopped = asyncio.create_task(run(long, duration=60, steps=600))
        await asyncio.wait([stopped], timeout=1)
        stopped.cancel()
        await asyncio.wait([stopped])
        assert (await run(tools["mcp_all_echo"], message="on")).content == "Echo: on"


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_reference_server(tmp_path: Path, way: str) -> None:
    """`@modelcontextprotocol/server-everything`, over both transports."""
    if way == "stdio":
        asyncio.run(use_everything(node("everything", "stdio"), tmp_path))
        return
    port = free_port()
    command = [str(NODE / "mcp-server-everything"), "streamableHttp"]
    with listening(command, port, PORT=str(port)) as url:
        asyncio.run(use_everything({"url": url}, tmp_path))


async def test_the_file_server(tmp_path: Path) -> None:
    """`@modelcontextprotocol/server-filesystem`: reads and writes in its folder, and says no."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    reading = {name: {"effect": "read"} for name in ("read_text_file", "list_directory")}
    server = node("filesystem", str(folder), private=True, tools=reading, **SLOW)
    async with serving(tmp_path, {"fs": server}, PATH=node_path()) as source:
        await source.test("fs")  # a turn would wait ten seconds for it, and go on without
        assert set(by_name(await source.tools(Chat("ask")))) == {
            "mcp_fs_read_text_file",
            "mcp_fs_list_directory",
        }
        tools = by_name(await source.tools(Chat()))
        read, wrote = tools["mcp_fs_read_text_file"], tools["mcp_fs_write_file"]
        assert (read.private, read.spec.effect, wrote.spec.effect) == (True, "read", "exec")
        assert (await run(read, path=str(folder / "a.txt"))).content == "hello"
        await run(wrote, path=str(folder / "b.txt"), content="new")
        assert (folder / "b.txt").read_text() == "new"
        refused = await run(read, path="/etc/passwd")
        assert refused.is_error
        assert "Access denied" in refused.content


async def test_a_server_of_the_python_sdk(tmp_path: Path) -> None:
    """The newest protocol that there is over HTTP, and a list of tools that grows."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("sdk_server.py")), "http", str(port)]
    with listening(command, port) as url:
        async with serving(tmp_path, {"sdk": {"url": url, **SLOW}}) as source:
            assert (await source.test("sdk"))["state"] == "ready"
            tools = by_name(await source.tools(Chat()))
            assert (await run(tools["mcp_sdk_add"], a=1, b=2)).content == "3"
            assert (await run(tools["mcp_sdk_count"], to=3)).content == "counted to 3"
            assert (await run(tools["mcp_sdk_fail"])).is_error
            await run(tools["mcp_sdk_grow"])
            (known,) = source._connections.values()
            known._listed -= connection._RELIST  # over HTTP nobody says that it has grown
            found = by_name(await source.tools(Chat()))
            assert (await run(found["mcp_sdk_grown"])).content == "new"
