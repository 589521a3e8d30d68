"""The Responses API as a server speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.chaos.dialects import KEY, PAGE, Asked, Dialect, dump
from tests.fakes import Reply, json_reply
from tests.rules_openai import check, search_tools

_KINDS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}


class OpenAI(Dialect):
    """See `Dialect`."""

    name = "openai"
    models = ("gpt-6-luna", "gpt-4.1")
    searcher = models[0]
    numbered = True
    unknown = b'event: response.new.kind\ndata: {"type": "response.new.kind", "x": [1]}\n\n'

    def check(self, body: Mapping[str, Any], path: str) -> None:
        check(body)

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        return list(body["input"])

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        return search_tools(body)

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        return _Stream(self._ids).think(thinking).say(pieces).end()

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        stream = _Stream(self._ids).think(thinking)
        if text:
            stream.say([text], phase="commentary")
        for each in asked:
            stream.call(each)
        return stream.end()

    def searched(self, *pieces: str) -> list[bytes]:
        stream = _Stream(self._ids).think("Look it up.").search()
        note = {"type": "url_citation", "url": PAGE, "title": "Tides"}
        place = {"start_index": 0, "end_index": len("".join(pieces))}
        return stream.think("").say(pieces, notes=[{**note, **place}]).end()

    def both(self, asked: Asked) -> list[bytes]:
        stream = _Stream(self._ids).think("Look it up, and note it.").search()
        return stream.call(asked).end()

    def cut_short(self, asked: Asked) -> list[bytes]:
        stream = _Stream(self._ids)
        stream.call(asked, status="incomplete")
        details = {"incomplete_details": {"reason": "max_output_tokens"}}
        return stream.end("incomplete", **details)

    def trouble(self) -> bytes:
        error = {"code": "server_is_overloaded", "message": f"Busy. Your key: {KEY}"}
        return _event({"type": "error", **error, "sequence_number": 900})

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        other = "server_error" if status >= 500 else "invalid_request_error"
        kind = _KINDS.get(status, other)
        error = {"message": f"No, not with {KEY}.", "type": kind, "param": None, "code": kind}
        return json_reply({"error": error}, status, headers)

    def spent(self) -> Reply:
        error = {"message": "You exceeded your current quota.", "type": "insufficient_quota"}
        return json_reply({"error": {**error, "code": "insufficient_quota"}}, 429)

    def refuses_search(self) -> Reply | None:
        text = "Hosted tool 'web_search' is not supported with this model."
        error = {"message": text, "type": "invalid_request_error", "param": "tools", "code": None}
        return json_reply({"error": error}, 400)


class _Stream:
    """The events of one response as they add up."""

    def __init__(self, ids: count[int]) -> None:
        self._ids = ids
        self._events: list[dict[str, Any]] = []
        self._output: list[dict[str, Any]] = []
        self._response = {"id": f"resp_{next(ids)}", "object": "response", "error": None}
        self._add("response.created", response={**self._response, "status": "in_progress"})

    def _add(self, kind: str, **data: Any) -> None:
        self._events.append({"type": kind, "sequence_number": len(self._events), **data})

    def _item(self, prefix: str, **item: Any) -> dict[str, Any]:
        return {"id": f"{prefix}_{next(self._ids)}", **item}

    def _done(self, item: dict[str, Any]) -> None:
        self._add("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)

    def think(self, summary: str) -> _Stream:
        parts = [{"type": "summary_text", "text": summary}] if summary else []
        item = self._item("rs", type="reasoning", summary=parts, encrypted_content="gAAA==")
        place = {"output_index": len(self._output)}
        self._add("response.output_item.added", item={**item, "encrypted_content": ""}, **place)
        if summary:
            self._add(
                "response.reasoning_summary_text.delta",
                item_id=item["id"],
                summary_index=0,
                delta=summary,
                **place,
            )
        self._done(item)
        return self

    def search(self) -> _Stream:
        item = self._item("ws", type="web_search_call", status="in_progress")
        place = {"output_index": len(self._output)}
        self._add("response.output_item.added", item=item, **place)
        self._add("response.web_search_call.searching", item_id=item["id"], **place)
        action = {"type": "search", "queries": ["tides"], "query": "tides"}
        sources = [{"type": "url", "url": PAGE}]
        self._done({**item, "status": "completed", "action": {**action, "sources": sources}})
        return self

    def say(self, pieces: Any, phase: str = "final_answer", notes: Any = ()) -> _Stream:
        item = self._item("msg", type="message", role="assistant", phase=phase)
        place = {"output_index": len(self._output)}
        part = {"item_id": item["id"], "content_index": 0, **place}
        opened = {**item, "status": "in_progress", "content": []}
        self._add("response.output_item.added", item=opened, **place)
        for piece in pieces:
            self._add("response.output_text.delta", delta=piece, **part)
        text = "".join(pieces)
        whole = {"type": "output_text", "text": text, "annotations": list(notes), "logprobs": []}
        self._add("response.output_text.done", text=text, **part)
        self._add("response.content_part.done", part=whole, **part)
        self._done({**item, "status": "completed", "content": [whole]})
        return self

    def call(self, asked: Asked, status: str = "completed") -> _Stream:
        names = {"call_id": f"call_{next(self._ids)}", "name": asked.name}
        item = self._item("fc", type="function_call", **names)
        place = {"output_index": len(self._output)}
        begun = {**item, "status": "in_progress", "arguments": ""}
        self._add("response.output_item.added", item=begun, **place)
        half = len(asked.arguments) // 2
        for piece in (asked.arguments[:half], asked.arguments[half:]):
            kind = "response.function_call_arguments.delta"
            self._add(kind, item_id=item["id"], delta=piece, **place)
        self._done({**item, "status": status, "arguments": asked.arguments})
        return self

    def end(self, status: str = "completed", **more: Any) -> list[bytes]:
        usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
        answer = {**self._response, "status": status, "output": self._output, "usage": usage}
        self._add(f"response.{status}", response={**answer, **more})
        return [_event(event) for event in self._events]


def _event(event: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), dump(event))
