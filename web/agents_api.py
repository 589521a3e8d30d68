"""Agents over the API: listed, made, changed and removed."""

from __future__ import annotations

from pathlib import Path

from agent.presets import Presets
from web.calls import Call, Handler, Reply


class AgentsApi:
    """See `agent.presets`."""

    def __init__(self, home: Path) -> None:
        self._presets = Presets(home)

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """(method, path as in `openapi.ROUTES`) -> handler."""
        return {
            ("get", "/api/agents"): self.list,
            ("post", "/api/agents"): self.create,
            ("patch", "/api/agents/{name}"): self.change,
            ("delete", "/api/agents/{name}"): self.delete,
        }

    def list(self, call: Call) -> Reply:
        """By name, the built-in ones among them."""
        return Reply({"agents": [preset.as_dict() for preset in self._presets.all()]})

    def create(self, call: Call) -> Reply:
        """A new agent."""
        body = dict(call.body)
        return Reply(self._presets.create(body.pop("name"), body).as_dict(), 201)

    def change(self, call: Call) -> Reply:
        """Sessions that have the agent already keep it as it was."""
        return Reply(self._presets.change(call.path["name"], call.body).as_dict())

    def delete(self, call: Call) -> Reply:
        """Removes one that the user made; a built-in one that was changed is as it was."""
        self._presets.delete(call.path["name"])
        return Reply(status=204)
