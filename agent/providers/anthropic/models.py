"""A table of what the provider's models can do, by the longest prefix of their names.

A Claude outside the table is assumed to search with the oldest tools, which all models accept: if
it refuses them, the run falls back once, while a wrong guess the other way would hide the feature.
A model of another maker behind a server of the same API gets no tool that only Claude has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from searchloop.agent.providers._common import by_prefix
from searchloop.agent.types import Capabilities


@dataclass(frozen=True, slots=True)
class ClaudeModel:
    """One row: what the model can do, its output tokens, and the versions of the server's tools.

    A model that `cites` gets our own results as blocks that it cites by itself. For one that is
    `formed` the server enforces the schema of an answer.
    """

    capabilities: Capabilities
    max_tokens: int
    search: str | None = None
    fetch: str | None = None
    cites: bool = True
    formed: bool = False


BASIC = ("web_search_20250305", "web_fetch_20250910")  # the only ones on servers of others
_FILTERING = ("web_search_20260209", "web_fetch_20260209")
_NEWEST = ("web_search_20260318", "web_fetch_20260318")

_OLD = Capabilities(vision=True, context=200_000)
_FIRST = replace(_OLD, native_search=True, tools_with_native_search=True)
_THINKS = replace(_FIRST, thinking=True)
_LONG = replace(_THINKS, context=None)

OTHERS = ClaudeModel(Capabilities(), 8_192, cites=False)
BY_PREFIX: dict[str, ClaudeModel] = {
    "claude": ClaudeModel(_LONG, 8_192, *BASIC),
    "claude-3-": ClaudeModel(_OLD, 4_096, cites=False),
    "claude-3-5-": ClaudeModel(_FIRST, 8_192, BASIC[0]),
    "claude-3-7-": ClaudeModel(_THINKS, 16_000, *BASIC),
    "claude-opus-4": ClaudeModel(_THINKS, 16_000, *BASIC),
    "claude-sonnet-4": ClaudeModel(_THINKS, 16_000, *BASIC),
    "claude-haiku-4": ClaudeModel(_THINKS, 16_000, *BASIC, formed=True),
    "claude-opus-4-5": ClaudeModel(_THINKS, 16_000, *BASIC, formed=True),
    "claude-sonnet-4-5": ClaudeModel(_THINKS, 16_000, *BASIC, formed=True),
    "claude-opus-4-6": ClaudeModel(_LONG, 16_000, *_FILTERING, formed=True),
    "claude-opus-4-7": ClaudeModel(_LONG, 16_000, *_FILTERING, formed=True),
    "claude-opus-4-8": ClaudeModel(_LONG, 16_000, *_FILTERING, formed=True),
    "claude-sonnet-4-6": ClaudeModel(_LONG, 16_000, *_FILTERING, formed=True),
    # These think without being asked, and thinking counts.
    "claude-opus-5": ClaudeModel(_LONG, 32_000, *_NEWEST, formed=True),
    "claude-sonnet-5": ClaudeModel(_LONG, 32_000, *_NEWEST, formed=True),
    "claude-haiku-5": ClaudeModel(_LONG, 32_000, *_NEWEST, formed=True),
    "claude-fable-5": ClaudeModel(_LONG, 32_000, *_NEWEST, formed=True),
    "claude-mythos-5": ClaudeModel(_LONG, 32_000, *_NEWEST, formed=True),
}

# Limits of one fetched page in tokens, and of the fetches in one request.
FETCH_TOKENS = {"low": 8_000, "medium": 20_000, "high": 50_000}
FETCHES = 8

# The picker's list while the server gives none; any other name works too.
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


def known(model: str) -> ClaudeModel:
    """Returns the row for `model`."""
    return by_prefix(BY_PREFIX, model, OTHERS)


def capabilities(model: str) -> Capabilities:
    """Returns what `model` can do."""
    return known(model).capabilities
