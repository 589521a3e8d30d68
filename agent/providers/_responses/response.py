"""Decodes responses of the Responses API, streamed or whole, into events.

`response.output_item.done` and the terminal event count; deltas are shown meanwhile. The decoder
passes over unknown events and items, and keeps every finished item as it came for the next request.

Spec: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from searchloop.agent.providers._answer import Calls, ShownAnswer, Stretch, said, thought
from searchloop.agent.providers._codec import CodecBase, DecoderBase
from searchloop.agent.providers._responses.request import VERSION
from searchloop.agent.providers._wire import count, error_in, member, text_in
from searchloop.agent.search.citations import numbered
from searchloop.agent.types import (
    Citation,
    Finished,
    PageOpened,
    ProviderData,
    Request,
    SearchFinished,
    SearchStarted,
    Source,
    StopReason,
    StreamEvent,
    ToolCall,
    Usage,
)

Key = tuple[int, int]  # output index, content index


class _Part(Stretch):
    """One content part; `waiting` holds what is shown once the parts before it are done."""

    def __init__(self, apart: bool) -> None:
        super().__init__(always=True)
        self.apart = apart
        self.done = False
        self.waiting: list[str] = []
        self.annotations: list[Any] = []


class ResponseText(ShownAnswer):
    """Collects the text of one response, and shows one part after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[Key, _Part] = {}
        self._unshown = deque[_Part]()
        self.strayed = False
        """True once the whole text of a part was not what had come of it."""

    def keys(self, index: int) -> list[Key]:
        """Lists the parts of an item in order; not every server counts them from 0."""
        return sorted(key for key in self._parts if key[0] == index)

    def add(self, key: Key, piece: str) -> str:
        """Adds a piece to a part."""
        part = self._part(key)
        if part.done:
            return ""
        if part is self._unshown[0]:  # the usual case
            return self.show(part, part.add(piece))
        part.waiting.append(part.add(piece))
        return ""

    def finish(self, key: Key, full: str, annotations: Iterable[Any]) -> str:
        """Ends a part whose whole text is `full`."""
        part = self._part(key)
        part.annotations = list(annotations) or part.annotations
        if part.done:
            return ""
        if full.startswith(part.raw):
            part.waiting.append(part.add(full[part.size :]))
        self.strayed = self.strayed or full not in ("", part.raw)
        part.done = True
        return self._advance()

    def _part(self, key: Key) -> _Part:
        if key not in self._parts:
            last = next(reversed(self._parts), None)
            self._parts[key] = _Part(last is None or last[0] != key[0])
            self._unshown.append(self._parts[key])
        return self._parts[key]

    def _advance(self) -> str:
        """Shows what came of the first part that is not done, and of those before it."""
        shown: list[str] = []
        while self._unshown:
            part = self._unshown[0]
            shown += (self.show(part, piece) for piece in part.waiting)
            part.waiting.clear()
            if not part.done:
                break
            shown.append(self.close(self._unshown.popleft()))
        return "".join(shown)

    def held(self) -> str:
        """Shows all that was held back, because no more will come."""
        return "".join(self.finish(key, "", ()) for key in self._parts)

    def citations(self) -> tuple[Citation, ...]:
        """Returns the cited addresses, numbered by first appearance in the text."""
        return numbered(
            (self.cited(part, note), note["url"], _title(note))
            for part in self._parts.values()
            for note in part.annotations
            if _is_citation(note)
        )


def _title(note: Mapping[str, Any]) -> str:
    """Returns the title of a page; some servers write its number there."""
    title = str(note.get("title") or "")
    return "" if title.isdigit() and len(title) < 4 else title


def _is_citation(note: Any) -> bool:
    if not isinstance(note, dict) or note.get("type") != "url_citation":
        return False
    return isinstance(note.get("url"), str) and bool(note["url"])


Event = Mapping[str, Any]
Item = dict[str, Any]
Action = Mapping[str, Any]  # of a search: its type, query or queries, url, sources

_PAGE_ACTIONS = frozenset({"open_page", "find_in_page", "find"})


class WebSearchCalls:
    """Turns the provider's searches and page visits into events; `consulted` lists pages in order.

    Only a finished item tells what it does, so a search is announced when an item appears. An item
    that turns out to be a page visit leaves its announcement to the next search.
    """

    def __init__(self) -> None:
        self.consulted: list[Source] = []
        self.searches = 0
        self.pages = 0
        self._announced = False
        self._visited: set[str] = set()

    def began(self, action: Action) -> Iterable[StreamEvent]:
        """Reads an item that has appeared."""
        if self._announced or action.get("type") in _PAGE_ACTIONS:
            return ()
        self._announced = True
        return (SearchStarted(_query(action)),)

    def ended(self, action: Action, failed: bool) -> Iterable[StreamEvent]:
        """Reads an item that is done."""
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
        if failed:
            yield SearchFinished(query, "error", results, "The search failed.")
        else:
            yield SearchFinished(query, "empty" if results == 0 else "ok", results)

    def _visit(self, action: Action, failed: bool) -> Iterable[StreamEvent]:
        url = action.get("url")
        opening = action["type"] == "open_page"
        self.pages += opening
        if not isinstance(url, str) or not url or (not opening and url in self._visited):
            return
        self._visited.add(url)
        if not failed:
            self.consulted.append(Source(url, state="opened"))
        yield PageOpened(url, "error" if failed else "ok")


def search_action(item: Item) -> Action | None:
    """Returns what an item of the server's own search does; None for any other item."""
    return (item.get("action") or {}) if item.get("type") == "web_search_call" else None


def _query(action: Action) -> str:
    queries = action.get("queries") or [action.get("query")]
    return "; ".join(query for query in queries if isinstance(query, str) and query)


def calls(items: Iterable[Item], *, complete: bool) -> tuple[tuple[ToolCall, ...], list[Item]]:
    """Splits off the calls to answer; drops repeated calls, and all calls of a cut answer."""
    found, kept = Calls(), []
    for item in items:
        if item.get("type") == "function_call":
            if not complete or item.get("status") == "incomplete":
                continue
            call_id = text_in(item, "call_id") or text_in(item, "id")
            call = found.add(call_id, item.get("name"), item.get("arguments"))
            if call is None:
                continue
            item = {**item, "call_id": call.id, "name": call.name}
        kept.append(item)
    return tuple(found.made.values()), kept


def stop_reason(
    response: Mapping[str, Any], items: Iterable[Item], tool_calls: tuple[ToolCall, ...]
) -> StopReason:
    """Returns the reason why the answer ends here."""
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details") or {}
        return "refusal" if details.get("reason") == "content_filter" else "length"
    if tool_calls:
        return "tool_calls"
    messages = [item for item in items if item.get("type") == "message"]
    parts = [part for item in messages for part in item.get("content") or ()]
    return "refusal" if any(part.get("type") == "refusal" for part in parts) else "stop"


def read_usage(response: Mapping[str, Any], searches: WebSearchCalls) -> Usage:
    """Returns the reported counts; searches are those billed, if the server says how many."""
    counts = response.get("usage")
    billed = count(member(response.get("tool_usage"), "web_search"), "num_requests")
    return Usage(
        input_tokens=count(counts, "input_tokens"),
        output_tokens=count(counts, "output_tokens"),
        cached_tokens=count(member(counts, "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(member(counts, "output_tokens_details"), "reasoning_tokens"),
        searches=searches.searches if billed is None else billed,
        pages=searches.pages,
    )


class ResponsesDecoder(DecoderBase[ResponseText]):
    """Decodes one response of a provider's model. See `agent.providers.Decoder`.

    `action_of` and `usage_of` read what vendors of this API report in their own ways.
    """

    def __init__(
        self,
        codec: CodecBase,
        provider: str,
        request: Request,
        action_of: Callable[[Item], Action | None] = search_action,
        usage_of: Callable[[Event, WebSearchCalls], Usage] = read_usage,
    ) -> None:
        super().__init__(codec)
        self._made = (provider, request.model)
        self._action_of, self._usage_of = action_of, usage_of
        self._last: Event = {}
        self._numbered = False
        self._answer = ResponseText()
        self._answer.native = request.native_search is not None
        self._searches = WebSearchCalls()
        self._items: dict[int, Item] = {}
        self._thought: set[int] = set()

    def _read(self, event: Event) -> Iterable[StreamEvent]:
        if self._is_repeated(event):
            return ()
        if "output" in event and "type" not in event:  # not streamed
            unfinished = event.get("status") in ("queued", "in_progress")
            return () if unfinished else self._terminal({"response": event})
        read = _READERS.get(event.get("type") or "")
        return read(self, event) if read else ()

    def _is_repeated(self, event: Event) -> bool:
        """Tells an event that was sent twice from two equal ones, if the server numbers them."""
        if self._numbered and event == self._last:
            return True
        before, number = self._last.get("sequence_number"), event.get("sequence_number")
        self._numbered = isinstance(before, int) and isinstance(number, int) and number > before
        self._last = event
        return False

    def _text_delta(self, event: Event) -> Iterable[StreamEvent]:
        return said(self._answer.add(_key(event), text_in(event, "delta")))

    def _part_done(self, event: Event) -> Iterable[StreamEvent]:
        if (event.get("part") or {}).get("type") == "reasoning_text":
            return ()  # other servers of this API end their thinking in this way
        return said(self._finish_part(_key(event), event.get("part") or {}))

    def _finish_part(self, key: tuple[int, int], part: Event) -> str:
        full = part.get("text") or part.get("refusal") or ""
        return self._answer.finish(key, full, part.get("annotations") or ())

    def _thinking_delta(self, event: Event) -> Iterable[StreamEvent]:
        return self._think(event["output_index"], event.get("summary_index"), event["delta"])

    def _think(self, index: int, part: int | None, text: str) -> Iterable[StreamEvent]:
        self._thought.add(index)
        return thought(self._answer.think(text, (index, part)))

    def _item_added(self, event: Event) -> Iterable[StreamEvent]:
        action = self._action_of(event["item"])
        if action is not None and event["output_index"] not in self._items:
            return self._searches.began(action)
        return ()

    def _item_done(self, event: Event) -> Iterable[StreamEvent]:
        index, item = event["output_index"], event["item"]
        if index in self._items:
            return
        self._items[index] = item
        match item.get("type"):
            case "message":
                text, known = "", self._answer.keys(index)
                for number, part in enumerate(item.get("content") or ()):
                    key = known[number] if number < len(known) else (index, number)
                    text += self._finish_part(key, part)
                yield from said(text)
            case "reasoning" if index not in self._thought:
                parts = item.get("summary") or item.get("content") or ()
                for number, part in enumerate(parts):
                    yield from self._think(index, number, part.get("text") or "")
            case _ if (action := self._action_of(item)) is not None:
                failed = item.get("status") in ("failed", "incomplete")
                yield from self._searches.ended(action, failed)

    def _terminal(self, event: Event) -> Iterable[StreamEvent]:
        response = event["response"]
        status = response.get("status")
        if status in ("failed", "cancelled") or event.get("type") == "response.failed":
            raise self._codec.refused(error_in(response) or response)
        yield from self._missed(response.get("output") or ())
        yield from said(self._answer.held())
        if self._answer.strayed:  # a delta was lost or came twice: what is done counts
            thinking, self._answer = self._answer.thinking, ResponseText()
            self._answer.think(thinking)
            for index, item in sorted(self._items.items()):
                for number, part in enumerate(item.get("content") or ()):
                    if item.get("type") == "message":
                        self._finish_part((index, number), part)
        self._finished = True
        yield self._result(response)

    def _missed(self, output: Iterable[Item]) -> Iterable[StreamEvent]:
        """Reads items that only the terminal event contains."""
        known = {item.get("id") for item in self._items.values()}
        for index, item in enumerate(output):
            own, there = item.get("id"), self._items.get(index)
            if (own in known) if own else there is not None:
                continue
            if there is not None and {**there, "id": own} == item:
                continue  # the same with another id
            free = index if index not in self._items else max(self._items) + 1
            yield from self._item_done({"output_index": free, "item": item})

    def _result(self, response: Event) -> Finished:
        blocks = [self._items[index] for index in sorted(self._items)]
        tool_calls, blocks = calls(blocks, complete=response.get("status") != "incomplete")
        citations = self._answer.citations()
        shown = self._answer.text
        # Without an item that holds the text, raw blocks would replay less than was said.
        raw = bool(blocks) and (not shown or any(b.get("type") == "message" for b in blocks))
        data = ProviderData(*self._made, VERSION, tuple(blocks)) if raw else None
        message = self._answer.message(tool_calls, citations, self._searches.consulted, data)
        reason = stop_reason(response, blocks, tool_calls)
        return Finished(message, reason, self._usage_of(response, self._searches))


_READERS: dict[str, Callable[[ResponsesDecoder, Event], Iterable[StreamEvent]]] = {
    "response.output_text.delta": ResponsesDecoder._text_delta,
    "response.refusal.delta": ResponsesDecoder._text_delta,
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
