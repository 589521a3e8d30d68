"""What each tool said of itself when it was first seen, or last approved.

A server that changes a definition afterwards (a "rug pull") finds its tool suspended until the user
has seen the difference. Kept in `mcp_pins.json` by file of configuration, server and tool.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.errors import Conflict
from agent.mcp.definitions import Definition, difference
from agent.mcp.files import change_object, read_object
from agent.mcp.server import Server

FILE = "mcp_pins.json"


class Pins:
    """The pinned definitions. Raises StoreError where the file cannot be read or written."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def settle(self, server: Server, listing: Mapping[str, Definition]) -> dict[str, str]:
        """Pins what is new; tool -> difference for those that are not what was pinned."""
        pinned = self._of(read_object(self._path), server)
        new = {name: each for name, each in listing.items() if name not in pinned}
        if new:
            change_object(self._path, lambda value: self._add(value, server, new))
        return {
            name: difference(pinned[name]["text"], each.text)
            for name, each in listing.items()
            if name in pinned and pinned[name]["hash"] != each.hash
        }

    def known(self, server: Server) -> dict[str, Definition]:
        """The definitions as they were pinned, for a server that is not there yet."""
        found = {}
        for name, pin in self._of(read_object(self._path), server).items():
            said = json.loads(pin["text"])
            words = (said["name"], said["title"], said["description"])
            found[name] = Definition(*words, said["inputSchema"], said["annotations"])
        return found

    def approve(self, server: Server, definition: Definition, seen: str) -> None:
        """Pins the definition that the user has seen. Raises Conflict when it is another by now."""
        if definition.hash != seen:
            raise Conflict(
                "definition_changed",
                f"{definition.name!r} has changed again since you looked.",
                "Look at the new difference first.",
            )
        change_object(
            self._path, lambda value: self._add(value, server, {definition.name: definition})
        )

    def forget(self, server: Server) -> None:
        """Everything about a server that is no longer there."""

        def remove(value: dict[str, Any]) -> None:
            value.get(_scope(server), {}).pop(server.name, None)

        if self._of(read_object(self._path), server):
            change_object(self._path, remove)

    def _of(self, value: dict[str, Any], server: Server) -> dict[str, Any]:
        found: dict[str, Any] = value.get(_scope(server), {}).get(server.name, {})
        return found

    def _add(self, value: dict[str, Any], server: Server, new: Mapping[str, Definition]) -> None:
        pinned = value.setdefault(_scope(server), {}).setdefault(server.name, {})
        for name, each in new.items():
            pinned[name] = {"hash": each.hash, "text": each.text, "at": int(time.time())}


def _scope(server: Server) -> str:
    return server.workspace or "user"
