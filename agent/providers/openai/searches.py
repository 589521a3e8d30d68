"""The provider's own searches and page visits, as events and as sources.

What an item does is known for certain only when it is done, so a search is announced when an item
appears. An item that turns out to be a page visit hands its announcement on to the next search:
announcements never outnumber searches by more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agent.types import PageOpened, SearchFinished, SearchStarted, Source, StreamEvent

_PAGE_ACTIONS = frozenset({"open_page", "find_in_page", "find"})


class Searches:
    """Keeps count; `consulted` is every page met, in order."""

    def __init__(self) -> None:
        self.consulted: list[Source] = []
        self.searches = 0
        self.pages = 0
        self._announced = False
        self._visited: set[str] = set()

    def began(self, item: Mapping[str, Any]) -> Iterable[StreamEvent]:
        """An item has appeared."""
        action = item.get("action") or {}
        if self._announced or action.get("type") in _PAGE_ACTIONS:
            return ()
        self._announced = True
        return (SearchStarted(_query(action)),)

    def ended(self, item: Mapping[str, Any]) -> Iterable[StreamEvent]:
        """An item is done."""
        action = item.get("action") or {}
        failed = item.get("status") in ("failed", "incomplete")
        if action.get("type") in _PAGE_ACTIONS:
            yield from self._visit(action, failed)
            return
        query = _query(action)
        if not self._announced:
            yield SearchStarted(query)
        self._announced = False
        self.searches += 1
        listed = action.get("sources")
        results = len(listed) if isinstance(listed, list) else None
        for source in listed or ():
            if isinstance(source, dict) and source.get("url"):
                self.consulted.append(Source(source["url"], source.get("title") or ""))
        status: Literal["ok", "empty", "error"] = "error" if failed else "ok"
        if results == 0 and not failed:
            status = "empty"
        yield SearchFinished(query, status, results, "The search failed." if failed else None)

    def _visit(self, action: Mapping[str, Any], failed: bool) -> Iterable[StreamEvent]:
        url = action.get("url")
        opening = action["type"] == "open_page"
        self.pages += opening
        if not isinstance(url, str) or not url or (not opening and url in self._visited):
            return
        self._visited.add(url)
        if not failed:
            self.consulted.append(Source(url, state="opened"))
        yield PageOpened(url, "error" if failed else "ok")


def _query(action: Mapping[str, Any]) -> str:
    queries = action.get("queries") or [action.get("query")]
    return "; ".join(query for query in queries if isinstance(query, str) and query)
