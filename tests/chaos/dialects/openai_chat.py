"""Chat Completions as servers speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.dialects import KEY, PAGE, Asked, Dialect, dump
from tests.fakes import Reply, json_reply
from tests.rules_openai_chat import check

_KINDS = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class OpenAIChat(Dialect):
    """See `Dialect`."""

    name = "openai-chat"
    models = ("tidewater-8b", "harbour-70b")
    searcher = "gpt-4o-search-preview"
    terminal = 3
    unknown = b'data: {"object": "new.kind", "x": [1]}\n\n'

    def check(self, body: Mapping[str, Any], path: str) -> None:
        check(body)

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        """Texts of neighbours of one role are one message, which grows at its end."""
        found: list[Any] = []
        for message in body["messages"]:
            rest = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls")}
            for text in (message.get("content") or "").split("\n\n"):
                found.append((message["role"], text, rest))
            found += message.get("tool_calls") or []
        return found

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        return [body["model"]] if body["model"] == self.searcher else []

    def aside(self, method: str, path: str) -> Any:
        """A list of models that tells no window."""
        return {"data": []} if method == "GET" else None

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        return [*_say(pieces, thinking), *_end("stop")]

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        chunks = _say([text] if text else [], thinking)
        for index, each in enumerate(asked):
            chunks += self._call(index, each)
        return [*chunks, *_end("tool_calls")]

    def _call(self, index: int, asked: Asked) -> list[bytes]:
        half = len(asked.arguments) // 2
        start = {"id": f"call_{next(self._ids)}", "type": "function"}
        function = {"name": asked.name, "arguments": ""}
        pieces = [{"index": index, **start, "function": function}]
        for piece in (asked.arguments[:half], asked.arguments[half:]):
            pieces.append({"index": index, "function": {"arguments": piece}})
        return [_delta({"tool_calls": [piece]}) for piece in pieces]

    def searched(self, *pieces: str) -> list[bytes]:
        whole = "".join(pieces)
        cited = {"url": PAGE, "title": "Tides", "start_index": 0, "end_index": len(whole)}
        notes = [{"type": "url_citation", "url_citation": cited}]
        return [*_say(pieces, ""), _delta({"content": "", "annotations": notes}), *_end("stop")]

    def cut_short(self, asked: Asked) -> list[bytes]:
        return [*_say(["I will"], ""), *self._call(0, asked), *_end("length")]

    def trouble(self) -> bytes:
        error = {"message": f"Overloaded, {KEY}", "type": "server_error", "code": 503}
        return b"data: %b\n\n" % dump({"error": error})

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
        error = {"message": f"No, not with {KEY}.", "type": kind, "param": None, "code": kind}
        return json_reply({"error": error}, status, headers)

    def spent(self) -> Reply:
        error = {"message": "You exceeded your current quota.", "type": "insufficient_quota"}
        return json_reply({"error": {**error, "code": "insufficient_quota"}}, 429)

    def refuses_search(self) -> Reply | None:
        """Models known to search always do; others are never asked to."""
        return None


def _say(pieces: Any, thinking: str) -> list[bytes]:
    chunks = [_delta({"role": "assistant", "content": ""})]
    chunks += [_delta({"reasoning_content": thinking})] if thinking else []
    return [*chunks, *(_delta({"content": piece}) for piece in pieces)]


def _delta(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
    return _chunk(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])


def _end(reason: str) -> list[bytes]:
    counts = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    return [_delta({}, reason), _chunk(choices=[], usage=counts), b"data: [DONE]\n\n"]


def _chunk(**data: Any) -> bytes:
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", **data}
    return b"data: %b\n\n" % dump(whole)
