"""Collects an answer while it streams, and the searches, pages and citations behind it.

Newer models send searches as parts of the answer; others send the queries with the grounding. Any
chunk may repeat the grounding: the last one counts, and an empty one changes nothing. Parts go back
as they came; only plain text is joined, because a signature belongs to its part. Offsets of
citations count bytes, in a part or in the answer so far, depending on the model.

Spec: https://ai.google.dev/gemini-api/docs/google-search
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from searchloop.agent.providers._answer import ShownAnswer, Stretch
from searchloop.agent.providers._wire import number, text_in
from searchloop.agent.search.citations import numbered
from searchloop.agent.types import (
    Citation,
    Mark,
    Message,
    PageOpened,
    SearchFinished,
    SearchStarted,
    Source,
    Span,
    StreamEvent,
)

Part = dict[str, Any]


class AnswerParts(ShownAnswer):
    """The text, the thinking and the parts of one answer."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Part] = []
        self._pieces: list[str] = []  # of the plain text that the last block will be
        self._stretches: list[Stretch] = []
        self._broken = True
        self._turn = 0  # counts what separates two stretches of thinking

    def say(self, piece: str) -> str:
        """Adds text. Returns the part of it that can be shown now."""
        held = ""
        if self._broken:
            held = self.close(self._stretches[-1]) if self._stretches else ""
            self._stretches.append(Stretch())
        self._broken = False
        self._turn += 1
        stretch = self._stretches[-1]
        return held + self.show(stretch, stretch.add(piece))

    def reason(self, piece: str) -> str:
        """Adds thinking, a paragraph for each stretch."""
        return self.think(piece, self._turn)

    def interrupt(self) -> None:
        """Ends a stretch: text after another kind of part begins a new paragraph."""
        self._broken = True
        self._turn += 1

    def end(self) -> str:
        """Ends the text. Returns the rest of it."""
        self._settle()
        return self.close(self._stretches[-1]) if self._stretches else ""

    def keep(self, part: Part) -> None:
        """Keeps a part, to be sent back as it came."""
        plain = part.keys() <= {"text", "thought"}
        if plain and not part.get("text"):
            return
        last = self.blocks[-1] if plain and self._pieces else None
        if last is not None and bool(last.get("thought")) == bool(part.get("thought")):
            self._pieces.append(part["text"])
            return
        self._settle()
        self._pieces = [part["text"]] if plain else []
        self.blocks.append(dict(part))

    def locate(self, segment: Mapping[str, Any]) -> Span | None:
        """Returns the place of a cited segment in the visible text, in code points."""
        where = self._find([stretch.raw for stretch in self._stretches], segment)
        if where is None:
            return None
        first, last = self._place(where[0]), self._place(where[1] - 1, 1)
        return self.span(first, last)

    def _place(self, at: int, more: int = 0) -> int:
        """Maps an offset in the raw text; `more` is added inside its stretch."""
        for stretch in self._stretches:
            if at < stretch.size:
                return self.place(stretch, at + more)
            at -= stretch.size
        return self._length

    def _find(self, raws: list[str], segment: Mapping[str, Any]) -> Span | None:
        """Finds a segment in the joined stretches; the quoted words decide between readings."""
        said = text_in(segment, "text")
        start, end = number(segment, "startIndex"), number(segment, "endIndex")
        starts = [0, *accumulate(map(len, raws))]
        stretches, whole = list(zip(starts, raws, strict=False)), "".join(raws)
        index = number(segment, "partIndex")
        guess: Span | None = None
        for base, text in (*stretches[index : index + 1], (0, whole), *stretches):
            first, last = _code_points(text, start, end)
            if first < last and (not said or text[first:last] == said):
                return base + first, base + last
            if guess is None and first < last:
                guess = base + first, base + last
        at = _nearest(whole, said, guess[0] if guess else 0) if said else -1
        return (at, at + len(said)) if at >= 0 else guess

    def _settle(self) -> None:
        if self._pieces:
            self.blocks[-1]["text"] = "".join(self._pieces)
            self._pieces = []


def _code_points(text: str, start: int, end: int) -> Span:
    """Converts byte offsets to code points; an offset inside a character moves out of it."""
    data = text.encode("utf-8", "surrogatepass")
    start, end = max(0, start), min(end, len(data))
    first = len(data[:start].decode("utf-8", "ignore"))
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return first, len(data[:end].decode("utf-8", "ignore"))


def _nearest(text: str, words: str, at: int) -> int:
    before, after = text.rfind(words, 0, at + len(words)), text.find(words, at)
    if before < 0 or (after >= 0 and after - at < at - before):
        return after
    return before


_READ = "URL_RETRIEVAL_STATUS_"
_SEARCHES = ("google_search_web", "google_search_image")


class Grounding:
    """The searches and pages of one answer. `before`: the messages, for repeated searches."""

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
        """Reads a toolCall: the server began a search."""
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
        """Reads a toolResponse: the server has the result of a search."""
        query = self._running.pop(str(response.get("id")), None)
        if query is None:
            return
        result = response.get("response")
        result = result if isinstance(result, dict) else {}
        html, error = result.get("search_suggestions"), result.get("error")
        self._html = html if isinstance(html, str) else self._html
        words = (error.get("message") if isinstance(error, dict) else None) or error
        wrong = f"The search failed: {words}" if error else None
        yield SearchFinished(query, "error" if error else "ok", error=wrong)

    def merge(self, candidate: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Reads the metadata of one chunk."""
        if grounding := candidate.get("groundingMetadata"):
            self.data.update({name: value for name, value in grounding.items() if value})
            yield from self._new_searches(grounding.get("webSearchQueries") or ())
        opened = candidate.get("urlContextMetadata") or {}
        for page in opened.get("urlMetadata") or ():
            url = page.get("retrievedUrl")
            if isinstance(url, str) and url and url not in self.pages:
                status = str(page.get("urlRetrievalStatus") or "").removeprefix(_READ)
                self.pages[url] = "ok" if status == "SUCCESS" else status.lower() or "unknown"
                yield PageOpened(url, self.pages[url])

    def end(self) -> Iterator[StreamEvent]:
        """Ends the searches that are still running."""
        for query in self._running.values():
            yield SearchFinished(query)
        self._running.clear()

    def citations(self, answer: AnswerParts) -> tuple[Citation, ...]:
        """Returns the cited pages, numbered by first appearance in the text."""
        pages = [_page(chunk) for chunk in self.data.get("groundingChunks") or ()]
        found: list[tuple[Mark, str, str]] = []
        for support in self.data.get("groundingSupports") or ():
            mark = Mark(answer.locate(support.get("segment") or {}))
            for index in support.get("groundingChunkIndices") or ():
                page = pages[index] if 0 <= index < len(pages) else None
                if page is not None:
                    found.append((mark, page.url, page.title))
        return numbered(found)

    @property
    def consulted(self) -> list[Source]:
        """All consulted pages in order."""
        read = [Source(url, "", "opened") for url, state in self.pages.items() if state == "ok"]
        chunks = map(_page, self.data.get("groundingChunks") or ())
        return [*read, *(page for page in chunks if page is not None)]

    def suggestions(self) -> dict[str, Any]:
        """Returns the suggestions that Google wants shown beside the answer, {} for none."""
        entry = self.data.get("searchEntryPoint") or {}
        html = entry.get("renderedContent") or self._html
        queries = [q for q in self.data.get("webSearchQueries") or () if q] or self._queries
        return {"queries": queries, "html": html} if html else {}

    def _new_searches(self, queries: Iterable[Any]) -> Iterator[StreamEvent]:
        """Yields events for queries without a toolCall, except those of an earlier step."""
        for query in queries:
            if not isinstance(query, str) or not query or query in self._known:
                continue
            self._known.add(query)
            if not self._by_calls:
                self.searches += 1
                yield SearchStarted(query)
                yield SearchFinished(query)


def _page(chunk: Mapping[str, Any]) -> Source | None:
    for kind in ("web", "retrievedContext", "maps", "image"):
        page = chunk.get(kind)
        if page:
            url = page.get("sourceUri") or page.get("uri")
            return Source(url, page.get("title") or "") if url else None
    return None


def _searched(messages: Iterable[Message]) -> set[str]:
    """Returns the queries that the server ran in earlier steps of this turn."""
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
