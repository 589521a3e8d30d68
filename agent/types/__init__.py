"""The values of a run, and the protocols of the loop.

Values are frozen. There are two vocabularies: a *provider* yields `StreamEvent`, a *log* holds
`agent.log.events`; only the loop translates. The loop checks `Meter` after each step, so it never
cuts a model call short, and a turn that reaches a limit still ends with an answer.

Others may import: attachments.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from searchloop.agent.types.attachments import Attachment

Role = Literal["user", "assistant", "tool"]
Effect = Literal["read", "network", "write", "exec"]
Span = tuple[int, int]
Mode = Literal["ask", "plan", "agent"]
Search = Literal["auto", "native", "local", "off"]
SEARCHES: tuple[Search, ...] = ("auto", "native", "local", "off")
SourceState = Literal["found", "opened", "cited"]
VerdictName = Literal["quoted", "misquoted", "supported", "contradicted", "unclear", "unread"]
Replay = Literal["whole", "unsigned", "neutral"]
StopReason = Literal["stop", "tool_calls", "length", "refusal", "pause"]
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
    `passage`; None where nobody compared them.
    """

    span: Span | None = None
    quote: str | None = None
    verdict: VerdictName | None = None
    passage: str | None = None

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


class Usage(NamedTuple):
    """Counts as the provider reported them; None for those it did not report."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    searches: int | None = None
    pages: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:  # type: ignore[override]  # sums, no longer tuple
        return Usage(*map(plus, self, other))

    def as_dict(self) -> dict[str, Any]:
        """Returns the usage object of every surface."""
        return self._asdict()


USAGE_FIELDS = Usage._fields


def plus(a: Any, b: Any) -> Any:
    """Adds two counts; None is an unknown one."""
    return b if a is None else a if b is None else a + b


NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: `content` for the model, the rest for the program.

    `usage` counts the tool's own searches and page reads.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    usage: Usage = NOTHING


class ProviderData(NamedTuple):
    """Raw blocks of a provider, sent back byte-equal and only to that provider and model."""

    provider: str
    model: str
    version: str
    blocks: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of the transcript; compared by identity.

    `encoded` is its form on the wire by codec and variant: it is made once for all steps.
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
    context_size: Literal["low", "medium", "high"] | None = None
    country: str | None = None
    external_access: bool = True
    max_searches: int | None = None
    folders: tuple[str, ...] = ()


ANYWHERE = NativeSearch()


@dataclass(frozen=True, slots=True)
class Request:
    """One model step, as a codec gets it; for `options` see `agent.calls.caller`.

    `messages` is append-only from step to step. With `answer_now`, tools stay listed where the
    provider needs them to read the history. `context_limit` is the session's window, if one is set.
    `replay` limits what goes back of raw answers: all, all but thinking, text and calls only.
    """

    model: str
    messages: Sequence[Message]
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
    """The abilities of a model. `tools_with_native_search`: both in one request."""

    tools: bool = True
    native_search: bool = False
    tools_with_native_search: bool = False
    thinking: bool = False
    vision: bool = False
    context: int | None = None


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

    `calls` is the form of a local model's calls: native, text, envelope, or search-first (the
    program searches for it). `disk` is in bytes; `loaded` is None while it is not in memory.
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


Price = Callable[[Usage], float | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one turn; None means no ceiling. `cost_usd` works only with known prices."""

    steps: int = 12
    searches: int | None = None
    pages: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None


DEFAULT_LIMITS = Limits()


class Meter:
    """Counts the usage of one turn: the provider's reports and our tools' work."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, price: Price | None = None) -> None:
        self._limits = limits
        self._price = price
        self._began = time.monotonic()
        self._model = Usage()
        self._tools = Usage()
        self.steps = 0

    def step(self, usage: Usage) -> None:
        """Adds one answer of the model."""
        self.steps += 1
        self._model = self._model + usage

    def tool(self, result: ToolResult) -> None:
        """Adds one result of a tool."""
        self._tools = self._tools + result.usage

    @property
    def usage(self) -> Usage:
        """The sum so far; the cost is the model's alone, None if a price is unknown."""
        model, tools = self._model, self._tools
        return model._replace(
            searches=plus(model.searches, tools.searches),
            pages=plus(model.pages, tools.pages),
            seconds=round(time.monotonic() - self._began, 3),
            cost_usd=self._price(model) if self._price else model.cost_usd,
        )

    def reached(self) -> str | None:
        """Returns the limit that is reached, in words, or None."""
        limits, usage = self._limits, self.usage
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        ceilings = (
            (self.steps, limits.steps, "{} steps"),
            (usage.searches, limits.searches, "{} searches"),
            (usage.pages, limits.pages, "{} pages"),
            (tokens, limits.tokens, "{} tokens"),
            (usage.seconds, limits.seconds, "{:g} seconds"),
            (usage.cost_usd, limits.cost_usd, "${:g}"),
        )
        for used, ceiling, words in ceilings:
            if ceiling is not None and (used or 0) >= ceiling:
                return f"the limit of {words.format(ceiling)}"
        return None
