"""Names under which MCP tools are offered: `mcp_<server>_<tool>`, each of exactly one tool.

Providers take 64 of `a-z A-Z 0-9 _ -`. What a server's part is follows from the configuration
alone, and what a tool's part is from that tool alone: no server can take or move another's name,
whatever it lists and whenever it connects.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

PREFIX = "mcp_"
MOST = 64
_SERVER = 24  # characters of the server's part
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


def server_parts(names: Iterable[str]) -> dict[str, str]:
    """Server -> its part. No part with a "_" after it begins another one."""
    parts: dict[str, str] = {}
    for name in names:
        part = _OTHER.sub("-", name).strip("-_")[:_SERVER] or "server"
        if any(_clash(part, taken) for taken in parts.values()):
            # Without "_" it can only be equal to another part, and the digest settles that.
            part = f"{part.replace('_', '-')[: _SERVER - 7]}-{_digest(name)}"
        parts[name] = part
    return parts


def _clash(one: str, other: str) -> bool:
    return f"{one}_".startswith(f"{other}_") or f"{other}_".startswith(f"{one}_")


def tool_name(part: str, tool: str) -> str:
    """The name of a server's tool; a digest tells apart what had to be rewritten."""
    start = f"{PREFIX}{part}_"
    plain = _OTHER.sub("_", tool)
    if plain == tool and plain and len(start) + len(plain) <= MOST:
        return start + plain
    return f"{start}{plain[: MOST - len(start) - 7]}_{_digest(tool)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
