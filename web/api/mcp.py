"""Handlers for MCP servers: list, add, switch, test, approve.

A new server is a program that runs, so the page first gets the exact commands and then saves them.
"""

from __future__ import annotations

import json
from pathlib import Path

from searchloop.agent.errors import ConfigError
from searchloop.agent.mcp import config as edit
from searchloop.agent.mcp.manager import plan_of
from searchloop.web.api.calls import Call, Handlers, Reply, checked
from searchloop.web.api.openapi import route

_PATIENCE = 20.0  # seconds that a request waits for a server to start


class McpApi(Handlers):
    """/api/mcp. All work is done on the loop that the servers live on."""

    @route("get", "/api/mcp", "McpServers", query=("workspace",))
    def list(self, call: Call) -> Reply:
        """Lists the servers of the user's file, and of a folder's file once it is trusted."""
        return self._overview(_folder(call.query.get("workspace")))

    @route("post", "/api/mcp", "McpPlan", "McpConfig", whose="operator")
    def add(self, call: Call) -> Reply:
        """Returns the commands that a configuration would run; with `save` also saves it."""
        raw, servers = edit.pasted(call.body["config"])
        save = bool(call.body.get("save"))
        if save:
            replace = bool(call.body.get("replace"))
            self._on_loop.do(
                lambda: edit.add(self._services.mcp.catalogue.user_file, raw, replace=replace)
            )
        return Reply({"servers": [plan_of(server) for server in servers], "saved": save})

    @route("post", "/api/mcp/trust", "McpServers", "McpTrust", whose="operator")
    def trust(self, call: Call) -> Reply:
        """Trusts a project's file until it changes."""
        folder = _folder(call.body["workspace"]) or ""
        self._on_loop.do(lambda: self._services.mcp.catalogue.trust(folder, call.body["hash"]))
        return self._overview(folder)

    @route("patch", "/api/mcp/{name}", "McpServers", "McpChanges")
    def change(self, call: Call) -> Reply:
        """Changes switches of a server and of its tools."""
        changes = dict(call.body)
        for tool, switches in changes.get("tools", {}).items():
            checked(switches, "ToolSwitches", f"tools.{tool[:80]}")
        self._on_loop.do(lambda: self._services.mcp.switch(call.path["name"], changes))
        return self._overview(None)

    @route("get", "/api/mcp/{name}", "McpEntry", whose="operator")
    def entry(self, call: Call) -> Reply:
        """Returns a server of the user's file as JSON text, to be edited; its keys are masked."""
        name = call.path["name"]
        given = edit.entry(self._services.mcp.catalogue.user_file, name)
        return Reply({"config": json.dumps({"mcpServers": {name: given}}, indent=2)})

    @route("delete", "/api/mcp/{name}", None)
    def remove(self, call: Call) -> Reply:
        """Removes a server and everything known of it."""
        self._on_loop.do(lambda: self._services.mcp.remove(call.path["name"]))
        return Reply(status=204)

    @route("post", "/api/mcp/{name}/test", "McpServer", "Nothing", query=("workspace",))
    def test(self, call: Call) -> Reply:
        """Connects to a server now and lists its tools.

        After some seconds it answers with the state `connecting`; the list then has the outcome.
        """
        folder, name = _folder(call.query.get("workspace")), call.path["name"]
        return Reply(self._on_loop(self._services.mcp.test(name, folder, _PATIENCE)))

    @route(
        "post",
        "/api/mcp/{name}/tools/{tool}/approve",
        "McpServer",
        "McpApproval",
        query=("workspace",),
    )
    def approve(self, call: Call) -> Reply:
        """Accepts a changed tool in the definition that the user has just seen."""
        folder = _folder(call.query.get("workspace"))
        name, tool, seen = call.path["name"], call.path["tool"], call.body["definition"]
        return Reply(self._on_loop(self._services.mcp.approve(name, tool, seen, folder)))

    @route("get", "/api/prompts", "McpPrompts", query=("workspace",))
    def prompts(self, call: Call) -> Reply:
        """Lists the prompts of MCP servers that run."""
        found = self._services.mcp.prompts(_folder(call.query.get("workspace")))
        return Reply({"prompts": self._on_loop(found)})

    @route("post", "/api/prompts", "McpText", "WantedPrompt")
    def prompt(self, call: Call) -> Reply:
        """Fills a prompt of an MCP server, SERVER:PROMPT, from words; nothing is asked yet."""
        wanted, folder = call.body, _folder(call.body.get("workspace"))
        text = self._services.mcp.prompt(wanted["name"], wanted.get("words", ""), folder)
        return Reply({"text": self._on_loop(text)})

    def _overview(self, folder: str | None) -> Reply:
        return Reply(self._on_loop.do(lambda: self._services.mcp.overview(folder)))


def _folder(name: str | None) -> str | None:
    """Returns a folder's full path, None for no name. Raises ConfigError for what is no folder."""
    if not name:
        return None
    path = Path(name).expanduser()
    if "\0" in name or not path.is_absolute() or not path.is_dir():
        what = f"{name[:200]!r} is not a folder."
        raise ConfigError("bad_workspace", what, "Give the full path of a folder.")
    return str(path)
