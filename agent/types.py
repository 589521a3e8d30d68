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
    """A URL met in a session. `n` is given once the model may cite it; `found` is not `opened`."""

    url: str
    title: str = ""
    state: SourceState = "found"
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Source `n` supports the answer at `spans`: half-open ranges in code points of the text.

    `verified` is True or False when a quote was compared with a page that was read, else None.
    """

    n: int
    url: str
    title: str = ""
    quote: str | None = None
    verified: bool | None = None
    spans: tuple[tuple[int, int], ...] = ()


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


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do, as data. `tools_with_native_search`: both in one request."""

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

    `calls` is how the calls of a model that runs here arrive: native, text, envelope, or
    search-first (the program searches for it). `disk` is bytes; `loaded` is None while it is not.
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
