"""The values of a run, and the protocols of the loop.

Values are frozen. There are two vocabularies: a *provider* yields `StreamEvent`, a *log* holds
`agent.log.events`; only the loop translates. The loop checks `Meter` after each step, so it never
cuts a model call short, and a turn that reaches a limit still ends with an answer.

Others may import: attachments.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from searchloop.agent.types.attachments import Attachment
from searchloop.agent.types.limits import DEFAULT_LIMITS as DEFAULT_LIMITS
from searchloop.agent.types.limits import NOTHING as NOTHING
from searchloop.agent.types.limits import USAGE_FIELDS as USAGE_FIELDS
from searchloop.agent.types.limits import Budget as Budget
from searchloop.agent.types.limits import Limits as Limits
from searchloop.agent.types.limits import Meter as Meter
from searchloop.agent.types.limits import Price as Price
from searchloop.agent.types.limits import Rates as Rates
from searchloop.agent.types.limits import Usage as Usage
from searchloop.agent.types.limits import plus as plus

Role = Literal["user", "assistant", "tool"]
Effect = Literal["read", "network", "write", "exec"]
Span = tuple[int, int]
Mode = Literal["ask", "plan", "agent"]
Search = Literal["auto", "native", "local", "offline", "off"]
SEARCHES: tuple[Search, ...] = ("auto", "native", "local", "offline", "off")
SourceState = Literal["found", "opened", "cited"]
VerdictName = Literal["quoted", "misquoted", "supported", "contradicted", "unclear", "unread"]
Replay = Literal["whole", "neutral"]
StopReason = Literal["stop", "tool_calls", "length", "refusal", "pause", "nothing"]
RunReason = Literal["stop", "limit", "cancelled", "error", "incomplete"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. `id` is unique within the session.

    `problem` says why the arguments could not be parsed; such a call gets an error result.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str | None = None


class Source(NamedTuple):
    """A URL met in a session. `n` is its number once the model may cite it, else None.

    `published` is the ISO date of the page according to an engine or the page itself.
    """

    url: str
    title: str = ""
    state: SourceState = "found"
    n: int | None = None
    published: str | None = None


class Mark(NamedTuple):
    """One place of an answer that a source supports.

    `span` is a half-open range in code points, None where the provider names no place. `quote`
    holds literal words: what the provider took from the source, else what the answer put in
    quotation marks. `verdict` is the result of a comparison with the page, whose nearest text is
    `passage`; None where nobody compared them. `by` says who compared: `words` (ours, without a
    model), `provider` (only with the passage that the provider quoted) or the name of a model.
    """

    span: Span | None = None
    quote: str | None = None
    verdict: VerdictName | None = None
    passage: str | None = None
    by: str | None = None

    @property
    def verified(self) -> bool | None:
        """True for quoted and supported, False for misquoted and contradicted, else None."""
        return _VERIFIED.get(self.verdict or "")


_VERIFIED = {"quoted": True, "supported": True, "misquoted": False, "contradicted": False}


class Citation(NamedTuple):
    """Source `n` supports the answer at each of `marks`."""

    n: int
    url: str
    title: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """The distinct places."""
        return tuple(dict.fromkeys(mark.span for mark in self.marks if mark.span))

    @property
    def quote(self) -> str | None:
        """The first quote that its page does not support, else the first."""
        return self._telling.quote

    @property
    def verified(self) -> bool | None:
        """False if a page does not support a mark, True if it was compared with all, else None."""
        return self._telling.verified

    @property
    def _telling(self) -> Mark:
        telling = sorted(self.marks, key=lambda m: (m.verified is not False, m.quote is None))
        return telling[0] if telling else Mark()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: `content` for the model, the rest for the program.

    `usage` counts the tool's own searches and page reads. `bounded` is set by a tool that keeps
    its own bound; every other result is cut. `attachments` are pictures, for models that see.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    usage: Usage = NOTHING
    bounded: bool = False
    attachments: tuple[Attachment, ...] = ()


class ProviderData(NamedTuple):
    """Raw blocks of a provider, sent back byte-equal and only to that provider and model."""

    provider: str
    model: str
    version: str
    blocks: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of the transcript; compared by identity.

    `encoded` is its form on the wire by codec and variant, `estimate` what it takes of a window in
    tokens (`log.events.size_of`): both are worked out once for all steps.
    """

    role: Role
    content: str
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    sources: tuple[Source, ...] = ()
    provider_data: ProviderData | None = None
    attachments: tuple[Attachment, ...] = ()
    encoded: dict[str, bytes] = field(default_factory=dict, repr=False)
    estimate: int = field(default=0, init=False, repr=False)


class ToolSpec(NamedTuple):
    """A tool as a model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "read"


class NativeSearch(NamedTuple):
    """Options of a search. In a request they ask for the provider's own, which has no `folders`."""

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    country: str | None = None
    max_searches: int | None = None
    folders: tuple[str, ...] = ()


ANYWHERE = NativeSearch()


@dataclass(frozen=True, slots=True)
class Request:
    """One model step, as a codec gets it; for `options` see `agent.calls.instructions`.

    `messages` is append-only from step to step. With `answer_now`, tools stay listed where the
    provider needs them to read the history. `context_limit` is the session's window, if one is set.
    `replay` limits what goes back of raw answers: all, or text and calls only.
    """

    model: str = ""
    messages: Sequence[Message] = ()
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    native_search: NativeSearch | None = None
    answer_now: bool = False
    session_id: str | None = None
    max_output_tokens: int | None = None
    context_limit: int | None = None
    replay: Replay = "whole"
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the model's visible thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class SearchStarted:
    """The provider began a search of its own. `query` is empty if it is not known yet."""

    query: str = ""


@dataclass(frozen=True, slots=True)
class SearchFinished:
    """The provider's own search ended; `results` is None if the provider reports no count."""

    query: str
    status: Literal["ok", "empty", "blocked", "error"] = "ok"
    results: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PageOpened:
    """The provider read a page itself."""

    url: str
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class Notice:
    """News for the user that is no error, such as a fallback or a cut prompt."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream.

    Citations in `message` have numbers 1, 2, ... by first appearance in it; the loop maps them to
    the session's source table.
    """

    message: Message
    stop_reason: StopReason
    usage: Usage


StreamEvent = (
    TextDelta | ThinkingDelta | SearchStarted | SearchFinished | PageOpened | Notice | Finished
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of a model. `tools_with_native_search`: both in one request. `efforts`: how
    long it may be told to think, in its own words."""

    tools: bool = True
    native_search: bool = False
    tools_with_native_search: bool = False
    thinking: bool = False
    vision: bool = False
    context: int | None = None
    efforts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory: bytes, how many of them on a GPU, its window, when it leaves (epoch)."""

    size: int = 0
    gpu: int = 0
    window: int | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One entry of the model picker. `id` is `provider:model`; `missing` says what it needs.

    `calls` is the form of a local model's calls: native or envelope. `disk` is in bytes; `loaded`
    is None while it is not in memory.
    """

    id: str
    title: str = ""
    capabilities: Capabilities = Capabilities()
    available: bool = True
    local: bool = False
    missing: str | None = None
    remedy: str | None = None
    calls: str | None = None
    disk: int | None = None
    loaded: Loaded | None = None


class Streams(Protocol):
    """The part of a provider that the loop needs."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yields the events of one model step, last `Finished`. Raises ProviderError."""


class Toolbox(Protocol):
    """The part of a toolset that the loop needs."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is offered."""

    @property
    def exhausted(self) -> str | None:
        """The reason why no further calls help, in words; None while they may."""

    async def call_all(self, calls: tuple[ToolCall, ...], emit: Emit) -> list[ToolResult]:
        """Runs the calls together; returns results in call order. Failures are results too."""


class Emit(Protocol):
    """The sink of a run's events."""

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Takes a piece of text; there are many a second, so it must be cheap."""

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Takes any other event of `agent.log.events`."""

    async def activity(self, event: StreamEvent) -> None:
        """Takes the provider's own searches, page reads and notices."""


class Listener:
    """An `Emit` that hands each piece of text to `text` and every other event to `event`.

    Listener(text=lambda piece: print(piece, end=""))
    """

    def __init__(
        self,
        text: Callable[[str], object] = str,
        event: Callable[[str, Mapping[str, Any]], object] = lambda type, data: None,
    ) -> None:
        self._text, self._event = text, event

    def delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Hands over text; thinking is not the answer's."""
        if isinstance(event, TextDelta):
            self._text(event.text)

    async def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Hands over an event."""
        self._event(type, data)

    async def activity(self, event: StreamEvent) -> None:
        """Hands over what the provider did itself, under the name of its class."""
        names = getattr(event, "__slots__", ())
        self._event(type(event).__name__, {name: getattr(event, name) for name in names})


NOBODY_LISTENS = Listener()
