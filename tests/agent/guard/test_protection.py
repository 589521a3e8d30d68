"""What protection knows: every key of this process, wherever it is set."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path

import pytest

from searchloop.agent.guard.approvals import APPROVES
from searchloop.agent.guard.guard import DEFAULT_POLICY, GuardFactory
from searchloop.agent.log import EventLog
from searchloop.agent.mcp import McpServers
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import Tool, tool
from searchloop.agent.types import ToolCall
from tests.agent.scripted import Memory

KEY = secrets.token_hex(16)


@tool(effect="network")
async def send(text: str) -> str:
    """Send it."""
    return "sent"


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("environment", "GITHUB_TOKEN"),
        ("config.toml", "BRAVE_API_KEY"),
        ("mcp env", "API_KEY of the MCP server disk"),
        ("mcp header", "Authorization of the MCP server web"),
    ],
)
def test_keys_are_known_wherever_they_are_set(tmp_path: Path, where: str, name: str) -> None:
    """Those of other programs too: whoever it is for, a key has no business in a call."""
    servers = {
        "disk": {"command": "true", "env": {"API_KEY": KEY if where == "mcp env" else "x"}},
        "web": {
            "url": "https://mcp.example/",
            "headers": {"Authorization": f"Bearer {KEY if where == 'mcp header' else 'x'}"},
        },
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    layer = {"SEARCHLOOP_HOME": str(tmp_path)}
    own = {name: KEY} if where in ("environment", "config.toml") else {}
    settings = Settings.load(Environment({"flag": layer, where: own}))
    log = EventLog(tmp_path / "s.sqlite3")
    session = log.create_session(model="m:x", mode="agent", search="local")
    protection = GuardFactory(settings, log, [McpServers(settings)])
    checked = protection.guard(session, DEFAULT_POLICY, APPROVES[1], SourceTable(), [])
    made: Tool = send
    with pytest.raises(Exception, match=name):
        asyncio.run(checked.permit(ToolCall("c", "send", {"text": KEY[::-1]}), made, Memory()))
    asyncio.run(checked.permit(ToolCall("c", "send", {"text": "tides"}), made, Memory()))
    log.close()
