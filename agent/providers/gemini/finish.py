"""How an answer ended, in our words, and its counts.

A reason that is not listed is not taken for an end: new ones mean that something was withheld more
often than that all is well.

Spec: https://ai.google.dev/api/generate-content#FinishReason
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.errors import IncompleteError, ProviderError
from agent.response_body import incomplete
from agent.types import Usage

# The model stumbled; asking again usually helps.
STUMBLED: Mapping[str, str] = {
    "MALFORMED_FUNCTION_CALL": "wrote a function call that cannot be read",
    "MALFORMED_RESPONSE": "wrote an answer that cannot be read",
    "UNEXPECTED_TOOL_CALL": "called a tool that it does not have",
    "TOO_MANY_TOOL_CALLS": "kept calling its own tools and gave no answer",
    "OTHER": "stopped for a reason that it does not name",
}
# The provider withholds the answer, or did not read the question.
WITHHELD: Mapping[str, str] = {
    "SAFETY": "its safety filter",
    "RECITATION": "its filter for text that repeats a source word by word",
    "LANGUAGE": "a language that it does not support",
    "BLOCKLIST": "a forbidden word",
    "PROHIBITED_CONTENT": "its filter for prohibited content",
    "SPII": "its filter for personal data",
    "ESCALATION": "its rules for escalation",
    "PUP_LIMITED_DISABLED": "a limit of this account",
    "MODEL_ARMOR": "the filter of this project",
    "JAILBREAK": "its filter for attempts to change its rules",
    "IMAGE_SAFETY": "its safety filter for images",
    "IMAGE_PROHIBITED_CONTENT": "its filter for prohibited images",
    "IMAGE_RECITATION": "its filter for images that repeat a source",
    "IMAGE_OTHER": "its filter for images",
    "NO_IMAGE": "an image that could not be made",
}


def refusal(server: str, reason: str, words: Any, *, question: bool) -> str:
    """What the user reads instead of an answer."""
    cause = WITHHELD.get(reason, "one of its filters")
    text = (
        f"{server} did not answer: the question was stopped by {cause} ({reason})."
        if question
        else f"{server} stopped this answer because of {cause} ({reason})."
    )
    return f"{text} It says: {words.strip()}" if isinstance(words, str) and words.strip() else text


def stumbled(server: str, reason: str) -> ProviderError:
    """An end that a second try may avoid."""
    return ProviderError(
        "model_stumbled",
        f"The model of {server} {STUMBLED[reason]} ({reason}).",
        "Try again, or choose another model.",
        retryable=True,
    )


def unsigned(server: str) -> ProviderError:
    """The server misses a signature in the history that it was sent."""
    return ProviderError(
        "bad_request",
        f"{server} misses a signature of an earlier step in this session.",
        "Start a new session, or choose another model.",
    )


def empty(server: str, *, shown: bool) -> ProviderError:
    """An end without an answer; retried while nothing was seen of it."""
    kind = IncompleteError if shown else ProviderError
    return kind(
        "incomplete" if shown else "empty_answer",
        f"{server} ended its answer without saying anything.",
        "Try again.",
        retryable=True,
    )


def unfinished(server: str, reason: str | None = None) -> IncompleteError:
    """A stream that did not say that it was finished, or said something unknown."""
    return incomplete(server, f"It gives the reason {reason}." if reason else "")


def usage(counts: Mapping[str, Any], searches: int, pages: int) -> Usage:
    """Counts as reported: input with what the server's own tools read, output with thoughts."""
    read, written = counts.get("promptTokenCount"), None
    if read is not None:
        # Zeros are left out on the wire once there are counts at all.
        read += counts.get("toolUsePromptTokenCount") or 0
        written = (counts.get("candidatesTokenCount") or 0) + (
            counts.get("thoughtsTokenCount") or 0
        )
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=counts.get("cachedContentTokenCount"),
        reasoning_tokens=counts.get("thoughtsTokenCount"),
        searches=searches,
        pages=pages,
    )
