"""Decodes responses of the Messages API, streamed or whole, into events.

A block counts when it is stopped, the answer when `message_stop` has come. The decoder passes over
unknown events and blocks, and keeps every block as it came for the next request.

Spec: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.providers._answer import Calls, ShownAnswer, Stretch, said, thought
from searchloop.agent.providers._codec import CodecBase, DecoderBase
from searchloop.agent.providers._wire import count, text_in
from searchloop.agent.providers.anthropic.passages import Block
from searchloop.agent.providers.anthropic.request import PROVIDER, version_of
from searchloop.agent.providers.anthropic.searches import ServerTools
from searchloop.agent.search.citations import numbered
from searchloop.agent.types import (
    Citation,
    Finished,
    Mark,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    ToolCall,
    Usage,
)

Event = Mapping[str, Any]
Locate = Callable[[Mapping[str, Any]], tuple[str, str] | None]


class MessageText(ShownAnswer):
    """The text of one response. The server cites whole blocks; blocks in a row are one stretch."""

    def __init__(self) -> None:
        super().__init__()
        self._stretch: Stretch | None = None
        self._blocks: list[tuple[Stretch, int, int, list[Mapping[str, Any]]]] = []
        self._began = 0

    def begin(self) -> None:
        """Begins a text block."""
        self._stretch = self._stretch or Stretch()
        self._began = self._stretch.size

    def add(self, piece: str) -> str:
        """Adds to the block that began."""
        return self.show(self._stretch, self._stretch.add(piece)) if self._stretch else ""

    def end(self, citations: Iterable[Mapping[str, Any]]) -> None:
        """Ends the block; its citations are for all of it."""
        notes = list(citations)
        if notes and self._stretch is not None:
            self._blocks.append((self._stretch, self._began, self._stretch.size, notes))

    def interrupt(self) -> str:
        """Ends a row of text blocks."""
        stretch, self._stretch = self._stretch, None
        return self.close(stretch) if stretch else ""

    def citations(self, locate: Locate) -> tuple[Citation, ...]:
        """Numbers the cited addresses by first appearance; `locate` returns address and title."""
        found: list[tuple[Mark, str, str]] = []
        for stretch, begin, end, notes in self._blocks:
            first, last = self.place(stretch, begin), self.place(stretch, end)
            span = (first, last) if first < last else None
            for note in notes:
                page = locate(note)
                if page is not None:
                    quote = note.get("cited_text")
                    quote = quote if isinstance(quote, str) and quote.strip() else None
                    found.append((Mark(span, quote), *page))
        return numbered(found)


_STOPS: dict[str, StopReason] = {
    "pause_turn": "pause",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def add_streamed(block: Block, streamed: str) -> str | None:
    """Adds what streamed to a finished block. Returns the problem with its arguments, if any."""
    match block["type"]:
        case "text":
            block["text"] = (block.get("text") or "") + streamed
            if not block["citations"]:
                del block["citations"]
        case "thinking":
            block["thinking"] = (block.get("thinking") or "") + streamed
        case "tool_use" | "server_tool_use" if streamed.strip():
            block["input"], problem = read_arguments(streamed)
            return problem
    return None


def calls(
    blocks: Iterable[Block], problems: Mapping[int, str], *, complete: bool
) -> tuple[tuple[ToolCall, ...], list[Block]]:
    """Splits off the calls to answer; drops repeated calls, and all calls of a cut answer.

    `problems` are those with the arguments, by the block's identity.
    """
    found, kept = Calls(), []
    for block in blocks:
        if block.get("type") == "tool_use":
            given, problem = block.get("input"), problems.get(id(block), "")
            call = complete and found.add(text_in(block, "id"), block.get("name"), given, problem)
            if not call:
                continue
            block = {**block, "id": call.id, "name": call.name, "input": call.arguments}
        kept.append(block)
    return tuple(found.made.values()), kept


def stop_reason(said: object, tool_calls: tuple[ToolCall, ...]) -> StopReason:
    """Returns the reason why the answer ends here; an unknown one is an ordinary end."""
    return "tool_calls" if tool_calls else _STOPS.get(str(said), "stop")


def refusal_words(details: object) -> str:
    """Words a refusal, because the server sends no text with it."""
    given = details if isinstance(details, Mapping) else {}
    category, explanation = given.get("category"), given.get("explanation")
    why = f" ({category.replace('_', ' ')})" if isinstance(category, str) and category else ""
    more = f" {explanation}" if isinstance(explanation, str) and explanation else ""
    return f"The model declined to answer{why}.{more}"


def usage(counts: Mapping[str, Any], searches: ServerTools) -> Usage:
    """Returns the reported counts; tokens read from or written to the cache are input as well."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    told = [part for name in names if (part := count(counts, name)) is not None]
    billed = counts.get("server_tool_use")
    searched, read = (count(billed, f"web_{name}_requests") for name in ("search", "fetch"))
    return Usage(
        input_tokens=sum(told) if told else None,
        output_tokens=count(counts, "output_tokens"),
        cached_tokens=count(counts, "cache_read_input_tokens"),
        reasoning_tokens=count(counts.get("output_tokens_details"), "thinking_tokens"),
        searches=searches.searches if searched is None else searched,
        pages=searches.pages if read is None else read,
    )


class MessagesDecoder(DecoderBase[MessageText]):
    """Decodes the answer to one request. See `agent.providers.Decoder` and `ReplayView.prefix`."""

    def __init__(self, codec: CodecBase, request: Request, prefix: str) -> None:
        super().__init__(codec)
        self._model = request.model
        self._prefix = prefix
        self._answer = MessageText()
        self._searches = ServerTools(request.messages)
        self._open: dict[int, Block] = {}
        self._done: dict[int, Block] = {}
        self._pieces: dict[int, list[str]] = {}
        self._problems: dict[int, str] = {}
        self._end: dict[str, Any] = {}
        self._counts: dict[str, Any] = {}

    def _message(self, document: Event) -> Iterable[StreamEvent]:
        """Reads a message that came whole as if its blocks had streamed."""
        for index, block in enumerate(document["content"]):
            yield from self._block_start({"index": index, "content_block": block})
            yield from self._block_stop({"index": index})
        self._end = dict(document)
        self._count(document)
        yield from self._message_stop({})

    def _read(self, event: Event) -> Iterable[StreamEvent]:
        read = _READERS.get(event.get("type"))
        return read(self, event) if read else ()

    def _message_start(self, event: Event) -> Iterable[StreamEvent]:
        self._count(event["message"])
        return ()

    def _count(self, value: Event) -> None:
        """Updates the counts: each is the sum so far."""
        counts = value.get("usage") or {}
        self._counts.update({k: v for k, v in counts.items() if v is not None})

    def _block_start(self, event: Event) -> Iterable[StreamEvent]:
        index, block = event["index"], dict(event["content_block"])
        if index in self._open or index in self._done:
            return
        self._open[index], self._pieces[index] = block, []
        kind = block["type"]
        if kind == "text":
            # An empty list comes with some blocks, null with others, and nothing with most.
            block = self._open[index] = {**block, "citations": [*(block.get("citations") or ())]}
            self._answer.begin()
            yield from said(self._answer.add(block.get("text") or ""))
            return
        yield from said(self._answer.interrupt())
        if kind == "thinking":
            yield from self._think(index, block.get("thinking") or "")
        elif "tool_use_id" in block:
            yield from self._searches.ended(block)

    def _block_delta(self, event: Event) -> Iterable[StreamEvent]:
        index, delta = event["index"], event["delta"]
        block = self._open.get(index)
        if block is None:
            return ()
        match delta.get("type"):
            case "text_delta":
                self._pieces[index].append(delta["text"])
                return said(self._answer.add(delta["text"]))
            case "input_json_delta":
                self._pieces[index].append(delta["partial_json"])
            case "citations_delta":
                block.setdefault("citations", []).append(delta["citation"])
            case "thinking_delta":
                self._pieces[index].append(delta["thinking"])
                return self._think(index, delta["thinking"])
            case "signature_delta":
                block["signature"] = delta["signature"]
        return ()

    def _think(self, index: int, text: str) -> Iterable[StreamEvent]:
        return thought(self._answer.think(text, index))

    def _block_stop(self, event: Event) -> Iterable[StreamEvent]:
        index = event["index"]
        block = self._open.pop(index, None)
        if block is None:
            return ()
        self._done[index] = block
        problem = add_streamed(block, "".join(self._pieces.pop(index)))
        if problem:
            self._problems[id(block)] = problem
        if block["type"] == "text":
            self._answer.end(note for note in block.get("citations", ()) if isinstance(note, dict))
        return self._searches.began(block) if block["type"] == "server_tool_use" else ()

    def _message_delta(self, event: Event) -> Iterable[StreamEvent]:
        self._end.update({k: v for k, v in event["delta"].items() if v is not None})
        self._count(event)
        return ()

    def _message_stop(self, event: Event) -> Iterable[StreamEvent]:
        yield from said(self._answer.interrupt())
        reason = self._end.get("stop_reason")
        if reason == "refusal":
            words = refusal_words(self._end.get("stop_details"))
            self._answer.begin()
            yield from said(self._answer.add(words) + self._answer.interrupt())
        self._finished = True
        yield self._result(reason)

    def _result(self, why: object) -> Finished:
        for index in [i for i, block in self._open.items() if block["type"] == "text"]:
            self._block_stop({"index": index})  # half a text is text all the same, half a call none
        blocks = [self._done[index] for index in sorted(self._done)]
        complete = _STOPS.get(str(why)) not in ("length", "refusal")
        tool_calls, blocks = calls(blocks, self._problems, complete=complete)
        citations = self._answer.citations(self._searches.locate)
        reason = stop_reason(why, tool_calls)
        data = ProviderData(PROVIDER, self._model, version_of(self._prefix), tuple(blocks))
        # A refused text would be refused again: of that only our words are kept.
        kept = data if blocks and reason != "refusal" else None
        about = {"paused": True} if reason == "pause" else {}
        consulted = self._searches.consulted
        message = self._answer.message(tool_calls, citations, consulted, kept, about)
        return Finished(message, reason, usage(self._counts, self._searches))


_READERS: dict[Any, Callable[[MessagesDecoder, Event], Iterable[StreamEvent]]] = {
    "message": MessagesDecoder._message,
    "message_start": MessagesDecoder._message_start,
    "content_block_start": MessagesDecoder._block_start,
    "content_block_delta": MessagesDecoder._block_delta,
    "content_block_stop": MessagesDecoder._block_stop,
    "message_delta": MessagesDecoder._message_delta,
    "message_stop": MessagesDecoder._message_stop,
}
