"""What the models of this provider can do, as data: tools by version, lengths, what is safe.

A model is looked up by the longest beginning of its name. A Claude that nobody has heard of is
assumed to search with the oldest tools, which all models take: a refused search tool falls back
once, a wrong guess the other way would hide the feature. A model of another maker behind a server
of the same API gets no tool that only Claude is known to have.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.models import Capabilities


@dataclass(frozen=True, slots=True)
class Model:
    """One line of the table.

    `max_tokens` is asked for when nobody says otherwise: the API wants a number. `search` and
    `fetch` are the versions of the server's tools, None where there is none. `cites` says whether
    our own results may be sent as blocks that the model cites by itself.
    """

    capabilities: Capabilities
    max_tokens: int
    search: str | None = None
    fetch: str | None = None
    cites: bool = True


BASIC = ("web_search_20250305", "web_fetch_20250910")  # the only ones on servers of others
_FILTERING = ("web_search_20260209", "web_fetch_20260209")
_NEWEST = ("web_search_20260318", "web_fetch_20260318")

_OLD = Capabilities(vision=True, context=200_000)
_FIRST = Capabilities(
    native_search=True, tools_with_native_search=True, vision=True, context=200_000
)
_THINKS = Capabilities(
    native_search=True, tools_with_native_search=True, thinking=True, vision=True, context=200_000
)
_LONG = Capabilities(native_search=True, tools_with_native_search=True, thinking=True, vision=True)

OTHERS = Model(Capabilities(), 8_192, cites=False)
BY_PREFIX: dict[str, Model] = {
    "claude": Model(_LONG, 8_192, *BASIC),
    "claude-3-": Model(_OLD, 4_096, cites=False),
    "claude-3-5-": Model(_FIRST, 8_192, BASIC[0]),
    "claude-3-7-": Model(_THINKS, 16_000, *BASIC),
    "claude-opus-4": Model(_THINKS, 16_000, *BASIC),
    "claude-sonnet-4": Model(_THINKS, 16_000, *BASIC),
    "claude-haiku-4": Model(_THINKS, 16_000, *BASIC),
    "claude-opus-4-6": Model(_LONG, 16_000, *_FILTERING),
    "claude-opus-4-7": Model(_LONG, 16_000, *_FILTERING),
    "claude-opus-4-8": Model(_LONG, 16_000, *_FILTERING),
    "claude-sonnet-4-6": Model(_LONG, 16_000, *_FILTERING),
    # These think without being asked, and thinking counts.
    "claude-opus-5": Model(_LONG, 32_000, *_NEWEST),
    "claude-sonnet-5": Model(_LONG, 32_000, *_NEWEST),
    "claude-haiku-5": Model(_LONG, 32_000, *_NEWEST),
    "claude-fable-5": Model(_LONG, 32_000, *_NEWEST),
    "claude-mythos-5": Model(_LONG, 32_000, *_NEWEST),
}
_LONGEST_FIRST = sorted(BY_PREFIX, key=len, reverse=True)

# Words of a page that one fetch may bring, and how many fetches one request may make.
FETCH_TOKENS = {"low": 8_000, "medium": 20_000, "high": 50_000}
FETCHES = 8

# Offered without asking the server; any other name works too.
OFFERED = {
    "claude-opus-5-5": "Claude Opus 5.5",
    "claude-sonnet-5-5": "Claude Sonnet 5.5",
    "claude-haiku-5-5": "Claude Haiku 5.5",
    "claude-fable-5-2": "Claude Fable 5.2",
    "claude-opus-5": "Claude Opus 5",
    "claude-sonnet-5": "Claude Sonnet 5",
    "claude-opus-4-8": "Claude Opus 4.8",
    "claude-sonnet-4-6": "Claude Sonnet 4.6",
    "claude-haiku-4-5": "Claude Haiku 4.5",
}


def known(model: str) -> Model:
    """The line for `model`."""
    prefix = next((p for p in _LONGEST_FIRST if model.startswith(p)), None)
    return BY_PREFIX[prefix] if prefix else OTHERS


def capabilities(model: str) -> Capabilities:
    """What `model` can do."""
    return known(model).capabilities
