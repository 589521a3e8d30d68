"""`search_chats`: searches the user's other chats, for models that the user lets do so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from searchloop.agent.errors import AgentError
from searchloop.agent.log.events import day_of
from searchloop.agent.log.session import Session
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.types import ToolSpec

if TYPE_CHECKING:
    from searchloop.agent.log.find import FoundTurn

_SPEC = ToolSpec(
    name="search_chats",
    description=(
        "Search the user's earlier chats with you. Returns extracts of questions and answers with "
        "date and title. Use it when the user speaks of something that was said before."
    ),
    parameters=object_schema({"query": text_schema("A few words that were said")}, "query"),
    effect="read",
)
_CHATS = 6
Find = Callable[[str, int], Mapping[str, Sequence["FoundTurn"]]]
_NOTHING = "No other chat holds these words."


def search_chats(find: Find, chat_of: Callable[[str], Session], own: str) -> Tool:
    """Returns the tool; it leaves out `own`, the session that asks."""

    def found(query: str) -> str:
        lines: list[str] = []
        for session, places in find(query, _CHATS + 1).items():
            try:
                chat = chat_of(session)
            except AgentError:  # deleted meanwhile
                continue
            if session != own:
                lines.append(f"Chat of {day_of(chat.updated)}: {chat.title or 'without a title'}")
                lines += [f"  {place.part}: {place.snippet}" for place in places]
        return "\n".join(lines) or _NOTHING

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
        return await asyncio.to_thread(found, str(arguments["query"]))

    # An answer of an earlier chat may repeat what a web page said.
    return Tool(_SPEC, run, origin="ours", private=True, untrusted=True)
