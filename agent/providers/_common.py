"""Parts that several providers share: JSON, names, options, transcripts, and base classes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, TypeVar, cast

from searchloop.agent.calls.schema import is_strict
from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.providers import LIST_SECONDS, Codec, HttpProvider, get_list
from searchloop.agent.providers._models import ModelTable
from searchloop.agent.search.citations import sources, widen
from searchloop.agent.search.vendor_marks import Residue
from searchloop.agent.transport.exchange import (
    Endpoint,
    ResponseBody,
    document_of,
    guarded,
    incomplete,
    unreadable,
)
from searchloop.agent.transport.refusals import Refusal, quoted, with_wishes
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Citation,
    Message,
    ModelInfo,
    ProviderData,
    Request,
    Source,
    Span,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
)
from searchloop.agent.types.attachments import IMAGES, PDF
from searchloop.analysis.characters import visible

# The names that most APIs share. A provider's `options` maps ours to those of its API.
SAMPLING = {"temperature": "temperature", "top_p": "top_p"}


def sampling(request: Request, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options of a request under the names of an API."""
    return {names[key]: value for key, value in request.options.items() if key in names}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema as OpenAI's APIs take it."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def text_format(request: Request) -> dict[str, Any]:
    """Returns the member `text` of the Responses API, which takes objects alone.

    Spec: https://platform.openai.com/docs/guides/structured-outputs
    """
    if request.schema is None or request.schema.get("type") != "object":
        return {}
    return {"text": {"format": {"type": "json_schema", **json_schema(request.schema)}}}


LOST = "No result: the call was interrupted."
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)
_decode = json.JSONDecoder().decode  # faster than json.loads
_Named = TypeVar("_Named", Source, Citation)


def dump(value: Any) -> bytes:
    """Encodes `value` as compact JSON; half a surrogate pair becomes a question mark."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def member(value: Any, key: str) -> Any:
    """Returns a member of an object, None for anything else."""
    return value.get(key) if isinstance(value, dict) else None


def text_in(value: Any, key: str) -> str:
    """Returns a text in an object, "" for anything else."""
    found = member(value, key)
    return found if isinstance(found, str) else ""


def function_name(name: str) -> str:
    """Replaces what APIs refuse in the name of a function: models make names up."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


def hashed_id(call_id: str, prefix: str) -> str:
    """Makes a short id from one that an API refuses."""
    return prefix + blake2b(call_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def error_in(value: Any) -> Mapping[str, Any] | None:
    """Returns the error object of a body or an event, also inside a list; None without one."""
    if isinstance(value, list):
        return next((error for error in map(error_in, value) if error), None)
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, dict) and error else None


def remembered(message: Message, key: str, encode: Callable[[], bytes]) -> bytes:
    """Returns `message.encoded[key]`; calls `encode` for it the first time."""
    encoded = message.encoded.get(key)
    if encoded is None:
        encoded = message.encoded[key] = encode()
    return encoded


def result_text(message: Message) -> str:
    """Returns the text of a tool result; one of a failed call begins with "Error"."""
    text = message.content or "(empty)"
    if message.is_error and text is not LOST and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def stray_text(message: Message) -> str:
    """Words a result without its call as text: APIs refuse it as a result."""
    return f"(Result of {message.tool_name or 'a tool'}, out of order)\n{message.content}"


Step = tuple[Message | None, Sequence[Message], Sequence[Message]]
"""A message, one result for each of its calls in their order, and results that answer no call."""


def steps(messages: Iterable[Message]) -> Iterator[Step]:
    """Yields the transcript in steps. A call without a result gets LOST: APIs refuse it alone."""
    head: Message | None = None
    results: dict[str, Message | None] = {}
    strays: list[Message] = []
    for message in messages:
        if message.role == "tool":
            call_id = message.tool_call_id or ""
            if results.get(call_id, message) is None:
                results[call_id] = message
            else:
                strays.append(message)
            continue
        yield head, _answers(head, results) if results else (), strays
        head, strays = message, []
        results = {call.id: None for call in message.tool_calls} if message.tool_calls else {}
    yield head, _answers(head, results), strays


def _answers(head: Message | None, results: Mapping[str, Message | None]) -> Sequence[Message]:
    if head is None or not head.tool_calls:
        return ()
    return [
        results[call.id]
        or Message("tool", LOST, tool_call_id=call.id, tool_name=call.name, is_error=True)
        for call in {call.id: call for call in head.tool_calls}.values()
    ]


class CodecBase:
    """Base of a `Codec` for one endpoint. Sends the key as a bearer token, if there is one."""

    vendor: ClassVar[str]
    home: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, key: str = "", base_url: str = "") -> None:
        self.endpoint = Endpoint(
            base_url or self.home, key, vendor=self.vendor, home=self.home, setting=self.setting
        )

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        details = self.details_of(document_of(body))
        return with_wishes(self.refused(details, status), headers)

    def details_of(self, document: Any) -> Mapping[str, Any]:
        """Returns the error object in the body of an error answer."""
        return error_in(document) or {}

    @staticmethod
    def classify(details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        """Returns our error for an error object {message, type, code ...}."""
        raise NotImplementedError

    def refused(self, details: Mapping[str, Any], status: int | None = None) -> ProviderError:
        """Returns the error for an error object; `status` is None inside a stream."""
        return self.classify(details, self.refusal(details, status))

    def refusal(self, details: Mapping[str, Any], status: int | None) -> Refusal:
        """Returns the server's refusal, in its own words."""
        said = quoted(details.get("message"), self.endpoint.key)
        return Refusal(self.endpoint.name, said, status)

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

    def __init__(self, codec: CodecBase, content_type: str) -> None:
        self._codec = codec
        self._server = codec.endpoint.name
        self._body = ResponseBody(self._server, content_type, self.begins)
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
        return ()  # most APIs do not need the mark `[DONE]`

    def _end_of_stream(self) -> Iterable[StreamEvent]:
        raise incomplete(self._server)

    def _read_payloads(self, events: list[StreamEvent], payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            if self._finished:
                return
            text = payload.decode()
            done = text.startswith("[DONE]")
            events.extend(self._read_done() if done else self._read(_decode(text)))

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
    """Base of a `Provider` whose vendor requires a key.

    `known` is the table of its models, `list_path` the address of the server's list of them,
    `media` the types of files that its API takes.
    """

    name: ClassVar[str]
    key_setting: ClassVar[str]
    known: ClassVar[ModelTable[Any]]
    list_path: ClassVar[str] = "models"
    media: ClassVar[frozenset[str]] = IMAGES | {PDF}

    def __init__(self, codec: CodecBase, transport: Transport) -> None:
        self._codec = codec
        self._transport = transport
        self._http = HttpProvider(cast(Codec, codec), transport)
        self._ready = not codec.endpoint.needs_key

    def capabilities(self, model: str) -> Capabilities:
        """See `Provider.capabilities`. Raises nothing: any name is in the table."""
        able: Capabilities = self.known.of(model)
        return able

    async def takes(self, model: str) -> frozenset[str]:
        """See `providers.media_types`."""
        return self.media if self.capabilities(model).vision else frozenset()

    def check(self, model: str) -> None:
        if not self._ready:
            what = f"{self._codec.vendor} needs a key, and none is set."
            remedy = f"Set {self.key_setting} in the environment or in .env."
            raise ConfigError("missing_key", what, remedy)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self._http.stream(request)

    async def models(self) -> list[ModelInfo]:
        """See `Provider.models`. What nobody could ask is marked: no key, a refused one, no server.

        A vendor that has a key and cannot be reached right now keeps its models.
        """
        listed: dict[str, str] = {}
        lacks: dict[str, Any] = {}
        try:
            listed = await self.listing(LIST_SECONDS)
        except AgentError as error:
            if error.code == "unauthorized" or not self._codec.endpoint.key:
                what = error.message if self._ready else self.key_setting
                lacks = {"available": False, "missing": what, "remedy": error.remedy}
        return [
            ModelInfo(f"{self.name}:{name}", title, self.capabilities(name), **lacks)
            for name, title in (listed or self.known.offered).items()
        ]

    async def listing(self, seconds: float = 3 * LIST_SECONDS) -> dict[str, str]:
        """Returns names and titles as the server lists them. Raises AgentError."""
        self.check("")
        return await get_list(
            self._codec, self._transport, self.list_path, self._read_list, seconds
        )

    def _read_list(self, answer: Any) -> dict[str, str]:
        return {str(m["id"]): str(m.get("display_name") or m["id"]) for m in answer["data"]}


JOINER = "\n\n"
NO_DETAILS: Mapping[str, Any] = {}


class Stretch:
    """Text that the server wrote in one go; marks are removed across its pieces."""

    def __init__(self, always: bool = False) -> None:
        self.apart = True  # a blank line separates it from the text before,
        self.always = always  # even if blanks do
        self.size = 0
        self.base: int | None = None  # where it begins in the shown text
        self.residue = Residue()
        self._pieces: list[str] = []

    @property
    def raw(self) -> str:
        """The text as the server wrote it."""
        return "".join(self._pieces)

    def add(self, piece: str) -> str:
        """Adds a piece, and returns it."""
        self._pieces.append(piece)
        self.size += len(piece)
        return piece


class ShownAnswer:
    """The text and the thinking of one answer. Its methods return what can be shown now."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._length = 0
        self._thinking: list[str] = []
        self._section: object = None

    @property
    def text(self) -> str:
        """The text shown so far."""
        return "".join(self._shown)

    @property
    def thinking(self) -> str:
        """The thinking shown so far."""
        return "".join(self._thinking)

    def think(self, text: str, section: object = None) -> str:
        """Adds thinking; another section begins a paragraph."""
        if text:
            text = JOINER + text if self._thinking and section != self._section else text
            self._section = section
            self._thinking.append(text)
        return text

    def show(self, stretch: Stretch, piece: str) -> str:
        """Shows more of a stretch, up to what may become a mark."""
        return self.put(stretch, stretch.residue.feed(piece))

    def close(self, stretch: Stretch) -> str:
        """Shows the rest of a stretch."""
        return self.put(stretch, stretch.residue.close())

    def place(self, stretch: Stretch, at: int) -> int:
        """Maps an offset in a stretch to one in the shown text."""
        return min((stretch.base or 0) + stretch.residue.position(at), self._length)

    def message(
        self,
        calls: tuple[ToolCall, ...],
        citations: tuple[Citation, ...],
        consulted: Iterable[Source],
        data: ProviderData | None,
        details: Mapping[str, Any] = NO_DETAILS,
    ) -> Message:
        """Returns the whole answer; `consulted` are the pages that the server read or found."""
        citations = tuple(map(_readable, citations))
        return Message(
            "assistant",
            self.text,
            thinking=self.thinking,
            tool_calls=calls,
            details=details,
            citations=citations,
            sources=sources(map(_readable, consulted), citations),
            provider_data=data,
        )

    def span(self, first: int, last: int) -> Span | None:
        """Returns the cited range, or its sentence if only a mark was cited."""
        return (first, last) if first < last else widen(self.text, first)

    def put(self, stretch: Stretch, text: str) -> str:
        """Shows text of a stretch in which no marks are left."""
        if text:
            if stretch.base is None:
                apart = stretch.apart and bool(self._shown)
                blank = apart and (self._shown[-1][-1].isspace() or text[0].isspace())
                joined = not apart or (blank and not stretch.always)
                stretch.base = self._length + (0 if joined else len(JOINER))
                text = text if joined else JOINER + text
            self._shown.append(text)
            self._length += len(text)
        return text


def _readable(named: _Named) -> _Named:
    """Returns a source or a citation without invisible signs in its title."""
    title = visible(named.title)
    return named if title == named.title else named._replace(title=title)


def said(text: str) -> Iterable[StreamEvent]:
    """Returns the event for text that is shown."""
    return (TextDelta(text),) if text else ()


def thought(text: str) -> Iterable[StreamEvent]:
    """Returns the event for thinking that is shown."""
    return (ThinkingDelta(text),) if text else ()
