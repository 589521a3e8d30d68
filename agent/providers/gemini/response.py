"""Decodes a response, streamed or not: bytes in, events out.

Every chunk is a whole response with more parts. There is no terminal event: a late chunk names the
finish reason and more parts may follow, so an answer ends with its bytes. Without a reason, or with
an unknown one, the answer is incomplete: new reasons usually mean that something was withheld. Some
servers send an array without framing, or an error without framing in the middle of a stream.

Spec: https://ai.google.dev/api/generate-content#FinishReason
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.providers.gemini.errors import classify, error_of
from searchloop.agent.providers.gemini.grounding import AnswerParts, Grounding
from searchloop.agent.providers.gemini.request import PROVIDER, TOKEN, VERSION, FunctionCalls
from searchloop.agent.transport.sse import (
    MAX_EVENT,
    SseSplitter,
    document_of,
    endless,
    guarded,
    incomplete,
    unreadable,
)
from searchloop.agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)

# The model stumbled; asking again usually helps.
STUMBLED: Mapping[str, str] = {
    "MALFORMED_FUNCTION_CALL": "wrote a function call that cannot be read",
    "MALFORMED_RESPONSE": "wrote an answer that cannot be read",
    "UNEXPECTED_TOOL_CALL": "called a tool that it does not have",
    "TOO_MANY_TOOL_CALLS": "kept calling its own tools and gave no answer",
    "OTHER": "stopped for a reason that it does not name",
}
# The provider withholds the answer, or refuses to read the question.
WITHHELD: Mapping[str, str] = {
    "SAFETY": "its safety filter",
    "RECITATION": "its filter for text that repeats a source word by word",
    "LANGUAGE": "a language that it does not support",
    "BLOCKLIST": "a forbidden word",
    "PROHIBITED_CONTENT": "its filter for prohibited content",
    "SPII": "its filter for personal data",
    "ESCALATION": "its rules for escalation",
    "PUP_LIMITED_DISABLED": "a limit of this account",
    "MODEL_ARMOR": "the filter of this project",
    "JAILBREAK": "its filter for attempts to change its rules",
    "IMAGE_SAFETY": "its safety filter for images",
    "IMAGE_PROHIBITED_CONTENT": "its filter for prohibited images",
    "IMAGE_RECITATION": "its filter for images that repeat a source",
    "IMAGE_OTHER": "its filter for images",
    "NO_IMAGE": "an image that could not be made",
}


def refusal(server: str, reason: str, words: Any, *, question: bool) -> str:
    """The text that the user reads instead of an answer."""
    cause = WITHHELD.get(reason, "one of its filters")
    text = (
        f"{server} did not answer: the question was stopped by {cause} ({reason})."
        if question
        else f"{server} stopped this answer because of {cause} ({reason})."
    )
    return f"{text} It says: {words.strip()}" if isinstance(words, str) and words.strip() else text


def usage(counts: Mapping[str, Any], searches: int, pages: int) -> Usage:
    """The reported counts: input includes the server's own tools, output includes thoughts."""
    read, written, thoughts = counts.get("promptTokenCount"), None, counts.get("thoughtsTokenCount")
    if read is not None:  # the server omits zeros once there are counts at all
        read += counts.get("toolUsePromptTokenCount") or 0
        written = (counts.get("candidatesTokenCount") or 0) + (thoughts or 0)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=counts.get("cachedContentTokenCount"),
        reasoning_tokens=thoughts,
        searches=searches,
        pages=pages,
    )


_parse = json.JSONDecoder().decode
_BARE = re.compile(rb"(?m)^[\[{]")
_ENDS = (b"\n\n", b"\n\r", b"\r\r")
_LISTED = re.compile(r"[\s,\[]*")
Part = dict[str, Any]


class GeminiDecoder:
    """See `agent.providers.Decoder`."""

    def __init__(self, request: Request, server: str, content_type: str) -> None:
        self._model = request.model
        self._server = server
        self._splitter = SseSplitter()
        self._whole = "json" in content_type
        self._rest: list[bytes] = []  # the piece that ended the last event, and those after it
        self._read_any = False
        self._size = 0
        self._answer = AnswerParts()
        self._calls = FunctionCalls()
        self._grounding = Grounding(request.messages)
        self._usage: Mapping[str, Any] = {}
        self._reason: str | None = None
        self._words: Any = None
        self._token: str | None = None
        self._blocked: Mapping[str, Any] = {}
        self._seen = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        """See `Decoder.feed`."""
        payloads = () if self._whole else self._splitter.feed(data)
        if payloads:
            self._rest, self._size, self._read_any = [], 0, True
        self._rest.append(data)
        self._size += len(data)
        if self._size > 4 * MAX_EVENT:
            raise endless(self._server)
        return self._decode(payloads)

    def close(self) -> Iterable[StreamEvent]:
        """See `Decoder.close`."""
        if self._read_any:
            self._rest[0] = _after_events(self._rest[0])
        rest = b"".join(self._rest)
        if self._whole:
            yield from self._decode(_listed(rest) or SseSplitter().feed(rest + b"\n\n"))
        else:
            last = [p for p in self._splitter.close() if isinstance(document_of(p), dict | list)]
            yield from self._decode(last or _bare(rest))
        yield from self._end()

    def _decode(self, payloads: Iterable[bytes]) -> Iterable[StreamEvent]:
        return guarded(self._unreadable, self._read_all, payloads)

    def _read_all(self, events: list[StreamEvent], payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            if payload != b"[DONE]":  # the end mark of another interface, which some servers share
                self._read(_parse(payload.decode()), events)

    def _unreadable(self) -> ProviderError:
        return unreadable(self._server, "the Gemini API", "a chunk")

    def _read(self, chunk: Any, events: list[StreamEvent]) -> None:
        error = error_of(chunk)
        if error is not None:
            raise classify(error, None, self._server)
        if isinstance(chunk, list):
            for each in chunk:
                self._read(each, events)
            return
        self._usage = chunk.get("usageMetadata") or self._usage
        feedback = chunk.get("promptFeedback")
        if feedback and feedback.get("blockReason"):
            self._blocked = feedback
        for candidate in chunk.get("candidates") or ():
            if not candidate.get("index"):
                self._candidate(candidate, events)
        self._seen |= bool(events)

    def _candidate(self, candidate: Mapping[str, Any], events: list[StreamEvent]) -> None:
        content = candidate.get("content") or {}
        for part in content.get("parts") or ():
            self._part(part, events)
        if "groundingMetadata" in candidate or "urlContextMetadata" in candidate:
            events.extend(self._grounding.merge(candidate))
        self._reason = candidate.get("finishReason") or self._reason
        self._words = candidate.get("finishMessage") or self._words
        self._token = candidate.get(TOKEN) or self._token

    def _part(self, part: Part, events: list[StreamEvent]) -> None:
        text = part.get("text")
        if isinstance(text, str):
            self._answer.keep(part)
            if text and part.get("thought"):
                events.append(ThinkingDelta(self._answer.think(text)))
            elif text and (shown := self._answer.say(text)):
                events.append(TextDelta(shown))
            return
        self._answer.interrupt()
        if part.get("functionCall") is not None:
            kept = self._calls.add(part)
            if kept is not None:
                self._answer.keep(kept)
            return
        self._answer.keep(part)
        if part.get("toolCall"):
            events.extend(self._grounding.called(part["toolCall"]))
        elif part.get("toolResponse"):
            events.extend(self._grounding.answered(part["toolResponse"]))

    def _end(self) -> Iterator[StreamEvent]:
        if self._blocked and not self._reason:
            yield from self._refuse(str(self._blocked["blockReason"]), question=True)
            return
        reason, server = self._reason, self._server
        if reason is None:
            raise incomplete(server)
        if reason in STUMBLED:
            text = f"The model of {server} {STUMBLED[reason]} ({reason})."
            remedy = "Try again, or choose another model."
            raise ProviderError("model_stumbled", text, remedy, retryable=True)
        if reason == "MISSING_THOUGHT_SIGNATURE":
            text = f"{server} misses a signature of an earlier step in this session."
            remedy = "Start a new session, or choose another model."
            raise ProviderError("bad_request", text, remedy)
        if reason in WITHHELD:
            yield from self._refuse(reason, question=False)
            return
        if reason not in _STOPS:
            raise incomplete(server, f"It gives the reason {reason}.")
        yield from self._last_words()
        if reason == "STOP" and self._calls.pending:
            raise incomplete(server)
        if reason == "STOP" and not (self._answer.text.strip() or self._calls.done):
            text = f"{server} ended its answer without saying anything."
            make = IncompleteError if self._seen else ProviderError
            code = "incomplete" if self._seen else "empty_answer"
            raise make(code, text, "Try again.", retryable=True)
        suggestions = self._grounding.suggestions()
        details = {"search_suggestions": suggestions} if suggestions else {}
        yield self._finished(_STOPS[reason], details=details)

    def _last_words(self) -> Iterator[StreamEvent]:
        text = self._answer.end()
        if text:
            yield TextDelta(text)
        yield from self._grounding.end()

    def _refuse(self, reason: str, *, question: bool) -> Iterator[StreamEvent]:
        """Shows the reason as the answer."""
        yield from self._last_words()
        words = self._blocked.get("blockReasonMessage") if question else self._words
        text = refusal(self._server, reason, words, question=question)
        before = self._answer.text
        notice = f"\n\n{text}" if before else text
        yield TextDelta(notice)
        details = {"blocked": "prompt" if question else "answer", "reason": reason}
        yield self._finished("refusal", before + notice, details)

    def _finished(
        self, why: StopReason, text: str | None = None, details: Mapping[str, Any] | None = None
    ) -> Finished:
        calls = tuple(self._calls.done) if why == "stop" else ()
        citations = self._grounding.citations(self._answer)
        message = Message(
            "assistant",
            self._answer.text if text is None else text,
            thinking=self._answer.thinking,
            tool_calls=calls,
            details=details or {},
            citations=citations,
            sources=self._grounding.sources(citations),
            provider_data=None if why == "refusal" else self._raw(why),
        )
        pages = sum(status == "ok" for status in self._grounding.pages.values())
        counts = usage(self._usage, self._grounding.searches, pages)
        return Finished(message, "tool_calls" if calls else why, counts)

    def _raw(self, why: StopReason) -> ProviderData | None:
        """The blocks to send back, without the calls of an answer that was cut."""
        blocks = self._answer.blocks
        if why != "stop":
            blocks = [block for block in blocks if "functionCall" not in block]
        if why == "pause" and self._token:
            blocks = [*blocks, {TOKEN: self._token}]
        elif all(block.get("thought") for block in blocks):
            return None
        return ProviderData(PROVIDER, self._model, VERSION, tuple(blocks))


_STOPS: Mapping[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
}


def _listed(body: bytes) -> list[bytes]:
    """The responses in a body without framing: one, or an array of them that may be cut."""
    text = body.decode("utf-8", "replace")
    found: list[bytes] = []
    start, decoder = _LISTED.match(text), json.JSONDecoder()
    while start and text[start.end() : start.end() + 1] == "{":
        try:
            _, end = decoder.raw_decode(text, start.end())
        except ValueError:
            break
        found.append(text[start.end() : end].encode("utf-8", "replace"))
        start = _LISTED.match(text, end)
    return found


def _bare(rest: bytes) -> list[bytes]:
    """JSON that a server wrote between or after its events without the framing of one."""
    start = _BARE.search(rest)
    return _listed(rest[start.start() :]) if start else []


def _after_events(data: bytes) -> bytes:
    """The bytes after the last event that ends in `data`, from its line end on."""
    ends = [at for at in (data.rfind(end) for end in _ENDS) if at >= 0]
    return data[max(ends) :] if ends else data
