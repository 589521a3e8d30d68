"""The Messages API as a server speaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tests.chaos.dialects import KEY, PAGE, Asked, Dialect, dump
from tests.fakes import Reply, json_reply
from tests.rules_anthropic import check

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_SEARCHES = ("web_search_", "web_fetch_")


class Anthropic(Dialect):
    """See `Dialect`."""

    name = "anthropic"
    models = ("claude-sonnet-5-5", "claude-haiku-4-5")
    searcher = models[0]
    home = ""
    content_type = "text/event-stream; charset=utf-8"
    names_wait = True
    unknown = b'event: new_kind\ndata: {"type": "new_kind", "x": [1]}\n\n'

    def __init__(self) -> None:
        self._ids = count(1)
        self._waiting: list[str] = []

    def check(self, body: Mapping[str, Any], path: str) -> None:
        check(body)

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        """Up to a search that is not over: it and its thinking go, if it is never continued."""
        unfinished = _unfinished(body)
        said: list[Any] = []
        for message in body["messages"]:
            if any(block.get("id") in unfinished for block in message["content"]):
                break
            for block in message["content"]:
                plain = {key: value for key, value in block.items() if key != "cache_control"}
                said.append((message["role"], plain))
        return said

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        kinds = [str(tool.get("type")) for tool in body.get("tools") or []]
        return [kind for kind in kinds if kind.startswith(_SEARCHES)]

    def hear(self, body: Mapping[str, Any]) -> None:
        self._waiting = _unfinished(body)

    def _stream(self) -> _Stream:
        """What was searched for before comes first."""
        stream = _Stream(self._ids)
        for own in self._waiting:
            stream.found(own)
        return stream

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        return self._stream().think(thinking).say(pieces).end("end_turn")

    def cites(self, text: str, *notes: Mapping[str, Any]) -> list[bytes]:
        """An answer that cites what these notes say."""
        return self._stream().say([text], *notes).end("end_turn")

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        stream = self._stream().think(thinking)
        if text:
            stream.say([text])
        for each in asked:
            stream.call(each)
        return stream.end("tool_use")

    def searched(self, *pieces: str) -> list[bytes]:
        stream = self._stream().think("Look it up.").search()
        note = {"type": "web_search_result_location", "url": PAGE, "title": "Tides"}
        note |= {"cited_text": "High water 07:40", "encrypted_index": "EncIdx=="}
        return stream.say(pieces, note).end("end_turn")

    def paused(self, *pieces: str) -> list[bytes]:
        """A search that takes longer than one answer may."""
        return self._stream().say(pieces).search(ends=False).end("pause_turn")

    def both(self, asked: Asked) -> list[bytes]:
        """The search waits for the result of the call."""
        return self._stream().think("Look it up.").search(ends=False).call(asked).end("tool_use")

    def cut_short(self, asked: Asked) -> list[bytes]:
        return self._stream().call(asked).end("max_tokens")

    def trouble(self) -> bytes:
        error = {"type": "overloaded_error", "message": f"Overloaded. Your key: {KEY}"}
        return _event({"type": "error", "error": error})

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        other = "api_error" if status >= 500 else "invalid_request_error"
        error = {"type": _KINDS.get(status, other), "message": f"No, not with {KEY}."}
        return json_reply({"type": "error", "error": error}, status, headers)

    def spent(self) -> Reply:
        text = "Your credit balance is too low to access the API."
        error = {"type": "invalid_request_error", "message": text}
        return json_reply({"type": "error", "error": error}, 400)

    def refuses_search(self) -> Reply | None:
        text = "tools.0: web_search is not supported by this model"
        error = {"type": "invalid_request_error", "message": text}
        return json_reply({"type": "error", "error": error}, 400)


class _Stream:
    """The events of one response as they add up."""

    def __init__(self, ids: count[int]) -> None:
        self._ids = ids
        self._at = 0
        message = {"type": "message", "role": "assistant", "model": "claude", "content": []}
        counts = {"input_tokens": 9, "output_tokens": 1}
        start = {"id": f"msg_{next(ids)}", **message, "stop_reason": None, "usage": counts}
        self._events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]

    def _block(self, block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> _Stream:
        place = {"index": self._at}
        self._at += 1
        self._events.append({"type": "content_block_start", **place, "content_block": block})
        for delta in deltas:
            self._events.append({"type": "content_block_delta", **place, "delta": delta})
        self._events.append({"type": "content_block_stop", **place})
        return self

    def think(self, thinking: str) -> _Stream:
        if not thinking:
            return self
        return self._block(
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": thinking},
            {"type": "signature_delta", "signature": f"Sig{next(self._ids)}=="},
        )

    def say(self, pieces: Sequence[str], *notes: Mapping[str, Any]) -> _Stream:
        block: dict[str, Any] = {"type": "text", "text": ""}
        cited = [{"type": "citations_delta", "citation": note} for note in notes]
        texts = [{"type": "text_delta", "text": piece} for piece in pieces]
        return self._block({**block, "citations": []} if notes else block, *cited, *texts)

    def _asks(self, block: Mapping[str, Any], arguments: str) -> _Stream:
        half = len(arguments) // 2
        pieces = ("", arguments[:half], arguments[half:])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        return self._block({**block, "input": {}}, *deltas)

    def call(self, asked: Asked) -> _Stream:
        block = {"type": "tool_use", "id": f"toolu_{next(self._ids)}", "name": asked.name}
        return self._asks(block, asked.arguments)

    def search(self, *, ends: bool = True) -> _Stream:
        own, direct = f"srvtoolu_{next(self._ids)}", {"caller": {"type": "direct"}}
        block = {"type": "server_tool_use", "id": own, "name": "web_search", **direct}
        self._asks(block, '{"query": "tides"}')
        return self.found(own) if ends else self

    def found(self, own: str) -> _Stream:
        row = {"type": "web_search_result", "url": PAGE, "title": "Tides", "page_age": None}
        result = {"type": "web_search_tool_result", "tool_use_id": own}
        rows = [{**row, "encrypted_content": "Enc=="}]
        return self._block({**result, "content": rows, "caller": {"type": "direct"}})

    def end(self, reason: str) -> list[bytes]:
        delta = {"stop_reason": reason, "stop_sequence": None}
        counts = {"output_tokens": 5}
        self._events.append({"type": "message_delta", "delta": delta, "usage": counts})
        return [_event(event) for event in (*self._events, {"type": "message_stop"})]


def _unfinished(body: Mapping[str, Any]) -> list[str]:
    """The server's own calls without a result."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    asked = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
    found = {block.get("tool_use_id") for block in blocks if block["type"] != "tool_result"}
    return [own for own in asked if own not in found]


def _event(event: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), dump(event))
