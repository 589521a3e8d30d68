"""Errors, sorted by who must act.

    AgentError(code, message, remedy)      what happened, and what to do about it
     +-- ConfigError                       the user: a setting, a key, an argument
     +-- ProviderError                     the model's side; says whether waiting helps
     |    +-- IncompleteError              a stream ended before it said that it was finished
     |    +-- NativeSearchRejected         this model refuses its native search tool
     +-- ToolError                         becomes a result that the model reads
     +-- StoreError                        the event log could not be read or written
     |    +-- UnsureError                  it broke off: what was written may be there or not
     +-- Conflict                          the session is busy or gone

Cancellation is asyncio's own CancelledError. Only the runner and the surfaces report errors.
"""

from __future__ import annotations

from searchloop.analysis.told import Told


class AgentError(Told):
    """`code` for programs, `message` in one sentence, `remedy` as the next thing to do.

    >>> print(error.code, error.message, error.remedy)
    """


class ConfigError(AgentError):
    """A mistake on the user's side: bad input, an unknown model, a missing key."""


class ProviderError(AgentError):
    """A failure of the provider. `retry_after` is in seconds, None if the provider names none."""

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str = "",
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, message, remedy)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class IncompleteError(ProviderError):
    """The stream ended without its terminal event: the answer is incomplete."""


class NativeSearchRejected(ProviderError):
    """The provider refused the native search tool for this model; nothing was shown yet."""


class ToolError(AgentError):
    """Raised inside a tool; the loop turns it into an error result."""


class StoreError(AgentError):
    """The event log failed: disk full, read-only, locked or damaged.

    >>> raise StoreError("store_full", "The disk is full.", "Make room.")
    """


class UnsureError(StoreError):
    """The store failed during a write: only a later read tells whether it succeeded."""


class Conflict(AgentError):
    """The session is answering already, or does not exist.

    >>> agent.ask("hi", session="nowhere")  # raises Conflict
    """


def busy() -> Conflict:
    """Returns the error for a request that has to wait for the end of an answer."""
    what = "This session is still answering."
    return Conflict("busy", what, "Wait for the answer, or stop it first.")


def lacking(why: str, text: str) -> IncompleteError | None:
    """Returns what an answer lacks that ended for this stop reason; None if it is whole."""
    if why == "length":
        what = "The model reached the most that it may write; the answer is cut off."
        return IncompleteError("answer_cut", what, "Ask it to go on, or start a new session.")
    if why == "refusal":
        what = "The answer, or the rest of it, was withheld."
        return IncompleteError("withheld", what, "Ask in other words, or choose another model.")
    if why == "pause":
        what = "The provider paused the answer again and again."
        return IncompleteError("endless_pause", what, "Ask it to go on, or choose another model.")
    if why == "nothing":
        what = "No source that could be read answers the question; the text says why."
        return IncompleteError("nothing_found", what, "Ask in other words, or search elsewhere.")
    if not text.strip():
        what = "The model answered with nothing."
        return IncompleteError("empty_answer", what, "Ask again, or choose another model.")
    return None
