"""Bytes of a response become events, streamed or not.

What counts is `response.output_item.done` and the terminal event; deltas are shown meanwhile. State
is kept by output index, unknown events and items are passed over, and every finished item is kept
as it came for the next request. A stream without its terminal event is an error, so a call is never
read from half its arguments.

Spec: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent.cited import sources
from agent.errors import ProviderError
from agent.providers.openai.answer import Answer
from agent.providers.openai.failures import classify
from agent.providers.openai.finish import calls, stop_reason, usage
from agent.providers.openai.history import PROVIDER, VERSION
from agent.providers.openai.repeats import Repeats
from agent.providers.openai.searches import Searches
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
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)

_parse = json.JSONDecoder().raw_decode
Event = Mapping[str, Any]


class ResponsesDecoder:
    """See `agent.providers.Decoder`."""

    def __init__(self, model: str, server: str, content_type: str) -> None:
        self._model = model
        self._server = server
        self._body = ResponseBody(server, content_type)
        self._repeats = Repeats()
        self._answer = Answer()
        self._searches = Searches()
        self._items: dict[int, dict[str, Any]] = {}
        self._thinking: list[str] = []
        self._thought: set[int] = set()
        self._section: tuple[int, int | None] = (-1, None)
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """See `Decoder.feed`."""
        return self._decode(self._body.feed(data))

    def close(self) -> Iterable[StreamEvent]:
        """See `Decoder.close`."""
        document = self._body.document
        return self._read_rest() if document is None else self._read_whole(document)

    def _read_whole(self, body: bytes) -> Iterator[StreamEvent]:
        response = document_of(body)
        if not isinstance(response, dict):
            raise incomplete(self._server)
        if response.get("error"):
            raise classify(_error(response), None, self._server)
        if response.get("status") in ("queued", "in_progress"):
            raise incomplete(self._server)
        yield from self._terminal({"response": response})

    def _read_rest(self) -> Iterator[StreamEvent]:
        if not self._finished:
            yield from self._decode(self._body.rest())
        if not self._finished:
            raise incomplete(self._server)

    def _decode(self, payloads: list[bytes]) -> Iterable[StreamEvent]:
        return guarded(self._unreadable, self._read_all, payloads) if payloads else ()

    def _unreadable(self) -> ProviderError:
        return unreadable(self._server, "the Responses API")

    def _read_all(self, events: list[StreamEvent], payloads: list[bytes]) -> None:
        repeats = self._repeats
        for payload in payloads:
            if payload != repeats.last and not repeats.held:
                self._read(payload, events)
                continue
            for each in repeats.settle(payload):
                self._read(each, events)

    def _read(self, payload: bytes, events: list[StreamEvent]) -> None:
        if self._repeats.numbered:
            self._repeats.last = payload
        text = payload.decode()
        event, end = _parse(text) if text[0] == "{" else (None, 0)
        if end != len(text):
            event = event_of(text)
        if event is None or self._finished:
            return
        if event.get("type") == "response.output_text.delta":
            key = event.get("output_index", 0), event.get("content_index", 0)
            shown = self._answer.add(key, event["delta"])
            if shown:
                events.append(TextDelta(shown))
        else:
            events.extend(self._other(event))

    def _other(self, event: Event) -> Iterable[StreamEvent]:
        kind = event.get("type") or ""
        if kind == "error" or (event.get("error") and not kind.startswith("response.")):
            raise classify(_error(event), None, self._server)
        read = _READERS.get(kind)
        return read(self, event) if read else ()

    def _show(self, text: str) -> Iterable[StreamEvent]:
        return (TextDelta(text),) if text else ()

    def _refusal_delta(self, event: Event) -> Iterable[StreamEvent]:
        return self._show(self._answer.add(_key(event), event["delta"]))

    def _part_done(self, event: Event) -> Iterable[StreamEvent]:
        return self._show(self._finish_part(_key(event), event.get("part") or {}))

    def _finish_part(self, key: tuple[int, int], part: Event) -> str:
        full = part.get("text") or part.get("refusal") or ""
        return self._answer.finish(key, full, part.get("annotations") or ())

    def _thinking_delta(self, event: Event) -> Iterable[StreamEvent]:
        return self._think(event["output_index"], event.get("summary_index"), event["delta"])

    def _think(self, index: int, part: int | None, text: str) -> Iterable[StreamEvent]:
        if not text:
            return
        section = (index, part)
        if self._thinking and section != self._section:
            text = "\n\n" + text
        self._section = section
        self._thought.add(index)
        self._thinking.append(text)
        yield ThinkingDelta(text)

    def _item_added(self, event: Event) -> Iterable[StreamEvent]:
        item = event["item"]
        if item.get("type") == "web_search_call" and event["output_index"] not in self._items:
            return self._searches.began(item)
        return ()

    def _item_done(self, event: Event) -> Iterable[StreamEvent]:
        index, item = event["output_index"], event["item"]
        if index in self._items:
            return
        self._items[index] = item
        match item.get("type"):
            case "message":
                text = ""
                for number, part in enumerate(item.get("content") or ()):
                    text += self._finish_part((index, number), part)
                yield from self._show(text)
            case "reasoning" if index not in self._thought:
                parts = item.get("summary") or item.get("content") or ()
                for number, part in enumerate(parts):
                    yield from self._think(index, number, part.get("text") or "")
            case "web_search_call":
                yield from self._searches.ended(item)

    def _terminal(self, event: Event) -> Iterable[StreamEvent]:
        response = event["response"]
        status = response.get("status")
        if status in ("failed", "cancelled") or event.get("type") == "response.failed":
            raise classify(_error(response), None, self._server)
        yield from self._missed(response.get("output") or ())
        yield from self._show(self._answer.end())
        self._finished = True
        yield self._result(response)

    def _missed(self, output: Iterable[dict[str, Any]]) -> Iterable[StreamEvent]:
        """Items that only the terminal event tells of."""
        known = {item.get("id") for item in self._items.values()}
        for index, item in enumerate(output):
            own = item.get("id")
            if (own in known) if own else (index in self._items):
                continue
            free = index if index not in self._items else max(self._items) + 1
            yield from self._item_done({"output_index": free, "item": item})

    def _result(self, response: Event) -> Finished:
        blocks = [self._items[index] for index in sorted(self._items)]
        tool_calls, blocks = calls(blocks, complete=response.get("status") != "incomplete")
        citations = self._answer.citations()
        shown = self._answer.text
        # Without an item that holds the text, raw blocks would replay less than was said.
        raw = bool(blocks) and (not shown or any(b.get("type") == "message" for b in blocks))
        message = Message(
            "assistant",
            shown,
            thinking="".join(self._thinking),
            tool_calls=tool_calls,
            citations=citations,
            sources=sources(self._searches.consulted, citations),
            provider_data=_raw(self._model, blocks) if raw else None,
        )
        return Finished(
            message, stop_reason(response, blocks, tool_calls), usage(response, self._searches)
        )


_READERS: dict[str, Callable[[ResponsesDecoder, Event], Iterable[StreamEvent]]] = {
    "response.refusal.delta": ResponsesDecoder._refusal_delta,
    "response.content_part.done": ResponsesDecoder._part_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder._thinking_delta,
    "response.reasoning_text.delta": ResponsesDecoder._thinking_delta,
    "response.output_item.added": ResponsesDecoder._item_added,
    "response.output_item.done": ResponsesDecoder._item_done,
    "response.completed": ResponsesDecoder._terminal,
    "response.incomplete": ResponsesDecoder._terminal,
    "response.failed": ResponsesDecoder._terminal,
}


def _key(event: Event) -> tuple[int, int]:
    return event.get("output_index", 0), event.get("content_index", 0)


def _raw(model: str, blocks: list[dict[str, Any]]) -> ProviderData:
    return ProviderData(PROVIDER, model, VERSION, tuple(blocks))


def _error(value: Event) -> Mapping[str, Any]:
    """The error object, which an event holds flat or nested."""
    inner = value.get("error")
    if isinstance(inner, dict):
        return inner
    return {"message": inner} if isinstance(inner, str) else value
