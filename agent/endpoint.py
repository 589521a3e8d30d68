"""One server of a provider: its base URL, the key that may go there, and how we call it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.errors import ProviderError

Origin = tuple[str, str, int | None]  # scheme, host, port


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks a provider's API: the vendor's own, or one of the user's choice.

    `home` is the vendor's own base URL, `setting` the one in which a user names another.
    """

    base: str
    key: str = field(default="", repr=False)
    vendor: str = field(default="", kw_only=True)
    home: str = field(default="", kw_only=True)
    setting: str = field(default="", kw_only=True)

    def address(self, path: str) -> str:
        """What lies under the base URL."""
        return f"{self.base.rstrip('/')}/{path}"

    @property
    def host(self) -> str:
        """Its host name, empty when the URL has none."""
        origin = origin_of(self.base)
        return origin[1] if origin else ""

    @property
    def official(self) -> bool:
        """Whether it is the vendor's own."""
        origin = origin_of(self.base)
        return origin is not None and origin == origin_of(self.home)

    @property
    def needs_key(self) -> bool:
        """A server of one's own may want no key; the official one always does."""
        return self.official and not self.key

    @property
    def name(self) -> str:
        """How we call it."""
        return (
            self.vendor if self.official else f"The server at {self.host or 'an unknown address'}"
        )

    def explain(self, error: ProviderError) -> ProviderError:
        """See `agent.providers.Codec.explain`: the base URL is the first thing to look at."""
        if error.code not in ("unreachable", "tls", "bad_response") or self.official:
            return error
        return type(error)(
            error.code,
            error.message,
            f"Check {self.setting}, and that the server there is running.",
            status=error.status,
            retryable=error.retryable,
            retry_after=error.retry_after,
        )


def origin_of(url: str) -> Origin | None:
    """None for what is no URL: the transport says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        return (parts.scheme, parts.hostname, port) if parts.hostname else None
    except ValueError:
        return None
