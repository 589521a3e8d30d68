"""MCP servers over the API: shown, added, switched, tried, approved.

Adding a server means running a program, so it takes two requests of the user's page: one that
returns the exact commands, and one that keeps them. No model and no server reaches these handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agent.errors import ConfigError
from agent.mcp import McpServers, edit
from agent.mcp.report import plan_of
from web.calls import Call, Handler, OnLoop, Reply

T = TypeVar("T")
_SWITCHES = {"enabled": (bool, type(None)), "effect": (str, type(None))}


class Served(Protocol):
    """What has MCP servers."""

    @property
    def mcp(self) -> McpServers:
        """They belong to the server's loop."""


class McpApi:
    """Everything here is done on the loop that the servers live on."""

    def __init__(self, house: Served, on_loop: OnLoop) -> None:
        self._house = house
        self._on_loop = on_loop

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """(method, path as in `openapi.ROUTES`) -> handler."""
        server = "/api/mcp/{name}"
        return {
            ("get", "/api/mcp"): self.list,
            ("post", "/api/mcp"): self.add,
            ("post", "/api/mcp/trust"): self.trust,
            ("patch", server): self.change,
            ("delete", server): self.remove,
            ("post", f"{server}/test"): self.test,
            ("post", server + "/tools/{tool}/approve"): self.approve,
        }

    def list(self, call: Call) -> Reply:
        """The servers of the user's file, and of a folder's once it is trusted."""
        return self._overview(_folder(call.query.get("workspace")))

    def add(self, call: Call) -> Reply:
        """What a configuration would run; with `save` it is kept as well."""
        raw, servers = edit.pasted(call.body["config"])
        save = bool(call.body.get("save"))
        if save:
            replace = bool(call.body.get("replace"))
            self._do(lambda: edit.add(self._mcp.catalogue.user_file, raw, replace=replace))
        return Reply({"servers": [plan_of(server) for server in servers], "saved": save})

    def trust(self, call: Call) -> Reply:
        """A project's file is used from now on, as long as it does not change."""
        folder = _folder(call.body["workspace"]) or ""
        self._do(lambda: self._mcp.catalogue.trust(folder, call.body["hash"]))
        return self._overview(folder)

    def change(self, call: Call) -> Reply:
        """Switches of a server and of its tools."""
        changes = dict(call.body)
        for tool, wanted in changes.get("tools", {}).items():
            _check_switch(tool, wanted)
        self._do(lambda: self._mcp.switch(call.path["name"], changes))
        return self._overview(None)

    def remove(self, call: Call) -> Reply:
        """Forgets a server, with what was known of it."""
        self._do(lambda: self._mcp.remove(call.path["name"]))
        return Reply(status=204)

    def test(self, call: Call) -> Reply:
        """Starts it, or asks it, now."""
        folder = _folder(call.query.get("workspace"))
        return Reply(self._on_loop(self._mcp.test(call.path["name"], folder)))

    def approve(self, call: Call) -> Reply:
        """Uses a changed tool again, as the user has just seen it."""
        folder = _folder(call.query.get("workspace"))
        name, tool, seen = call.path["name"], call.path["tool"], call.body["definition"]
        return Reply(self._on_loop(self._mcp.approve(name, tool, seen, folder)))

    @property
    def _mcp(self) -> McpServers:
        return self._house.mcp

    def _overview(self, folder: str | None) -> Reply:
        return Reply(self._do(lambda: self._mcp.overview(folder)))

    def _do(self, work: Callable[[], T]) -> T:
        async def there() -> T:
            return work()

        return self._on_loop(there())


def _check_switch(tool: str, wanted: Any) -> None:
    known = isinstance(wanted, Mapping) and all(
        key in _SWITCHES and isinstance(value, _SWITCHES[key]) for key, value in wanted.items()
    )
    if not known:
        raise ConfigError(
            "bad_request",
            f"The switches of the tool {tool[:80]!r} are not right.",
            'Write {"enabled": true} or {"effect": "read"}.',
        )


def _folder(name: str | None) -> str | None:
    """A folder as the catalogue knows it. Raises ConfigError."""
    if not name:
        return None
    path = Path(name).expanduser()
    if "\0" in name or not path.is_absolute() or not path.is_dir():
        raise ConfigError(
            "bad_workspace", f"{name[:200]!r} is not a folder.", "Give the full path of a folder."
        )
    return str(path)
