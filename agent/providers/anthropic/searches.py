"""Turns the server's own searches and page visits into events and sources.

A search begins when its arguments are complete, for then the query is known; it ends when its
result block arrives. After a pause the result comes in the next answer, so the query is looked up
in the transcript.

Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchloop.agent.providers._wire import text_in
from searchloop.agent.types import (
    Message,
    PageOpened,
    SearchFinished,
    SearchStarted,
    Source,
    StreamEvent,
)
from searchloop.analysis.dates import iso_date

_SEARCH, _FETCH = "web_search", "web_fetch"


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page that the provider read; `text` is empty where it was not text."""

    url: str
    title: str
    text: str


class ServerTools:
    """Follows the server's tools through one response; `consulted` lists the pages in order."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.consulted: list[Source] = []
        self.searches = 0
        self.pages = 0
        self._messages = messages
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._documents: list[FetchedPage] = []

    def began(self, block: Mapping[str, Any]) -> Iterable[StreamEvent]:
        """Reads a complete call of the server's own."""
        given = block.get("input")
        asked = given if isinstance(given, Mapping) else {}
        self._asked[str(block.get("id"))] = asked
        return (SearchStarted(text_in(asked, "query")),) if block.get("name") == _SEARCH else ()

    def ended(self, block: Mapping[str, Any]) -> Iterable[StreamEvent]:
        """Reads the result of such a call."""
        kind = str(block.get("type"))
        if kind == f"{_SEARCH}_tool_result":
            return (self._searched(block),)
        if kind == f"{_FETCH}_tool_result":
            return self._visited(block)
        return ()

    def locate(self, citation: Mapping[str, Any]) -> tuple[str, str] | None:
        """Returns address and title behind a citation of any kind, or None if unknown."""
        ours = citation.get("type") == "search_result_location"
        url = text_in(citation, "source" if ours else "url")
        if url or ours:
            return (url, text_in(citation, "title")) if url else None
        if page := self._page(text_in(citation, "document_title"), citation):
            return page
        document = self._document(citation)
        return (document.url, document.title) if document else None

    def _page(self, title: str, citation: Mapping[str, Any]) -> tuple[str, str] | None:
        """Finds the cited page of a PDF of the user's, whose title we made of its address."""
        number = citation.get("start_page_number")
        for file in (file for message in self._messages for file in message.attachments):
            if title == file.url().partition("#")[0] and isinstance(number, int):
                return file.url(number), file.title(number)
        return None

    def _searched(self, block: Mapping[str, Any]) -> SearchFinished:
        query = text_in(self._question(block), "query")
        self.searches += 1
        content = block.get("content")
        if not isinstance(content, list):
            code = _code(content)
            return SearchFinished(query, "error", None, f"The search failed: {code}.")
        rows = [row for row in content if isinstance(row, Mapping) and text_in(row, "url")]
        self.consulted += [
            Source(
                text_in(row, "url"), text_in(row, "title"), published=iso_date(row.get("page_age"))
            )
            for row in rows
        ]
        return SearchFinished(query, "ok" if rows else "empty", len(rows))

    def _visited(self, block: Mapping[str, Any]) -> Iterable[StreamEvent]:
        self.pages += 1
        asked, content = text_in(self._question(block), "url"), block.get("content")
        document = _read(content)
        if document is None:
            return (PageOpened(asked, _code(content)),)
        self._documents.append(document)
        self.consulted.append(Source(document.url, document.title, "opened"))
        return (PageOpened(document.url),)

    def _question(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the arguments of the call that this result answers."""
        call_id = str(block.get("tool_use_id"))
        if call_id not in self._asked:
            for earlier in _raw(self._messages):
                if earlier.get("id") == call_id and isinstance(earlier.get("input"), Mapping):
                    self._asked[call_id] = earlier["input"]
        return self._asked.get(call_id, {})

    def _document(self, citation: Mapping[str, Any]) -> FetchedPage | None:
        """Finds the cited page by its text, else by its title, else by its position."""
        earlier = [_read(b.get("content")) for b in _raw(self._messages)]
        documents = [d for d in earlier if d is not None] + self._documents
        quote, title = text_in(citation, "cited_text").strip(), text_in(citation, "document_title")
        matches = [d for d in documents if quote and quote in d.text]
        matches = matches or [d for d in documents if title and title == d.title]
        if matches:
            return matches[-1]
        index = citation.get("document_index")
        inside = isinstance(index, int) and 0 <= index < len(documents)
        return documents[index] if isinstance(index, int) and inside else None


def _raw(messages: Iterable[Message]) -> Iterable[Mapping[str, Any]]:
    for message in messages:
        if message.provider_data is not None:
            yield from (b for b in message.provider_data.blocks if isinstance(b, Mapping))


def _read(content: object) -> FetchedPage | None:
    """Returns the page in the content of a fetch result, or None if there is none."""
    if not isinstance(content, Mapping) or content.get("type") != "web_fetch_result":
        return None
    page = content.get("content")
    page = page if isinstance(page, Mapping) else {}
    source = page.get("source")
    text = text_in(source, "data") if text_in(source, "type") == "text" else ""
    url = text_in(content, "url")
    return FetchedPage(url, text_in(page, "title"), text) if url else None


def _code(content: object) -> str:
    """Returns the server's code of an error in words, such as `url not accessible`."""
    return (text_in(content, "error_code") or "unknown").replace("_", " ")
