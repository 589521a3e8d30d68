"""What a server lists: page by page, and not without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.mcp.definitions import Definition
from agent.mcp.text import line

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

PAGES, TOOLS = 40, 500


async def list_tools(client: Client) -> tuple[dict[str, Definition], tuple[str, ...]]:
    """The tools by name, and what is odd about the list, in sentences for the user.

    Of two tools with one name the first counts: what it says is what was pinned and approved.
    """
    found: dict[str, Definition] = {}
    odd: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            if each.name in found:
                odd.append(f"It lists {line(each.name, 80)!r} twice; the first is used.")
            elif len(found) < TOOLS:
                found[each.name] = _definition(each)
        cursor = page.next_cursor
        if not cursor:
            break
    if cursor or len(found) == TOOLS:
        odd.insert(0, f"It lists {TOOLS} tools or {PAGES} pages and more; the rest is left out.")
    return found, tuple(odd[:20])


def _definition(tool: Tool) -> Definition:
    hints = (
        tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    )
    return Definition(tool.name, tool.title or "", tool.description or "", tool.input_schema, hints)
