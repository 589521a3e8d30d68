"""What a server says is wrong, in our words, with what to do about it.

Codecs read their own vendor's codes; what they come to is worded here, once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.errors import NativeSearchRejected, ProviderError
from agent.retry import parse_retry_after

_KEY_LIKE = re.compile(
    r"\b(?:sk|rk|pk|sess|key|gsk|xai)-[\w*.\-]{6,}|\bAIza[\w\-]{6,}|\bAQ\.[\w\-]{6,}"
    r"|\bBearer\s+\S+|\bkey=[^\s&]+",
    re.IGNORECASE,
)
_QUOTE = 240
_SHORTEST_KEY = 8  # what is shorter may be an ordinary word


@dataclass(frozen=True, slots=True)
class Refusal:
    """One answer that is an error: who sent it, with which status, and what it says.

    `said` is a sentence to end ours with, see `quoted`; `status` is None inside a stream.
    """

    server: str
    said: str = ""
    status: int | None = None

    def error(
        self,
        code: str,
        what: str,
        remedy: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> ProviderError:
        """An error of its own kind, with the server's words behind ours."""
        return ProviderError(
            code,
            f"{what}{self.said}",
            remedy,
            status=self.status,
            retryable=retryable,
            retry_after=retry_after,
        )

    def unauthorized(self, setting: str, what: str = "the key") -> ProviderError:
        """`setting` holds the key. The server's words are left out: they may quote it."""
        return ProviderError(
            "unauthorized",
            f"{self.server} does not accept {what}.",
            f"Check {setting}: it must be complete and belong to this server.",
            status=self.status,
        )

    def forbidden(self, remedy: str) -> ProviderError:
        """The key is good, but not for this."""
        what = f"{self.server} does not allow this with this key."
        return self.error("forbidden", what, remedy)

    def no_credit(self, what: str = "has no credit left") -> ProviderError:
        """Only money helps."""
        return self.error(
            "quota",
            f"{self.server} says that the account {what}.",
            "Add credit or raise the spending limit in the provider's billing settings.",
        )

    def too_many(self, retry_after: float | None = None) -> ProviderError:
        """Too many requests, or tokens, for now."""
        return self.error(
            "rate_limited",
            f"{self.server} asks for fewer requests.",
            "Wait a little and try again.",
            retryable=True,
            retry_after=retry_after,
        )

    def failed(self, retry_after: float | None = None) -> ProviderError:
        """The server's own fault, which may be over soon."""
        return self.error(
            "server_error",
            f"{self.server} could not answer right now.",
            "Try again.",
            retryable=True,
            retry_after=retry_after,
        )

    def too_long(self) -> ProviderError:
        """More than the model's window holds."""
        return self.error(
            "context_length",
            "The conversation is too long for the model.",
            "Start a new session, or choose a model with a larger context.",
        )

    def no_model(self, where: str = " for this key") -> ProviderError:
        """A name that the server does not know."""
        return self.error(
            "model_not_found",
            f"{self.server} has no such model{where}.",
            "Run `searchloop models` to see which there are.",
        )

    def no_search(self, where: str = "") -> ProviderError:
        """The model refuses its native search tool."""
        return NativeSearchRejected(
            "native_search_rejected",
            f"The model does not search by itself{where}.{self.said}",
            "Choose local search, or another model.",
            status=self.status,
        )

    def wrong_address(self, api: str, remedy: str) -> ProviderError:
        """A server, but not one of this API."""
        what = f"{self.server} does not offer {api} at this address."
        return self.error("bad_url", what, remedy)

    def bad_request(self) -> ProviderError:
        """What is left."""
        return self.error(
            "bad_request",
            f"{self.server} refused the request.",
            "Change the model or the options of the request.",
        )


def quoted(message: object, key: str = "") -> str:
    """The server's own words, short and without anything that looks like a key; "" for none."""
    if not isinstance(message, str):
        return ""
    text = message.replace(key, "[key]") if len(key) >= _SHORTEST_KEY else message
    text = " ".join(_KEY_LIKE.sub("[key]", text).split())
    if not text:
        return ""
    return f" It says: {text[: _QUOTE - 1]}…" if len(text) > _QUOTE else f" It says: {text}"


def with_wishes(error: ProviderError, headers: Mapping[str, str]) -> ProviderError:
    """The error, with what the headers say of trying again; `x-should-retry` is in common use."""
    if error.retry_after is None:
        error.retry_after = parse_retry_after(headers)
    wish = headers.get("x-should-retry")
    if wish in ("true", "false") and error.code != "quota":
        error.retryable = wish == "true"
    return error
