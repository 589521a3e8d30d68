"""Bytes of a response become events, streamed or not.

Every chunk is a whole response with more parts. There is no terminal event: the last chunk names a
reason, and what belongs to the answer may still follow it, so an answer ends with its bytes. If
there is no reason it is cut, and no call of it is read. A server that leaves the framing out sends
an array, one that fails in the middle may send its error without framing; both are read.

Spec: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent.errors import ProviderError
from agent.framing import MAX_EVENT, SseSplitter
from agent.providers.gemini.answer import Answer
from agent.providers.gemini.calls import Calls
from agent.providers.gemini.failures import classify, error_of
from agent.providers.gemini.finish import (
    STUMBLED,
    WITHHELD,
    empty,
    refusal,
    stumbled,
    unfinished,
    unsigned,
    usage,
)
from agent.providers.gemini.grounding import Grounding
from agent.providers.gemini.history import PROVIDER, TOKEN, VERSION
from agent.response_body import endless, guarded, unreadable
from agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
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
        self._rest: list[bytes] = []  # what came since the last event, with the piece that ended it
        self._read_any = False
        self._size = 0
        self._answer = Answer()
        self._calls = Calls()
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
            last = [payload for payload in self._splitter.close() if _is_json(payload)]
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
        reason = self._reason
        if reason is None:
            raise unfinished(self._server)
        if reason in STUMBLED:
            raise stumbled(self._server, reason)
        if reason == "MISSING_THOUGHT_SIGNATURE":
            raise unsigned(self._server)
        if reason in WITHHELD:
            yield from self._refuse(reason, question=False)
            return
        if reason not in ("STOP", "MAX_TOKENS", "CONTINUATION"):
            raise unfinished(self._server, reason)
        yield from self._last_words()
        if reason == "STOP" and self._calls.pending:
            raise unfinished(self._server)
        if reason == "STOP" and not (self._answer.text.strip() or self._calls.done):
            raise empty(self._server, shown=self._seen)
        yield self._finished(_STOPS[reason], details=self._details())

    def _last_words(self) -> Iterator[StreamEvent]:
        text = self._answer.end()
        if text:
            yield TextDelta(text)
        yield from self._grounding.end()

    def _refuse(self, reason: str, *, question: bool) -> Iterator[StreamEvent]:
        """In words, because the reason is all there is to show."""
        yield from self._last_words()
        words = self._blocked.get("blockReasonMessage") if question else self._words
        text = refusal(self._server, reason, words, question=question)
        before = self._answer.text
        notice = f"\n\n{text}" if before else text
        yield TextDelta(notice)
        details = {"blocked": "prompt" if question else "answer", "reason": reason}
        yield self._finished("refusal", before + notice, details)

    def _details(self) -> dict[str, Any]:
        suggestions = self._grounding.suggestions()
        return {"search_suggestions": suggestions} if suggestions else {}

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
        """What is sent back; of an answer that was cut, its calls are not."""
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
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        opening = _LISTED.match(text, at)
        at = opening.end() if opening else at
        if text[at : at + 1] != "{":
            break
        try:
            _, end = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(text[at:end].encode("utf-8", "replace"))
        at = end
    return found


def _bare(rest: bytes) -> list[bytes]:
    """JSON that a server wrote between or after its events without the framing of one."""
    start = _BARE.search(rest)
    return _listed(rest[start.start() :]) if start else []


def _after_events(data: bytes) -> bytes:
    """What follows the last event that ends in `data`, from its line end on."""
    ends = [at for at in (data.rfind(end) for end in _ENDS) if at >= 0]
    return data[max(ends) :] if ends else data


def _is_json(payload: bytes) -> bool:
    try:
        return isinstance(json.loads(payload), dict | list)
    except ValueError:
        return False
