"""Decodes a response, streamed or not: bytes in, events out.

Every chunk is a whole response with more parts. There is no terminal event: a late chunk names the
finish reason and more parts may follow, so an answer ends with its bytes. Without a reason, or with
an unknown one, the answer is incomplete: new reasons usually mean that something was withheld.

Spec: https://ai.google.dev/api/generate-content#FinishReason
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._answer import Calls, Stretch, said, thought
from searchloop.agent.providers._codec import CodecBase, DecoderBase
from searchloop.agent.providers._wire import count, text_in
from searchloop.agent.providers.gemini.grounding import AnswerParts, Grounding, Part
from searchloop.agent.providers.gemini.request import PROVIDER, TOKEN, VERSION
from searchloop.agent.transport.exchange import incomplete
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.types import Finished, ProviderData, Request, StopReason, StreamEvent, Usage

# The model stumbled; asking again usually helps.
STUMBLED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"}
    | {"TOO_MANY_TOOL_CALLS", "OTHER"}
)
# The provider withholds the answer.
_WITHHELD = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}
)


def refusal(server: str, reason: str, words: Any, *, question: bool) -> str:
    """Returns the text that the user reads instead of an answer."""
    stopped = "the question" if question else "this answer"
    text = f"One of the filters of {server} stopped {stopped} ({reason})."
    return f"{text} It says: {words.strip()}" if isinstance(words, str) and words.strip() else text


def usage(counts: Mapping[str, Any], searches: int, pages: int) -> Usage:
    """Returns the reported counts; the server's own tools are input, thoughts are output."""
    read, thoughts = count(counts, "promptTokenCount"), count(counts, "thoughtsTokenCount")
    written: int | None = None
    if read is not None:  # the server omits zeros once there are counts at all
        read += count(counts, "toolUsePromptTokenCount") or 0
        written = (count(counts, "candidatesTokenCount") or 0) + (thoughts or 0)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=count(counts, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
        searches=searches,
        pages=pages,
    )


class GeminiDecoder(DecoderBase[AnswerParts]):
    """Decodes the answer to one request. See `agent.providers.Decoder`."""

    def __init__(self, codec: CodecBase, request: Request) -> None:
        super().__init__(codec)
        self._model = request.model
        self._answer = AnswerParts()
        self._answer.native = request.native_search is not None
        self._calls = Calls()
        self._grounding = Grounding(request.messages)
        self._usage: Mapping[str, Any] = {}
        self._reason: str | None = None
        self._words: Any = None
        self._token: str | None = None
        self._blocked: Mapping[str, Any] = {}

    def _read(self, event: Any) -> list[StreamEvent]:
        if isinstance(event, list):
            return [each for inner in event for each in self._read(inner)]
        events: list[StreamEvent] = []
        self._usage = event.get("usageMetadata") or self._usage
        feedback = event.get("promptFeedback")
        if feedback and feedback.get("blockReason"):
            self._blocked = feedback
        for candidate in event.get("candidates") or ():
            if not candidate.get("index"):
                self._candidate(candidate, events)
        return events

    def _candidate(self, candidate: Mapping[str, Any], events: list[StreamEvent]) -> None:
        content = candidate.get("content") or {}
        for part in content.get("parts") or ():
            self._part(part, events)
        if "groundingMetadata" in candidate or "urlContextMetadata" in candidate:
            events += self._grounding.merge(candidate)
        self._reason = candidate.get("finishReason") or self._reason
        self._words = candidate.get("finishMessage") or self._words
        self._token = candidate.get(TOKEN) or self._token

    def _part(self, part: Part, events: list[StreamEvent]) -> None:
        text = part.get("text")
        if isinstance(text, str):
            self._answer.keep(part)
            if text and part.get("thought"):
                events += thought(self._answer.reason(text))
            elif text:
                events += said(self._answer.say(text))
            return
        self._answer.interrupt()
        kept: Part | None = part
        if part.get("functionCall") is not None:
            kept = self._called(part)
        elif part.get("toolCall"):
            events += self._grounding.called(part["toolCall"])
        elif part.get("toolResponse"):
            events += self._grounding.answered(part["toolResponse"])
        if kept is not None:
            self._answer.keep(kept)

    def _called(self, part: Part) -> Part | None:
        """Adds a call, which is never in pieces. Returns the part to keep, None for a repetition.

        We never send an id of our own: without ids the server matches results by their order.
        """
        call = part["functionCall"]
        name, given = text_in(call, "name"), call.get("args") or {}
        if not name or self._calls.add(text_in(call, "id"), name, given) is None:
            return None
        if isinstance(call.get("args", given), dict):
            return part
        return {**part, "functionCall": {**call, "args": {}}}

    def _end_of_stream(self) -> Iterator[StreamEvent]:
        if self._blocked and not self._reason:
            yield from self._refuse(str(self._blocked["blockReason"]), question=True)
            return
        reason, server = self._reason, self._server
        if reason is None:
            raise incomplete(server)
        if reason in STUMBLED:
            text = f"The model of {server} gave no answer that can be used ({reason})."
            remedy = "Try again, or choose another model."
            raise ProviderError("model_stumbled", text, remedy, retryable=True)
        if reason == "MISSING_THOUGHT_SIGNATURE":
            raise Refusal(server).error("history_refused")
        if reason in _WITHHELD:
            yield from self._refuse(reason, question=False)
            return
        if reason not in _STOPS:
            raise incomplete(server, f"It gives the reason {reason}.")
        yield from self._last_words()
        if reason == "STOP" and not (self._answer.text.strip() or self._calls.made):
            text = f"{server} ended its answer without saying anything."
            raise ProviderError("empty_answer", text, "Try again.", retryable=True)
        suggestions = self._grounding.suggestions()
        details = {"search_suggestions": suggestions} if suggestions else {}
        yield self._result(_STOPS[reason], details)

    def _last_words(self) -> Iterator[StreamEvent]:
        yield from said(self._answer.end())
        yield from self._grounding.end()

    def _refuse(self, reason: str, *, question: bool) -> Iterator[StreamEvent]:
        """Shows the reason as the answer."""
        yield from self._last_words()
        words = self._blocked.get("blockReasonMessage") if question else self._words
        text = refusal(self._server, reason, words, question=question)
        yield from said(self._answer.put(Stretch(always=True), text))
        details = {"blocked": "prompt" if question else "answer", "reason": reason}
        yield self._result("refusal", details)

    def _result(self, why: StopReason, details: Mapping[str, Any]) -> Finished:
        calls = tuple(self._calls.made.values()) if why == "stop" else ()
        citations = self._grounding.citations(self._answer)
        consulted, data = self._grounding.consulted, None if why == "refusal" else self._raw(why)
        message = self._answer.message(calls, citations, consulted, data, details)
        pages = sum(status == "ok" for status in self._grounding.pages.values())
        counts = usage(self._usage, self._grounding.searches, pages)
        return Finished(message, "tool_calls" if calls else why, counts)

    def _raw(self, why: StopReason) -> ProviderData | None:
        """Returns the blocks to send back, without the calls of an answer that was cut."""
        blocks = self._answer.blocks
        if why != "pause":  # the server takes no search back that has no answer
            answered = [b["toolResponse"].get("id") for b in blocks if b.get("toolResponse")]
            blocks = [b for b in blocks if (b.get("toolCall") or {}).get("id") in (None, *answered)]
        if why != "stop":
            blocks = [block for block in blocks if "functionCall" not in block]
        if why == "pause" and self._token:
            blocks = [*blocks, {TOKEN: self._token}]
        elif all(block.get("thought") for block in blocks):
            return None
        return ProviderData(PROVIDER, self._model, VERSION, tuple(blocks))


_STOPS: Mapping[str, StopReason] = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "pause"}
