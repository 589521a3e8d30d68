"""Bytes of a Chat Completions answer become events, streamed or not.

The end is `[DONE]`, or the end of the bytes after a `finish_reason`: the counts come after that
reason, and some servers send no reason at all. Anything that ends otherwise is incomplete, so no
call is ever read from half its arguments. Text is shown without printed thinking and vendor marks.

Spec: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent.ending import then_raise
from agent.errors import IncompleteError, ProviderError
from agent.framing import MAX_EVENT, SseSplitter
from agent.providers.openai_chat.address import Server
from agent.providers.openai_chat.answer import Answer
from agent.providers.openai_chat.failures import classify, find_error
from agent.types import Finished, Request, SearchFinished, SearchStarted, StreamEvent

_parse = json.JSONDecoder().raw_decode


class ChatDecoder:
    """See `agent.providers.Decoder`."""

    def __init__(self, request: Request, server: Server, content_type: str) -> None:
        self._server = server
        self._splitter = SseSplitter()
        self._whole: list[bytes] | None = [] if "json" in content_type else None
        self._sniff = not ("json" in content_type or "event-stream" in content_type)
        self._size = 0
        tools = () if server.official else request.tools  # its calls are never printed
        self._answer = Answer(request.model, server.host, tools)
        # The API tells nothing of its searches, but these models always make one.
        self._search = "due" if request.native_search is not None else "none"
        self._ended = False
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """See `Decoder.feed`."""
        if self._sniff and data.strip():
            self._sniff = False
            self._whole = [] if data.lstrip().startswith((b"{", b"[")) else None
        if self._whole is None:
            return self._guarded(self._read_payloads, data)
        self._size += len(data)
        if self._size > 4 * MAX_EVENT:
            raise ProviderError("bad_response", f"The answer of {self._server.name} has no end.")
        self._whole.append(data)
        return ()

    def close(self) -> Iterable[StreamEvent]:
        """See `Decoder.close`."""
        if self._whole is not None:
            return self._guarded(self._read_whole, b"".join(self._whole))
        return self._guarded(self._read_rest)

    def _guarded(self, read: Callable[..., None], *given: Any) -> Iterable[StreamEvent]:
        """What `read` appends; when it fails, what came before that is shown first."""
        events: list[StreamEvent] = []
        try:
            read(events, *given)
        except ProviderError as error:
            return then_raise(events, error)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            wrong = self._unreadable()
            wrong.__cause__ = error
            return then_raise(events, wrong)
        return events

    def _read_payloads(self, events: list[StreamEvent], data: bytes) -> None:
        for payload in self._splitter.feed(data):
            self._payload(payload, events)

    def _read_rest(self, events: list[StreamEvent]) -> None:
        if self._finished:
            return
        for rest in self._splitter.close():
            if rest.strip() == b"[DONE]" or _is_json(rest):
                self._payload(rest, events)
        if not self._finished:
            if not self._ended:
                raise self._incomplete()
            self._finish(events)

    def _read_whole(self, events: list[StreamEvent], body: bytes) -> None:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise self._incomplete() from None
        answer = answer[0] if isinstance(answer, list) and answer else answer
        error = find_error(answer)
        if error is not None:
            raise classify(error, None, self._server)
        if not isinstance(answer, dict) or not answer.get("choices"):
            raise self._unreadable()
        self._chunk(answer, events)
        self._finish(events)

    def _payload(self, payload: bytes, events: list[StreamEvent]) -> None:
        if self._finished:
            return
        text = payload.decode()
        if text[0] == "[" and text.startswith("[DONE]"):
            if not (self._ended or self._answer.begun):
                raise self._incomplete()
            self._finish(events)
            return
        chunk, end = _parse(text) if text[0] == "{" else (None, 0)
        if end != len(text):
            chunk = json.loads(text)
        self._chunk(chunk, events)

    def _chunk(self, chunk: Any, events: list[StreamEvent]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            raise classify(find_error(chunk) or {}, None, self._server)
        if "usage" in chunk or "search_results" in chunk or "timings" in chunk:
            self._answer.note(chunk)
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):
                self._choice(choice, events)

    def _choice(self, choice: Mapping[str, Any], events: list[StreamEvent]) -> None:
        if self._search == "due":
            self._search = "begun"
            events.append(SearchStarted())
        delta = choice.get("delta")
        whole = not isinstance(delta, dict)
        message = choice.get("message") if whole else delta
        if isinstance(message, dict):
            shown = self._answer.add(message, whole=whole)
            if shown or self._answer.annotated:
                self._searched(events)
            events += shown
        elif isinstance(choice.get("text"), str):
            events += self._answer.add({"content": choice["text"]}, whole=False)
        reason = choice.get("finish_reason")
        if reason:
            if reason == "error" or choice.get("error"):
                raise classify(find_error(choice) or {}, None, self._server)
            self._ended = True
            self._answer.reason = str(reason)

    def _searched(self, events: list[StreamEvent]) -> None:
        if self._search == "begun":
            self._search = "done"
            events.append(SearchFinished(""))

    def _finish(self, events: list[StreamEvent]) -> None:
        rest = self._answer.end()
        if rest or self._search == "begun":
            self._searched(events)
        events += rest
        message, stop_reason, usage = self._answer.result()
        self._finished = True
        events.append(Finished(message, stop_reason, usage))

    def _incomplete(self) -> IncompleteError:
        return IncompleteError(
            "incomplete",
            f"The answer of {self._server.name} ended before it was finished.",
            "Try again.",
            retryable=True,
        )

    def _unreadable(self) -> ProviderError:
        return ProviderError(
            "bad_response",
            f"{self._server.name} sent something that is not a Chat Completions answer.",
            "Check that the base URL points to a Chat Completions server.",
        )


def _is_json(payload: bytes) -> bool:
    try:
        return isinstance(json.loads(payload), dict)
    except (ValueError, RecursionError):
        return False
