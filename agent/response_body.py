"""The bytes of a model's answer: a stream of events, or one JSON document.

Servers that were asked to stream may answer whole, and some name neither in the content type; then
the first character tells. A decoder reads payloads, and what is cut is never taken for an end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from agent.ending import then_raise
from agent.errors import IncompleteError, ProviderError
from agent.framing import MAX_EVENT, SseSplitter
from agent.types import StreamEvent

_DONE = b"[DONE]"
# What reading something of an unexpected shape ends in.
_MISREAD = (KeyError, TypeError, AttributeError, ValueError, RecursionError)


class ResponseBody:
    """Feeds payloads of server-sent events, or keeps a document whole until the end."""

    def __init__(self, server: str, content_type: str, begins: tuple[bytes, ...] = (b"{",)) -> None:
        """`begins` are the first characters of a document."""
        self._server = server
        self._splitter = SseSplitter()
        self._document: list[bytes] | None = [] if "json" in content_type else None
        self._begins = begins
        self._sniff = not ("json" in content_type or "event-stream" in content_type)
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes; none of a document."""
        if self._sniff and data.strip():
            self._sniff = False
            self._document = [] if data.lstrip().startswith(self._begins) else None
        if self._document is None:
            return self._splitter.feed(data)
        self._size += len(data)
        if self._size > 4 * MAX_EVENT:
            raise endless(self._server)
        self._document.append(data)
        return []

    @property
    def document(self) -> bytes | None:
        """All of it, if it is one document; None for a stream."""
        return None if self._document is None else b"".join(self._document)

    def rest(self) -> list[bytes]:
        """The payload of a last event without its blank line, if it is whole."""
        return [payload for payload in self._splitter.close() if _is_whole(payload)]


def event_of(text: str) -> Any:
    """The JSON of a payload; None for the end mark of other interfaces."""
    return None if text.startswith("[DONE]") else json.loads(text)


def document_of(body: bytes) -> Any:
    """The JSON of a document; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def guarded(
    unreadable: Callable[[], ProviderError], read: Callable[..., None], *given: Any
) -> Iterable[StreamEvent]:
    """What `read(events, *given)` appends; when it fails, what came before that is shown first.

    `unreadable` makes the error for bytes that are not as the API describes them.
    """
    events: list[StreamEvent] = []
    try:
        read(events, *given)
    except ProviderError as error:
        return then_raise(events, error)
    except _MISREAD as error:
        wrong = unreadable()
        wrong.__cause__ = error
        return then_raise(events, wrong)
    return events


def unreadable(server: str, api: str, what: str = "an event") -> ProviderError:
    """Bytes of another API, or of none."""
    return ProviderError(
        "bad_response",
        f"{server} sent {what} that is not as {api} describes it.",
        f"Check that the base URL points to a server of {api}.",
    )


def incomplete(server: str, why: str = "") -> IncompleteError:
    """The bytes ended, the answer did not. `why` is a sentence, if the server gave a reason."""
    return IncompleteError(
        "incomplete",
        f"The answer of {server} ended before it was finished. {why}".rstrip(),
        "Try again.",
        retryable=True,
    )


def endless(server: str) -> ProviderError:
    """More than any answer needs."""
    return ProviderError(
        "bad_response",
        f"The answer of {server} has no end.",
        "Check that the base URL points to the provider itself.",
    )


def _is_whole(payload: bytes) -> bool:
    return payload.strip() == _DONE or isinstance(document_of(payload), dict)
