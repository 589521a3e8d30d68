"""Bytes of a Chat Completions answer become events, streamed or not.

The end is `[DONE]`, or the end of the bytes after a `finish_reason`: the counts come after that
reason, and some servers send no reason at all. Anything that ends otherwise is incomplete, so no
call is ever read from half its arguments. Text is shown without printed thinking and vendor marks.

Spec: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agent.errors import ProviderError
from agent.providers.openai_chat.address import ChatServer
from agent.providers.openai_chat.answer import Answer
from agent.providers.openai_chat.failures import classify, find_error
from agent.response_body import ResponseBody, document_of, guarded, incomplete
from agent.types import Finished, Request, SearchFinished, SearchStarted, StreamEvent

_parse = json.JSONDecoder().raw_decode


class ChatDecoder:
    """See `agent.providers.Decoder`."""

    def __init__(self, request: Request, server: ChatServer, content_type: str) -> None:
        self._server = server
        self._body = ResponseBody(server.name, content_type, begins=(b"{", b"["))
        tools = () if server.official else request.tools  # its calls are never printed
        self._answer = Answer(request.model, server.host, tools)
        # The API tells nothing of its searches, but these models always make one.
        self._search = "due" if request.native_search is not None else "none"
        self._ended = False
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """See `Decoder.feed`."""
        return guarded(self._unreadable, self._read_payloads, self._body.feed(data))

    def close(self) -> Iterable[StreamEvent]:
        """See `Decoder.close`."""
        document = self._body.document
        if document is not None:
            return guarded(self._unreadable, self._read_whole, document)
        return guarded(self._unreadable, self._read_rest)

    def _read_payloads(self, events: list[StreamEvent], payloads: list[bytes]) -> None:
        for payload in payloads:
            self._payload(payload, events)

    def _read_rest(self, events: list[StreamEvent]) -> None:
        if self._finished:
            return
        self._read_payloads(events, self._body.rest())
        if not self._finished:
            if not self._ended:
                raise incomplete(self._server.name)
            self._finish(events)

    def _read_whole(self, events: list[StreamEvent], body: bytes) -> None:
        answer = document_of(body)
        if answer is None:
            raise incomplete(self._server.name)
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
                raise incomplete(self._server.name)
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

    def _unreadable(self) -> ProviderError:
        return ProviderError(
            "bad_response",
            f"{self._server.name} sent something that is not a Chat Completions answer.",
            "Check that the base URL points to a Chat Completions server.",
        )
