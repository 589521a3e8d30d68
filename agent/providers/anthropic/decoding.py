"""Bytes of a response become events, streamed or not.

State is kept by block index. A block counts when it is stopped, the answer when `message_stop` has
come; a stream without that is an error, so a call is never read from half its arguments. Unknown
events and blocks are passed over, and every block is kept as it came for the next request.

Spec: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent.cited import sources
from agent.errors import ProviderError
from agent.providers.anthropic.answer import JOINER, Answer
from agent.providers.anthropic.failures import classify, details_of
from agent.providers.anthropic.finish import (
    calls,
    complete,
    cut_short,
    details,
    refusal_words,
    stop_reason,
    usage,
)
from agent.providers.anthropic.history import PROVIDER, version_of
from agent.providers.anthropic.searches import Searches
from agent.response_body import (
    ResponseBody,
    document_of,
    event_of,
    guarded,
    incomplete,
    unreadable,
)
from agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)

_parse = json.JSONDecoder().raw_decode
Event = Mapping[str, Any]
Block = dict[str, Any]


class MessagesDecoder:
    """See `agent.providers.Decoder`. `prefix` is what the model was told, as a hash."""

    def __init__(self, request: Request, prefix: str, server: str, content_type: str) -> None:
        self._model = request.model
        self._prefix = prefix
        self._server = server
        self._body = ResponseBody(server, content_type)
        self._answer = Answer()
        self._searches = Searches(request.messages)
        self._open: dict[int, Block] = {}
        self._done: dict[int, Block] = {}
        self._pieces: dict[int, list[str]] = {}
        self._problems: dict[int, str] = {}
        self._thinking: list[str] = []
        self._section = -1
        self._end: dict[str, Any] = {}
        self._counts: dict[str, Any] = {}
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """See `Decoder.feed`."""
        return self._decode(map(self._read, self._body.feed(data)))

    def close(self) -> Iterable[StreamEvent]:
        """See `Decoder.close`."""
        document = self._body.document
        return self._read_rest() if document is None else self._read_whole(document)

    def _read_whole(self, body: bytes) -> Iterable[StreamEvent]:
        value = document_of(body)
        if isinstance(value, dict) and (value.get("type") == "error" or value.get("error")):
            raise classify(details_of(value), None, self._server)
        if not isinstance(value, dict) or not isinstance(value.get("content"), list):
            raise incomplete(self._server)
        return self._decode((self._message(value),))

    def _message(self, value: Event) -> Iterator[StreamEvent]:
        """A message that came whole is read as if its blocks had streamed."""
        for index, block in enumerate(value["content"]):
            yield from self._block_start({"index": index, "content_block": block})
            yield from self._block_stop({"index": index})
        self._end = dict(value)
        self._count(value)
        yield from self._message_stop({})

    def _read_rest(self) -> Iterator[StreamEvent]:
        if not self._finished:
            yield from self._decode(map(self._read, self._body.rest()))
        if not self._finished:
            raise incomplete(self._server)

    def _decode(self, groups: Iterable[Iterable[StreamEvent]]) -> Iterable[StreamEvent]:
        return guarded(self._unreadable, _collect, groups)

    def _unreadable(self) -> ProviderError:
        return unreadable(self._server, "the Messages API")

    def _read(self, payload: bytes) -> Iterable[StreamEvent]:
        text = payload.decode()
        event, end = _parse(text) if text[0] == "{" else (None, 0)
        if end != len(text):
            event = event_of(text)
        if self._finished or event is None:
            return ()
        read = _READERS.get(event.get("type"))
        if read is None:
            if event.get("type") == "error" or event.get("error"):
                raise classify(details_of(event), None, self._server)
            return ()
        return read(self, event)

    def _message_start(self, event: Event) -> Iterable[StreamEvent]:
        self._count(event["message"])
        self._end.update({k: v for k, v in event["message"].items() if k == "container" and v})
        return ()

    def _count(self, value: Event) -> None:
        """Later counts replace earlier ones; they are sums already."""
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
            yield from self._show(self._answer.add(block.get("text") or ""))
            return
        yield from self._show(self._answer.interrupt())
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
                text = delta["text"]
                self._pieces[index].append(text)
                shown = self._answer.add(text)
                return (TextDelta(shown),) if shown else ()
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

    def _show(self, text: str) -> Iterable[StreamEvent]:
        return (TextDelta(text),) if text else ()

    def _think(self, index: int, text: str) -> Iterable[StreamEvent]:
        if not text:
            return ()
        if self._thinking and index != self._section:
            text = JOINER + text
        self._section = index
        self._thinking.append(text)
        return (ThinkingDelta(text),)

    def _block_stop(self, event: Event) -> Iterable[StreamEvent]:
        index = event["index"]
        block = self._open.pop(index, None)
        if block is None:
            return ()
        self._done[index] = block
        problem = complete(block, "".join(self._pieces.pop(index)))
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
        yield from self._show(self._answer.interrupt())
        said = self._end.get("stop_reason")
        if said == "refusal":
            words = refusal_words(self._end.get("stop_details"))
            self._answer.begin()
            yield from self._show(self._answer.add(words) + self._answer.interrupt())
        self._finished = True
        yield self._result(said)

    def _result(self, said: object) -> Finished:
        for index in [i for i, block in self._open.items() if block["type"] == "text"]:
            self._block_stop({"index": index})  # half a text is text all the same, half a call none
        blocks = [self._done[index] for index in sorted(self._done)]
        tool_calls, blocks = calls(blocks, self._problems, complete=not cut_short(said))
        citations = self._answer.citations(self._searches.locate)
        reason = stop_reason(said, tool_calls)
        message = Message(
            "assistant",
            self._answer.text,
            thinking="".join(self._thinking),
            tool_calls=tool_calls,
            details=details(self._end, reason),
            citations=citations,
            sources=sources(self._searches.consulted, citations),
            # What was refused would be refused again: of that only our words are kept.
            provider_data=self._raw(blocks) if blocks and reason != "refusal" else None,
        )
        return Finished(message, reason, usage(self._counts, self._searches))

    def _raw(self, blocks: list[Block]) -> ProviderData:
        return ProviderData(PROVIDER, self._model, version_of(self._prefix), tuple(blocks))


_READERS: dict[Any, Callable[[MessagesDecoder, Event], Iterable[StreamEvent]]] = {
    "message_start": MessagesDecoder._message_start,
    "content_block_start": MessagesDecoder._block_start,
    "content_block_delta": MessagesDecoder._block_delta,
    "content_block_stop": MessagesDecoder._block_stop,
    "message_delta": MessagesDecoder._message_delta,
    "message_stop": MessagesDecoder._message_stop,
}


def _collect(events: list[StreamEvent], groups: Iterable[Iterable[StreamEvent]]) -> None:
    for group in groups:
        events.extend(group)
