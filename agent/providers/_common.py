"""Parts that several providers share: JSON, names and ids that APIs accept, and base classes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar

from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.transport.exchange import Endpoint
from searchloop.agent.transport.sse import (
    ResponseBody,
    document_of,
    guarded,
    incomplete,
    unreadable,
)
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Message, ModelInfo, StreamEvent

LOST = "No result: the call was interrupted."

# Error codes of OpenAI and of the servers that follow it.
CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    | {"credit_balance_exhausted", "organization_spend_limit_exceeded"}
    | {"project_spend_limit_exceeded", "organization_usage_limit_exceeded"}
)
RATE_CODES = frozenset(
    {"rate_limit_exceeded", "slow_down", "rate_limit_error", "too_many_requests"}
)
OVERLOAD_CODES = frozenset(
    {"server_error", "server_is_overloaded", "service_unavailable_error", "overloaded_error"}
    | {"vector_store_timeout"}
)

LIST_SECONDS = 2.0
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)


def dump(value: Any) -> bytes:
    """Encodes `value` as compact JSON; half a surrogate pair becomes a question mark."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def function_name(name: str) -> str:
    """Replaces what APIs refuse in the name of a function: models make names up."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


def hashed_id(call_id: str, prefix: str) -> str:
    """Makes a short id from one that an API refuses."""
    return prefix + blake2b(call_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def remembered(message: Message, key: str, encode: Callable[[], bytes]) -> bytes:
    """Returns `message.encoded[key]`; calls `encode` for it the first time."""
    encoded = message.encoded.get(key)
    if encoded is None:
        encoded = message.encoded[key] = encode()
    return encoded


def result_text(message: Message) -> str:
    """Returns the text of a tool result; one of a failed call begins with "Error"."""
    text = message.content or "(empty)"
    if message.is_error and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def stray_text(message: Message) -> str:
    """Words a result without its call as text: APIs refuse it as a result."""
    return f"(Result of {message.tool_name or 'a tool'}, out of order)\n{message.content}"


class CodecBase:
    """Base of a `Codec` for one endpoint. Sends the key as a bearer token, if there is one."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint.name})"

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def explain(self, error: ProviderError) -> ProviderError:
        return self.endpoint.explain(error)


class DecoderBase:
    """Base of a `Decoder` for a stream with a terminal event, or for one JSON document.

    A subclass names its `api`, yields the events of one payload in `_read` and of a document in
    `_read_whole`, and sets `_finished`. A stream without its end raises IncompleteError, so no
    call is read from half its arguments.
    """

    api: ClassVar[str]
    begins: ClassVar[tuple[bytes, ...]] = (b"{",)

    def __init__(self, server: str, content_type: str) -> None:
        self._server = server
        self._body = ResponseBody(server, content_type, self.begins)
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        return guarded(self._unreadable, self._read_payloads, self._body.feed(data))

    def close(self) -> Iterable[StreamEvent]:
        return guarded(self._unreadable, self._read_end, self._body.document)

    def _read(self, event: Any) -> Iterable[StreamEvent]:
        raise NotImplementedError

    def _read_whole(self, document: Any) -> Iterable[StreamEvent]:
        raise NotImplementedError

    def _read_done(self) -> Iterable[StreamEvent]:
        """Reads the mark `[DONE]`, which most APIs do not need."""
        return ()

    def _end_of_stream(self) -> Iterable[StreamEvent]:
        """Reads the end of the bytes where no terminal event came."""
        raise incomplete(self._server)

    def _read_payloads(self, events: list[StreamEvent], payloads: list[bytes]) -> None:
        for payload in payloads:
            if self._finished:
                return
            text = payload.decode()
            done = text.startswith("[DONE]")
            events.extend(self._read_done() if done else self._read(json.loads(text)))

    def _read_end(self, events: list[StreamEvent], document: bytes | None) -> None:
        if document is not None:
            events.extend(self._read_whole(document_of(document)))
            return
        self._read_payloads(events, self._body.rest())
        if not self._finished:
            events.extend(self._end_of_stream())

    def _unreadable(self) -> ProviderError:
        return unreadable(self._server, self.api)


class KeyedProvider:
    """Base of a `Provider` whose vendor requires a key; a subclass adds `capabilities`, `stream`.

    `list_path` is the address of the server's list of models; `offered` maps names to titles, for
    the picker while the server lists none.
    """

    name: str
    list_path = "models"

    def __init__(
        self,
        codec: CodecBase,
        transport: Transport,
        key_setting: str,
        offered: Mapping[str, str],
    ) -> None:
        self._codec = codec
        self._transport = transport
        self._key_setting = key_setting
        self._offered = offered
        self._remedy = f"Set {key_setting} in the environment or in .env."
        self._ready = not codec.endpoint.needs_key

    def capabilities(self, model: str) -> Capabilities:
        raise NotImplementedError

    def check(self, model: str) -> None:
        if not self._ready:
            vendor = self._codec.endpoint.vendor
            what = f"{vendor} needs a key, and none is set."
            raise ConfigError("missing_key", what, self._remedy)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. Without a key, marks all models as not available."""
        listed = await self._listed() if self._ready else {}
        return [
            ModelInfo(
                f"{self.name}:{name}",
                title,
                self.capabilities(name),
                available=self._ready,
                missing=None if self._ready else self._key_setting,
                remedy=None if self._ready else self._remedy,
            )
            for name, title in (listed or self._offered).items()
        ]

    async def _listed(self) -> dict[str, str]:
        """Returns names and titles as the server lists them; empty if it fails to."""
        try:
            answer = await self._transport.get_json(
                self._codec.endpoint.address(self.list_path),
                self._codec.headers(),
                timeout=LIST_SECONDS,
            )
            return {str(m["id"]): str(m.get("display_name") or m["id"]) for m in answer["data"]}
        except (AgentError, AttributeError, KeyError, TypeError):
            return {}
