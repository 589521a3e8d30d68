"""The base classes of codecs and decoders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._answer import ShownAnswer, said
from searchloop.agent.providers._wire import error_in
from searchloop.agent.transport.exchange import (
    MISREAD,
    Endpoint,
    NdjsonSplitter,
    SseSplitter,
    document_of,
    incomplete,
    then_raise,
)
from searchloop.agent.transport.refusals import TOO_LONG, Refusal, quoted, sentence, with_wishes
from searchloop.agent.types import Request, StreamEvent

_decode = json.JSONDecoder().decode  # faster than json.loads


# What vendors, and the servers that follow them, name the cause of an error.
_CREDIT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
    | {"credit_balance_exhausted", "organization_spend_limit_exceeded"}
    | {"project_spend_limit_exceeded", "organization_usage_limit_exceeded"}
)
_KEY = frozenset({"invalid_api_key", "authentication_error"})
_RATE = frozenset({"rate_limit_exceeded", "slow_down", "rate_limit_error", "too_many_requests"})
_BUSY = frozenset(
    {"server_error", "server_is_overloaded", "service_unavailable_error", "overloaded_error"}
    | {"vector_store_timeout", "api_error", "timeout_error", "conflict_error"}
    | {"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"}
)
_NO_MODEL = frozenset({"NOT_FOUND", "model_not_found", "DeploymentNotFound"})
_FILTER = frozenset({"content_filter", "content_policy_violation"})
_FORBIDDEN = frozenset({"permission_error", "PERMISSION_DENIED", "FAILED_PRECONDITION"})
_MONEY = re.compile("credit balance is too low|spend(?:ing)? limit|usage limits", re.IGNORECASE)
_MODEL = re.compile(
    r"model\b.{0,120}\b(?:not found|does not exist|not exist|is not (?:a )?valid)|^model: "
    r"|(?:unknown|invalid|no such) model|no endpoints found|is not a valid model"
    r"|model identifier is invalid",
    re.IGNORECASE | re.DOTALL,
)
# Signed thinking of earlier answers.
_HISTORY = re.compile(
    r"bound to a different conversation|blocks in the latest assistant message"
    r"|invalid [`'\"]?(?:signature|data)[`'\"]? in [`'\"]?(?:redacted_)?thinking"
    r"|content\.\d+\.(?:(?:redacted_)?thinking\.)?(?:signature|data)\b|signature verification"
    r"|expected [`'\"]?thinking|thinking[`'\"]? blocks?\b.{0,60}(?:different|expired|decrypt)"
    r"|thought[\s_-]*signature|continuation[\s_-]*token"
    # What else stands for them: the server cannot decrypt, find or match it. What someone wrote
    # into a message is not meant.
    r"|encrypted[ _](?:content|index)|without its required|item (?:with id )?\S{1,80} not found"
    r"|items are not persisted|duplicate item|no tool (?:output|call) found|an id that begins with"
    r"|(?:decrypt|verify|parse).{0,40}\breasoning|\breasoning (?:item|content)\b.{0,60}"
    r"(?:decrypt|expired|signature|mismatch|corrupt|not found)"
    r"|\binput\[\d+\](?!\.(?:content|output|arguments|name))"
    r"|without a (?:corresponding|preceding)|`tool_use` ids were found without"
    r"|unexpected `tool_use_id`|function (?:call|response) (?:turn|part)"
    r"|reasoning_(?:content|details)|(?:invalid|corrupted) [`'\"]?signature"
    r"|\breasoning\b[`'\"]{0,2}:? (?:is )?(?:unsupported|not (?:supported|allowed|permitted))",
    re.IGNORECASE,
)


class CodecBase:
    """Base of a `Codec` for one endpoint. Sends the key as a bearer token, if there is one.

    `setting` and `key_setting` name the settings of the server and of its key, `api` what it
    speaks, `ends` how its address usually ends, `path` where requests go.
    """

    vendor: ClassVar[str]
    home: ClassVar[str]
    setting: ClassVar[str]
    key_setting: ClassVar[str]
    api: ClassVar[str]
    ends: ClassVar[str] = "/v1"
    path: ClassVar[str] = ""

    def __init__(self, key: str = "", base_url: str = "") -> None:
        self.endpoint = Endpoint(
            base_url or self.home, key, vendor=self.vendor, home=self.home, setting=self.setting
        )

    def url(self, request: Request) -> str:
        return self.endpoint.address(self.path)

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        said = document_of(body)
        said = sentence(body.decode("utf-8", "replace")) if said is None else said
        details = error_in(said, failed=True) or {}
        return with_wishes(self.refused(details, status), headers)

    def refused(self, details: Mapping[str, Any], status: int | None = None) -> ProviderError:
        """Returns the error for an error object; `status` is None inside a stream."""
        named = map(_status, map(details.get, ("code", "status", "status_code")))
        status = status or next(filter(None, named), None)
        said = quoted(details.get("message"), self.endpoint.key)
        return self.classify(details, Refusal(self.endpoint.name, said, status))

    def classify(self, details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        """Returns our error for an error object {message, type, code, status, param ...}."""
        codes = {str(details.get(name)) for name in ("code", "type", "status")}
        param, status = str(details.get("param") or ""), refusal.status or 0
        text = str(details.get("message") or "")
        told = f"{param} {text} {' '.join(codes)}"
        if status == 402 or codes & _CREDIT or _MONEY.search(text):
            return refusal.error("quota", why="has no credit left")
        if status == 401 or codes & _KEY or (status == 400 and "api key" in text.lower()):
            sent = "the key" if self.endpoint.key else "requests without a key"
            return refusal.error("unauthorized", key=sent, setting=self.key_setting)
        if status == 429 or codes & _RATE:
            return refusal.error("rate_limited")
        if _HISTORY.search(told):
            return refusal.error("history_refused")
        if status == 413 or TOO_LONG.search(told):
            return refusal.error("context_length")
        if codes & _FILTER:
            return refusal.error("withheld")
        if codes & _NO_MODEL or param == "model" or _MODEL.search(text):
            return refusal.error("model_not_found")
        if codes & _BUSY or status >= 500 or status in (408, 409, 499):
            return refusal.error("server_error")
        if status in (403, 451) or codes & _FORBIDDEN:
            return refusal.error("forbidden")
        if status in (404, 405):
            return refusal.error("bad_url", api=self.api, setting=self.setting, ends=self.ends)
        unknown = not status and not any("invalid" in code for code in codes)
        return refusal.error("server_error" if unknown else "bad_request")

    def explain(self, error: ProviderError) -> ProviderError:
        return self.endpoint.explain(error)


def _status(code: Any) -> int | None:
    """Reads a status that a body names, also as text."""
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:6])
    return code if type(code) is int and 400 <= code <= 599 else None


A = TypeVar("A", bound=ShownAnswer)


class DecoderBase(Generic[A]):
    """Base of a `Decoder` for a stream with a terminal event, or `lines` of JSON.

    A subclass yields the events of one payload in `_read`, which is no error, and sets `_finished`.
    An answer that does not stream is one payload. A stream without its end raises IncompleteError,
    so no call is read from half its arguments; a reader sees the text before a fault, all of it if
    any was shown.
    """

    lines: ClassVar[bool] = False
    _answer: A

    def __init__(self, codec: CodecBase) -> None:
        self._codec = codec
        self._server = codec.endpoint.name
        self._splitter = NdjsonSplitter() if self.lines else SseSplitter()
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        return self._guarded(self._read_data, data)

    def close(self) -> Iterable[StreamEvent]:
        return self._guarded(self._read_end)

    def _guarded(self, read: Callable[..., None], *given: Any) -> Iterable[StreamEvent]:
        events: list[StreamEvent] = []
        try:
            read(events, *given)
            return events
        except ProviderError as error:
            fault = error
        except MISREAD as error:
            api = self._codec.api
            what = f"{self._server} sent an event that is not as {api} describes it."
            remedy = f"Check that the base URL points to a server of {api}."
            fault = ProviderError("bad_response", what, remedy)
            fault.__cause__ = error
        held = self._held() if self._answer.started else ""
        return then_raise([*events, *said(held)], fault)

    def _held(self) -> str:
        """Returns the text that may become a mark, for it will not."""
        return self._answer.held()

    def _read(self, event: Any) -> Iterable[StreamEvent]:
        raise NotImplementedError

    def _error_in(self, event: Any) -> dict[str, Any] | None:
        return error_in(event)

    def _read_done(self) -> Iterable[StreamEvent]:
        return ()  # most APIs do not need the mark `[DONE]`

    def _end_of_stream(self) -> Iterable[StreamEvent]:
        raise incomplete(self._server)

    def _read_data(self, events: list[StreamEvent], data: bytes) -> None:
        self._read_all(events, self._splitter.feed(data))

    def _read_all(self, events: list[StreamEvent], payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            if self._finished:
                return
            text = payload.decode()
            if text.startswith("[DONE]"):
                events.extend(self._read_done())
                continue
            event = _decode(text)
            if '"error"' in text and (error := self._error_in(event)) is not None:
                raise self._codec.refused(error)
            events.extend(self._read(event))

    def _read_end(self, events: list[StreamEvent]) -> None:
        """Reads a last payload without its blank line, if its JSON is complete."""
        rest = self._splitter.close()
        whole = [p for p in rest if isinstance(document_of(p), dict | list) or p == b"[DONE]"]
        self._read_all(events, whole)
        if not self._finished:
            events.extend(self._end_of_stream())
