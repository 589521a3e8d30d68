"""MCP servers over the API: shown before they are kept, tried, switched, approved, trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchloop.web.api.openapi import document
from tests.agent.mcp.served import hostile, write
from tests.web.house import with_api


def is_described(value: Mapping[str, Any], schema: str) -> bool:
    """Whether it has all fields of its description and no others."""
    described = document()["components"]["schemas"][schema]
    return set(described["required"]) <= set(value) <= set(described["properties"])


async def test_a_server_is_shown_before_it_is_kept(tmp_path: Path) -> None:
    """The exact command first; nothing is written or run until the user has said so."""
    seen = tmp_path / "seen"
    config = json.dumps({"mcpServers": {"a": hostile("ok", seen, env={"KEY": "${NOT_SET}"})}})
    async with with_api(tmp_path) as (ask, _):
        empty = (await ask("GET", "/api/mcp")).data
        assert (empty["servers"], empty["untrusted"]) == ([], None)
        assert is_described(empty, "McpServers")
        shown = (await ask("POST", "/api/mcp", {"config": config})).data
        assert shown["saved"] is False
        assert shown["servers"][0]["command"][-2:] == ["ok", str(seen)]
        assert shown["servers"][0]["variables"] == ["KEY"]
        assert is_described(shown["servers"][0], "McpPlanned")
        assert (await ask("GET", "/api/mcp")).data["servers"] == []
        kept = await ask("POST", "/api/mcp", {"config": config, "save": True})
        assert (kept.status, kept.data["saved"]) == (200, True)
        again = await ask("POST", "/api/mcp", {"config": config, "save": True})
        assert (again.status, again.error["code"]) == (409, "server_exists")
        problem = (await ask("GET", "/api/mcp")).data["problems"][0]
        assert (problem["server"], problem["code"]) == ("a", "missing_variable")
        assert not seen.exists()
        more = {"config": config.replace("NOT_SET", "HOME:-x"), "save": True, "replace": True}
        assert (await ask("POST", "/api/mcp", more)).status == 200
        server = (await ask("GET", "/api/mcp")).data["servers"][0]
        assert (server["state"], server["effect"]) == ("idle", "exec")
        assert not seen.exists()
        for bad in ("{", "[]", "{}", '{"mcpServers": {"a": {}}}'):
            refused = await ask("POST", "/api/mcp", {"config": bad, "save": True})
            assert refused.status == 400
            assert refused.error["remedy"]


async def test_a_server_is_tried_switched_and_forgotten(tmp_path: Path) -> None:
    """With its tools, what they cost, and what it wrote when it does not start."""
    async with with_api(tmp_path) as (ask, house):
        write(house.settings.home, {"a": hostile(), "bad": hostile("exit")})
        tried = (await ask("POST", "/api/mcp/a/test", {})).data
        assert (tried["state"], len(tried["tools"])) == ("ready", 13)
        assert is_described(tried, "McpServer")
        assert is_described(tried["tools"][0], "McpTool")
        bad = (await ask("POST", "/api/mcp/bad/test", {})).data
        assert (bad["state"], bad["stderr"]) == ("failed", "no such database\n")
        changes = {
            "private": True,
            "tools": {"echo": {"effect": "read"}, "env": {"enabled": False}},
        }
        servers = (await ask("PATCH", "/api/mcp/a", changes)).data["servers"]
        assert (servers[0]["private"], servers[0]["effect"]) == (True, "exec")
        assert (servers[0]["state"], len(servers[0]["tools"])) == ("ready", 13)
        assert servers[0]["tokens"] < tried["tokens"]
        tools = {t["name"]: t for t in (await ask("POST", "/api/mcp/a/test", {})).data["tools"]}
        assert (tools["echo"]["effect"], tools["env"]["enabled"]) == ("read", False)
        back = {"tools": {"echo": {"effect": None}, "env": {"enabled": True}}}
        assert (await ask("PATCH", "/api/mcp/a", back)).status == 200
        for wrong in ({"tools": {"x": 1}}, {"tools": {"x": {"y": 1}}}, {"effect": "all"}):
            assert (await ask("PATCH", "/api/mcp/a", wrong)).status == 400
        off = (await ask("PATCH", "/api/mcp/a", {"disabled": True})).data["servers"]
        assert off[0]["state"] == "disabled"
        assert (await ask("DELETE", "/api/mcp/a")).status == 204
        assert (await ask("DELETE", "/api/mcp/a")).status == 404
        assert (await ask("PATCH", "/api/mcp/a", {"disabled": True})).status == 404
        assert (await ask("POST", "/api/mcp/a/test", {})).status == 404


async def test_a_changed_tool_is_approved_as_it_was_seen(tmp_path: Path) -> None:
    """The page shows the difference and sends the hash of what it showed."""
    async with with_api(tmp_path) as (ask, house):
        write(house.settings.home, {"a": hostile()})
        await ask("POST", "/api/mcp/a/test", {})
        write(house.settings.home, {"a": hostile("rug")})
        tools = (await ask("POST", "/api/mcp/a/test", {})).data["tools"]
        echo = next(tool for tool in tools if tool["name"] == "echo")
        assert "Now says something else" in echo["suspended"]["diff"]
        path = "/api/mcp/a/tools/echo/approve"
        wrong = await ask("POST", path, {"definition": "0" * 64})
        assert (wrong.status, wrong.error["code"]) == (409, "definition_changed")
        told = (await ask("POST", path, {"definition": echo["definition"]})).data
        assert all(tool["suspended"] is None for tool in told["tools"])
        gone = await ask("POST", "/api/mcp/a/tools/x/approve", {"definition": "0" * 64})
        assert gone.status == 404


async def test_a_project_is_trusted_as_it_was_seen(tmp_path: Path) -> None:
    """By folder and content; a folder that is none is refused."""
    project = tmp_path / "project"
    write(project, {"it": hostile()}, ".mcp.json")
    async with with_api(tmp_path) as (ask, _):
        path = f"/api/mcp?workspace={project}"
        waits = (await ask("GET", path)).data
        assert (waits["servers"], waits["untrusted"]["commands"][0]["name"]) == ([], "it")
        trust = {"workspace": str(project), "hash": "0" * 64}
        assert (await ask("POST", "/api/mcp/trust", trust)).status == 409
        trust["hash"] = waits["untrusted"]["hash"]
        told = (await ask("POST", "/api/mcp/trust", trust)).data
        assert [server["workspace"] for server in told["servers"]] == [str(project)]
        tried = await ask("POST", f"/api/mcp/it/test?workspace={project}", {})
        assert tried.data["state"] == "ready"
        assert (await ask("GET", "/api/mcp")).data["servers"] == []
        assert (await ask("GET", "/api/mcp?workspace=nowhere")).status == 400
