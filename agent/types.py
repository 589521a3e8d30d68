"""The nouns of a run: messages, tool calls, citations, and what a provider stream yields.

Everything here is a frozen value. Two vocabularies are kept apart on purpose: what a *provider*
yields (`StreamEvent`, seven kinds) and what a *log* holds (`agent.events`). The loop is the only
translator between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]
Effect = Literal["read", "network", "write", "exec"]
Span = tuple[int, int]
Mode = Literal["ask", "plan", "agent"]
Search = Literal["auto", "native", "local", "off"]
SourceState = Literal["found", "opened", "cited"]
StopReason = Literal["stop", "tool_calls", "length", "refusal", "pause"]
RunReason = Literal["stop", "limit", "cancelled", "error", "incomplete"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. `id` is unique within the session.

    `problem` is set when the arguments could not be parsed; such a call is answered with an
    error result and never executed.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A URL met in a session. `n` is given once the model may cite it; `found` is not `opened`.

    `published` is the day of the page as an engine or the page itself gives it, as an ISO date.
    """

    url: str
    title: str = ""
    state: SourceState = "found"
    n: int | None = None
    published: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """One place of an answer that a source supports.

    `span` is a half-open range in code points of the text, None where a provider names no place.
    `quote` is what the source says there. `verified` is True or False when the page was read and
    compared, else None.
    """

    span: Span | None = None
    quote: str | None = None
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Source `n` supports the answer at each of `marks`."""

    n: int
    url: str
    title: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """The places, each once."""
        return tuple(dict.fromkeys(mark.span for mark in self.marks if mark.span))

    @property
    def quote(self) -> str | None:
        """The quote that tells most: the first that its page does not bear out, else the first."""
        return self._telling.quote

    @property
    def verified(self) -> bool | None:
        """False if a mark is not borne out; True if pages were compared and all are."""
        return self._telling.verified

    @property
    def _telling(self) -> Mark:
        telling = sorted(self.marks, key=lambda m: (m.verified is not False, m.quote is None))
        return telling[0] if telling else Mark()


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts as the provider reported them; None means it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    searches: int | None = None
    pages: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(plus(getattr(self, f), getattr(other, f)) for f in USAGE_FIELDS))

    def as_dict(self) -> dict[str, Any]:
        """The usage object of every surface."""
        return {f: getattr(self, f) for f in USAGE_FIELDS}


USAGE_FIELDS: tuple[str, ...] = tuple(Usage.__dataclass_fields__)


def plus(a: Any, b: Any) -> Any:
    """The sum of two counts, either of which may be unknown."""
    return b if a is None else a if b is None else a + b


NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to: `content` for the model, the rest for the program.

    `usage` is what the tool itself did: searches made, pages read.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    usage: Usage = NOTHING


@dataclass(frozen=True, slots=True)
class ProviderData:
    """Raw blocks as a provider sent them, replayed byte-equal to that provider and model only."""

    provider: str
    model: str
    version: str
    blocks: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of the transcript; compared by identity.

    `encoded` is a codec's memo of this message on the wire (key: codec and variant), so that a
    message is serialised once however many steps resend it.
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
    encoded: dict[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "read"


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """What a search is held to. In a request it asks for the provider's own search, so it is there
    only when the switch is on; our own search is held to the same domains and country.
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    context_size: Literal["low", "medium", "high"] | None = None
    country: str | None = None
    external_access: bool = True
    max_searches: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a codec may look at.

    `messages` is append-only from step to step. `answer_now` asks for an answer without further
    calls: the tools stay listed where a provider needs them to read the history. `context_limit`
    is the window in tokens that a session keeps to, where somebody has to say so.
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
    """The provider began a search of its own. The query may not be known yet (empty)."""

    query: str = ""


@dataclass(frozen=True, slots=True)
class SearchFinished:
    """The provider's own search ended; `results` is None where the provider does not say."""

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
    """Something the user should know that is no error: another way was taken, a prompt was cut."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """Last of a stream, exactly once.

    Citations in `message` are numbered 1, 2, ... by first appearance within this message; the
    loop maps them to the session's source table.
    """

    message: Message
    stop_reason: StopReason
    usage: Usage


StreamEvent = (
    TextDelta | ThinkingDelta | SearchStarted | SearchFinished | PageOpened | Notice | Finished
)
