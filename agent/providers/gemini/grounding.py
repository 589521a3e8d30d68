"""Collects an answer while it streams, and the searches, pages and citations behind it.

Newer models send searches as parts of the answer; others send the queries with the grounding,
usually at the end. Any chunk may repeat the grounding: the last one counts, and an empty one
changes nothing. Parts go back as they came; only pieces of plain text are joined, because a
signature belongs to its part. Offsets of citations count bytes, in a part or in the answer so far,
depending on the model: the quoted words decide.

Spec: https://ai.google.dev/gemini-api/docs/google-search
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from searchloop.agent.search.citations import numbered, sources, widen
from searchloop.agent.search.vendor_marks import Residue
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

JOINER = "\n\n"

Part = dict[str, Any]


class AnswerParts:
    """The text, the thinking and the parts of one answer. Text has no vendor marks."""

    def __init__(self) -> None:
        self.blocks: list[Part] = []
        self._pieces: list[str] = []  # of the plain text that the last block will be
        self._raw: list[str] = []
        self._length = 0
        self._runs: list[int] = []  # where stretches of text begin in the raw text
        self._residue = Residue()
        self._shown: list[str] = []
        self._thinking: list[str] = []
        self._broken = True
        self._thought_broken = False

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._shown)

    @property
    def thinking(self) -> str:
        """The visible thinking so far."""
        return "".join(self._thinking)

    def say(self, piece: str) -> str:
        """Adds text. Returns the part of it that can be shown now."""
        if self._broken:
            self._broken = False
            joined = bool(self._raw) and not self._raw[-1][-1:].isspace()
            self._runs.append(self._length + joined * len(JOINER))
            piece = JOINER + piece if joined else piece
        self._thought_broken = True
        self._raw.append(piece)
        self._length += len(piece)
        return self._show(self._residue.feed(piece))

    def think(self, piece: str) -> str:
        """Adds thinking, a paragraph for each stretch."""
        if self._thought_broken and self._thinking:
            piece = JOINER + piece
        self._thought_broken = False
        self._thinking.append(piece)
        return piece

    def interrupt(self) -> None:
        """Ends a stretch: text after another kind of part begins a new paragraph."""
        self._broken = self._thought_broken = True

    def end(self) -> str:
        """Ends the text. Returns the rest of it."""
        self._settle()
        return self._show(self._residue.close())

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
        """The place of a cited segment in the visible text, in code points."""
        where = self._find("".join(self._raw), segment)
        if where is None:
            return None
        first, last = (self._residue.position(at) for at in where)
        last = min(last, sum(map(len, self._shown)))
        return (first, last) if first < last else widen(self.text, first)

    def _find(self, raw: str, segment: Mapping[str, Any]) -> Span | None:
        said = segment.get("text")
        said = said if isinstance(said, str) else ""
        start, end = _number(segment.get("startIndex")), _number(segment.get("endIndex"))
        guess: Span | None = None
        for base, text in self._readings(raw, _number(segment.get("partIndex"))):
            first, last = _code_points(text, start, end)
            if first < last and (not said or text[first:last] == said):
                return base + first, base + last
            if guess is None and first < last:
                guess = base + first, base + last
        if said:
            at = _nearest(raw, said, guess[0] if guess else 0)
            if at >= 0:
                return at, at + len(said)
        return guess

    def _readings(self, raw: str, index: int) -> Iterator[tuple[int, str]]:
        """The texts that offsets may count in: stretch number `index`, the whole, any stretch."""
        bounds = pairwise([*self._runs, len(raw)])
        stretches = [(start, raw[start:end].removesuffix(JOINER)) for start, end in bounds]
        yield from stretches[index : index + 1]
        yield 0, raw
        yield from stretches

    def _settle(self) -> None:
        if self._pieces:
            self.blocks[-1]["text"] = "".join(self._pieces)
            self._pieces = []

    def _show(self, text: str) -> str:
        if text:
            self._shown.append(text)
        return text


def _code_points(text: str, start: int, end: int) -> Span:
    """Byte offsets as code points; an offset inside a character moves out of it."""
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


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


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

    @property
    def used(self) -> bool:
        """True once the server has searched or read a page."""
        return bool(self.searches or self.pages)

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
        html = result.get("search_suggestions")
        self._html = html if isinstance(html, str) else self._html
        error = result.get("error")
        if error:
            words = (error.get("message") if isinstance(error, dict) else None) or error
            yield SearchFinished(query, "error", error=f"The search failed: {words}")
        else:
            yield SearchFinished(query)

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
        """All consulted pages in order, each address once."""
        read = [Source(url, "", "opened") for url, state in self.pages.items() if state == "ok"]
        chunks = map(_page, self.data.get("groundingChunks") or ())
        return sources([*read, *(page for page in chunks if page is not None)], citations)

    def suggestions(self) -> dict[str, Any]:
        """The search suggestions that Google wants shown beside the answer, {} for none."""
        entry = self.data.get("searchEntryPoint") or {}
        html = entry.get("renderedContent") or self._html
        queries = [q for q in self.data.get("webSearchQueries") or () if q] or self._queries
        return {"queries": queries, "html": html} if html else {}

    def _new_searches(self, queries: Iterable[Any]) -> Iterator[StreamEvent]:
        """Events for queries that had no toolCall, without those of an earlier step."""
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
