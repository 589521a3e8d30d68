"""Errors of the search backend say who must act.

    SearchBackendError(code, message, remedy)
     +-- ConfigError                    the user: a setting
     +-- EngineError(kind)              a search engine: wait, pay, or ask another one
     +-- FetchRefused                   policy: this address is not opened, whatever is behind it
     +-- FetchFailed                    the network or the server: it was asked and did not deliver
          +-- NotReachable              either of the two, and the caller may not learn which
                                        (it is a FetchRefused as well)

A private address, a name that does not exist and a closed port must look alike, or a web page could
map the network behind this machine by having a model open addresses. NotReachable therefore says
the same thing each time; `detail` holds the true cause, for a log on this machine and nobody else.
"""

from __future__ import annotations


class SearchBackendError(Exception):
    """`code` for programs, `message` in one sentence, `remedy` as the next thing to do."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy

    def as_dict(self) -> dict[str, str]:
        """The error object of every surface: {code, message, remedy}."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


class ConfigError(SearchBackendError):
    """A setting that cannot be used."""


class EngineError(SearchBackendError):
    """A search engine gave no answer. `kind` is rate, quota, auth, blocked, network, parse or
    config; it is the code as well. `retry_after`: seconds until the engine wants to be asked."""

    def __init__(
        self, kind: str, message: str, remedy: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(kind, message, remedy)
        self.kind = kind
        self.retry_after = retry_after


class FetchRefused(SearchBackendError):
    """This address is not opened. Codes: refused_url (not a web address that can be judged),
    refused_domain (the caller's domain rules)."""


class FetchFailed(SearchBackendError):
    """The page did not come. Codes: timeout, too_large, too_many_redirects, bad_response, tls."""


class NotReachable(FetchFailed, FetchRefused):
    """No public web server answers there. Code: not_reachable, always with the same words."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            "not_reachable",
            "No public web server could be reached at this address.",
            "Check the address and the network connection, or use another source.",
        )
        self.detail = detail


def timed_out(seconds: float) -> FetchFailed:
    """The page was not there when the deadline came."""
    return FetchFailed(
        "timeout",
        f"The page did not come within {seconds:g} s.",
        "Try again later, or use another source.",
    )


def too_large(most: int) -> FetchFailed:
    """A file over the caps, of a kind of which a part is of no use."""
    return FetchFailed(
        "too_large",
        f"The file is too large: more than {most:,} bytes are not loaded.",
        "Use another source.",
    )


def bad_response(host: str) -> FetchFailed:
    """The server answered, but not in HTTP or not to the end."""
    return FetchFailed(
        "bad_response",
        f"The server of {host} broke off or gave an answer that is not valid HTTP.",
        "Try again later, or use another source.",
    )
