"""What the provider searched and read, as events, sources and citations.

With newer models searches show as parts of the answer when they happen; otherwise the queries come
with the grounding, usually at the end, and are told then. Grounding may come with any chunk, more
than once and growing: what came last counts, and an empty one takes nothing away.

Spec: https://ai.google.dev/gemini-api/docs/google-search
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent.cited import numbered
from agent.providers.gemini.answer import Answer
from agent.types import (
    Citation,
    Mark,
    Message,
    PageOpened,
    SearchFinished,
    SearchStarted,
    Source,
    SourceState,
    StreamEvent,
)

_READ = "URL_RETRIEVAL_STATUS_"
_SEARCHES = ("google_search_web", "google_search_image")
_RANK: dict[SourceState, int] = {"found": 0, "opened": 1, "cited": 2}


class Grounding:
    """The searches and pages of one answer. `before`: the conversation, for searches told twice."""

    def __init__(self, before: Iterable[Message]) -> None:
        self.searches = 0
        self.data: dict[str, Any] = {}
        self.pages: dict[str, str] = {}
        self._known = _searched(before)
        self._running: dict[str, str] = {}
        self._by_calls = False
        self._html = ""
        self._queries: list[str] = []

    def called(self, call: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """The server began something by itself."""
        kind = str(call.get("toolType")).lower()
        if kind not in _SEARCHES:
            return
        self._by_calls = True
        self.searches += kind == _SEARCHES[0]
        queries = _queries(call)
        self._known.update(queries)
        self._queries += queries
        query = "; ".join(queries)
        self._running[str(call.get("id"))] = query
        yield SearchStarted(query)

    def answered(self, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """The server has the result of what it began."""
        query = self._running.pop(str(response.get("id")), None)
        if query is None:
            return
        result = response.get("response")
        result = result if isinstance(result, dict) else {}
        html = result.get("search_suggestions")
        self._html = html if isinstance(html, str) else self._html
        error = result.get("error")
        if error:
            yield SearchFinished(query, "error", error=f"The search failed: {_words(error)}")
        else:
            yield SearchFinished(query)

    def merge(self, candidate: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """The metadata of one chunk."""
        grounding = candidate.get("groundingMetadata")
        if grounding:
            self.data.update({name: value for name, value in grounding.items() if value})
            yield from self._told(grounding.get("webSearchQueries") or ())
        opened = candidate.get("urlContextMetadata") or {}
        for page in opened.get("urlMetadata") or ():
            url = page.get("retrievedUrl")
            if isinstance(url, str) and url and url not in self.pages:
                status = str(page.get("urlRetrievalStatus") or "").removeprefix(_READ)
                self.pages[url] = "ok" if status == "SUCCESS" else status.lower() or "unknown"
                yield PageOpened(url, self.pages[url])

    def end(self) -> Iterator[StreamEvent]:
        """The answer is over, and with it all that was searched."""
        for query in self._running.values():
            yield SearchFinished(query)
        self._running.clear()

    def citations(self, answer: Answer) -> tuple[Citation, ...]:
        """The cited pages, numbered by first appearance in the text."""
        pages = [_page(chunk) for chunk in self.data.get("groundingChunks") or ()]
        found: list[tuple[Mark, str, str]] = []
        for support in self.data.get("groundingSupports") or ():
            mark = Mark(answer.locate(support.get("segment") or {}))
            for index in support.get("groundingChunkIndices") or ():
                page = pages[index] if 0 <= index < len(pages) else None
                if page is not None:
                    found.append((mark, page.url, page.title))
        return numbered(found)

    def sources(self, citations: Iterable[Citation]) -> tuple[Source, ...]:
        """Everything that was consulted, in order, each address once."""
        read = [Source(url, "", "opened") for url, state in self.pages.items() if state == "ok"]
        chunks = map(_page, self.data.get("groundingChunks") or ())
        return merged([*read, *(page for page in chunks if page is not None)], citations)

    def suggestions(self) -> dict[str, Any]:
        """What the provider wants shown beside a searched answer, as data; empty without."""
        entry = self.data.get("searchEntryPoint") or {}
        html = entry.get("renderedContent") or self._html
        queries = [q for q in self.data.get("webSearchQueries") or () if q] or self._queries
        return {"queries": queries, "html": html} if html else {}

    def _told(self, queries: Iterable[Any]) -> Iterator[StreamEvent]:
        """Queries that did not show as calls; those of an earlier step come again."""
        for query in queries:
            if not isinstance(query, str) or not query or query in self._known:
                continue
            self._known.add(query)
            if not self._by_calls:
                self.searches += 1
                yield SearchStarted(query)
                yield SearchFinished(query)


def merged(consulted: Iterable[Source], citations: Iterable[Citation]) -> tuple[Source, ...]:
    """Each address once, in order, with the most that happened to it."""
    cited = (Source(c.url, c.title, "cited", c.n) for c in citations)
    known: dict[str, Source] = {}
    for source in (*consulted, *cited):
        old = known.get(source.url, source)
        state = max(old.state, source.state, key=lambda s: _RANK[s])
        number = old.n if source.n is None else source.n
        known[source.url] = Source(source.url, old.title or source.title, state, number)
    return tuple(known.values())


def _page(chunk: Mapping[str, Any]) -> Source | None:
    for kind in ("web", "retrievedContext", "maps", "image"):
        page = chunk.get(kind)
        if page:
            url = page.get("sourceUri") or page.get("uri")
            return Source(url, page.get("title") or "") if url else None
    return None


def _searched(messages: Iterable[Message]) -> set[str]:
    """Queries that the server ran in earlier steps of this turn."""
    found: set[str] = set()
    for message in reversed(list(messages)):
        if message.role == "user":
            break
        for block in message.provider_data.blocks if message.provider_data else ():
            if isinstance(block, dict) and isinstance(block.get("toolCall"), dict):
                found.update(_queries(block["toolCall"]))
    return found


def _queries(call: Mapping[str, Any]) -> list[str]:
    arguments = call.get("args") or {}
    queries = arguments.get("queries") or [arguments.get("query")]
    return [query for query in queries if isinstance(query, str) and query]


def _words(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
