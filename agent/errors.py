"""Errors say who must act.

    AgentError(code, message, remedy)      what happened, and what to do about it
     +-- ConfigError                       the user: a setting, a key, an argument
     +-- ProviderError                     the model's side; says whether waiting helps
     |    +-- IncompleteError              a stream ended before it said that it was finished
     |    +-- NativeSearchRejected         this model refuses its native search tool
     +-- ToolError                         becomes a result that the model can read
     +-- StoreError                        the event log could not be read or written
     |    +-- UnsureError                  it broke off: what was written may be there or not
     +-- Conflict                          the session is busy or gone

Cancellation is asyncio's own CancelledError. Errors carry; only the runner and the surfaces report.
"""

from __future__ import annotations


class AgentError(Exception):
    """`code` for programs, `message` in one sentence, `remedy` as the next thing to do."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy

    def as_dict(self) -> dict[str, str]:
        """The error object of every surface: {code, message, remedy}."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


class ConfigError(AgentError):
    """The user's side: bad input, an unknown model, a missing key."""


class ProviderError(AgentError):
    """The model's side. `retry_after` is in seconds when the provider named a time."""

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
    """The stream ended without its terminal event: whatever came is not a whole answer."""


class NativeSearchRejected(ProviderError):
    """The provider refused the native search tool for this model; nothing was shown yet."""


class ToolError(AgentError):
    """Raised inside a tool; the loop turns it into an error result."""


class StoreError(AgentError):
    """The event log failed: disk full, read-only, locked or damaged."""


class UnsureError(StoreError):
    """The store broke off in the middle: only reading it later tells whether it was written."""


class Conflict(AgentError):
    """The session is answering already, or does not exist."""


def busy() -> Conflict:
    """What has to wait for the end of an answer."""
    what = "This session is still answering."
    return Conflict("busy", what, "Wait for the answer, or stop it first.")
