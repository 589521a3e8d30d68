"""Agents, workspaces, undo and plans over the API."""

from __future__ import annotations

from pathlib import Path

from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import ToolContext
from searchloop.agent.tools.workspace import Workspace
from tests.agent.scripted import Memory
from tests.web.house import with_api


async def test_agents_from_made_to_removed(tmp_path: Path) -> None:
    """Listed with the built-in ones, changed field by field, and told apart when wrong."""
    async with with_api(tmp_path) as (ask, _):
        listed = (await ask("GET", "/api/agents")).data["agents"]
        builtin = listed[0]["name"]
        assert all(agent["builtin"] for agent in listed)
        made = await ask("POST", "/api/agents", {"name": "poet", "system": "Rhyme."})
        assert (made.status, made.data["system"], made.data["builtin"]) == (201, "Rhyme.", False)
        again = await ask("POST", "/api/agents", {"name": "poet"})
        assert (again.status, again.error["code"]) == (409, "agent_exists")
        changed = await ask("PATCH", "/api/agents/poet", {"tools": ["read_*"], "mode": "agent"})
        assert changed.data["tools"] == ["read_*"]
        assert changed.data["system"] == "Rhyme."
        for body in ({"mode": "root"}, {"tools": "all"}, {"colour": "red"}):
            assert (await ask("PATCH", "/api/agents/poet", body)).status == 400
        assert (await ask("DELETE", "/api/agents/poet")).status == 204
        assert (await ask("PATCH", "/api/agents/poet", {})).status == 404
        assert (await ask("DELETE", f"/api/agents/{builtin}")).error["code"] == "builtin_agent"
        mine = (await ask("PATCH", f"/api/agents/{builtin}", {"system": "Rhyme."})).data
        assert (mine["builtin"], mine["changed"]) == (False, True)
        assert (await ask("DELETE", f"/api/agents/{builtin}")).status == 204
        assert (await ask("GET", "/api/agents")).data["agents"] == listed


async def test_a_session_inherits_from_its_agent_and_may_override(tmp_path: Path) -> None:
    """Model, mode and search are the agent's where nothing else was said; it can be taken away."""
    async with with_api(tmp_path) as (ask, house):
        poet = {"name": "poet", "model": "m:rhyme", "mode": "plan", "system": "Rhyme."}
        await ask("POST", "/api/agents", poet)
        made = (await ask("POST", "/api/sessions", {"agent": "poet"})).data
        assert (made["agent"], made["model"], made["mode"], made["search"]) == (
            *("poet", "m:rhyme", "plan", "off"),
        )
        own = (await ask("POST", "/api/sessions", {"agent": "poet", "mode": "ask"})).data
        assert own["mode"] == "ask"
        path = f"/api/sessions/{own['id']}"
        assert (await ask("PATCH", path, {"agent": None})).data["agent"] is None
        assert (await ask("PATCH", path, {"agent": "poet"})).data["mode"] == "plan"
        missing = await ask("PATCH", path, {"agent": "nobody"})
        assert (missing.status, missing.error["code"]) == (404, "no_agent")
        assert (await ask("POST", "/api/sessions", {"agent": "nobody"})).status == 404
        assert len(house.log.sessions()) == 2


async def test_files_are_undone(tmp_path: Path) -> None:
    """The files are as before, the log says so, and the session remembers it for the model."""
    (tmp_path / "ws").mkdir()
    async with with_api(tmp_path / "home") as (ask, house):
        made = (await ask("POST", "/api/sessions", {"workspace": str(tmp_path / "ws")})).data
        path = f"/api/sessions/{made['id']}"
        nothing = await ask("POST", f"{path}/undo", {})
        assert (nothing.status, nothing.error["code"]) == (409, "nothing_to_undo")
        workspace = Workspace.of(house.settings)
        tools = {t.spec.name: t for t in await workspace.tools(house.log.session(made["id"]))}
        context = ToolContext("c", SourceTable(), Memory())
        await tools["create_file"].run({"path": "a.txt", "content": "x"}, context)
        lease = house.log.leases.claim(made["id"], "r", "somebody")
        assert (await ask("POST", f"{path}/undo", {})).error["code"] == "busy"
        house.log.leases.release(lease)
        assert (await ask("POST", f"{path}/undo", {})).data == {"files": ["a.txt"]}
        assert not (tmp_path / "ws" / "a.txt").exists()
        assert house.log.last_event(made["id"]).type == "files_undone"
        assert house.log.session(made["id"]).settings["undone"] == ["a.txt"]
        await ask("POST", f"{path}/messages", {"text": "hello"})
        await house.runner.wait(made["id"])
        (asked,) = [e for e in house.log.read(made["id"]) if e.type == "user_message"]
        assert "a.txt" in asked.data["note"]
        assert (await ask("POST", "/api/sessions/nobody/undo", {})).status == 404
        for workspace in (None, str(tmp_path / "ws")):
            told = await ask("PATCH", path, {"workspace": workspace})
            assert told.data["workspace"] == workspace


async def test_a_plan_is_exported_and_carried_out(tmp_path: Path) -> None:
    """Its steps stand behind the answer, in Markdown and in HTML, files in code marks; running it
    is a question in agent mode."""
    async with with_api(tmp_path) as (ask, house):
        made = (await ask("POST", "/api/sessions", {"mode": "plan", "model": "m:x"})).data
        path = f"/api/sessions/{made['id']}"
        await ask("POST", f"{path}/messages", {"text": "Plan it"})
        await house.runner.wait(made["id"])
        step = {"text": "Read <it>", "files": ["a`b.txt"], "sources": [1]}
        plan = {"plan_id": "p", "title": "Do this", "steps": [step], "files": [], "sources": []}
        house.log.append(made["id"], [("plan", plan)])
        text = (await ask("GET", f"{path}/export?format=md")).body.decode()
        assert "**Plan: Do this**\n\n1. Read &lt;it> - Touches: `ab.txt` [1]" in text
        page = (await ask("GET", f"{path}/export?format=html")).body.decode()
        assert "Read &lt;it&gt;" in page
        assert (await ask("POST", f"{path}/plans/nothing/run", {})).status == 404
        assert (await ask("POST", f"{path}/plans/p/run", {})).status == 202
        _, asked = [e for e in house.log.read(made["id"]) if e.type == "user_message"]
        assert asked.data["text"].startswith("Carry out this plan: Do this\n")
        assert asked.data["plan"] == "p"
        assert house.log.session(made["id"]).mode == "agent"
