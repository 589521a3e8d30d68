"""`fetch`: the only way from here to a web page.

Before each request the URL is checked, its host is looked up once, every address must be public,
and aiohttp connects to those very addresses, so an answer that changes between look-ups changes
nothing. A redirect goes through all of it again; https may redirect to http, as requests hold no
secret. So does a refresh that a page asks for soon. Cookies live as long as one fetch, for sites
that redirect until they get theirs back. Proxy settings, `.netrc` and referrers are not used. One
deadline covers it all.

An observer can still measure whether an address is refused by its spelling or by its target, and
how long a public server lets a connection hang.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from yarl import URL

from searchloop.search_backend.fetch.client import AddressResolver, new_session, run, system_trust
from searchloop.search_backend.fetch.host_check import (
    Resolver,
    evenly,
    public_addresses,
    refuse_outside,
)
from searchloop.search_backend.fetch.http import (
    DEFAULT_LIMITS,
    MOST_HEADER,
    REQUEST_HEADERS,
    Fetched,
    FetchLimits,
    read_page,
    redirect_of,
    refresh_of,
)
from searchloop.search_backend.fetch.ip_addresses import Network, parse, parse_ranges
from searchloop.search_backend.fetch.refresh import RefreshIn, refresh_in
from searchloop.search_backend.fetch.url_check import Target, check_redirect, check_url
from searchloop.search_backend.types import (
    FetchFailed,
    NotReachable,
    SettingError,
    bad_response,
    timed_out,
)

# (family, type, protocol) -> a socket that is not yet connected.
Sockets = Callable[[int, int, int], socket.socket]

_ADDRESSES_TRIED = 4


class OutwardSocket(socket.socket):
    """A TCP socket that does not connect to this machine, even by a public address of its own."""

    def connect(self, address: Any, /) -> None:
        """Raises OSError; BlockingIOError while the connection is being made."""
        try:
            super().connect(address)
        finally:
            if parse(str(self.getsockname()[0])) == parse(address[0]):
                raise OSError("an address of this machine")


@dataclass(frozen=True, slots=True)
class _Journey:
    """The values that all requests of one fetch share."""

    limits: FetchLimits
    ends: float
    resolve: Resolver
    sockets: Sockets
    allow: tuple[Network, ...]
    tls: ssl.SSLContext | None
    cookies: aiohttp.CookieJar
    refresh_in: RefreshIn

    def left(self) -> float:
        """Seconds until the deadline. Raises TimeoutError when there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def asks_for(self, target: Target) -> str:
        """Returns what a request for `target` says: an answer to the same one is the same."""
        return f"{target.url} {self.cookies.filter_cookies(URL(target.url, encoded=True))}"


def system_resolver(host: str, port: int) -> Sequence[str]:
    """Returns all addresses of `host`, in the system's order of preference. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def fetch(
    url: str,
    *,
    limits: FetchLimits = DEFAULT_LIMITS,
    resolve: Resolver = system_resolver,
    sockets: Sockets = OutwardSocket,
    host_allowed: Callable[[str], bool] | None = None,
    allow_ranges: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    refresh_in: RefreshIn = refresh_in,
) -> Fetched:
    """Returns the answer to a GET of `url` after redirects, whatever its status.

    `host_allowed` is asked for the canonical host of each hop. `allow_ranges` opens private ranges
    (see `addresses`); `tls` replaces the system's certificates; `refresh_in` parses a page that may
    send its readers on, and may do so in another process. A text that is cut short comes back
    with `truncated`. Raises FetchRefused, FetchFailed, NotReachable, SettingError.
    """
    ends = time.monotonic() + limits.seconds
    allow = parse_ranges(allow_ranges)
    with evenly(limits.failure_step):
        try:
            cookies = run(_no_cookies(), timeout=limits.seconds)
            journey = _Journey(limits, ends, resolve, sockets, allow, tls, cookies, refresh_in)
            return _follow(url, journey, host_allowed)
        except TimeoutError:
            raise timed_out(limits.seconds) from None


def _follow(url: str, journey: _Journey, host_allowed: Callable[[str], bool] | None) -> Fetched:
    target = check_url(url, allow=journey.allow)
    visited: list[str] = []
    asked = set[str]()
    while True:
        refuse_outside(target.host, host_allowed)
        asked.add(journey.asks_for(target))
        found = public_addresses(target, journey.resolve, journey.left(), journey.allow)
        left = journey.left()  # may raise: before there is a coroutine that nobody awaits
        answer = run(_get(target, found[:_ADDRESSES_TRIED], journey), timeout=left + 1)
        page = answer if isinstance(answer, Fetched) else None
        leads_to = refresh_of(page, journey.refresh_in) if page else str(answer)
        if page and not leads_to:
            return replace(page, url=url, redirects=tuple(visited))
        following = check_redirect(target, leads_to or "", allow=journey.allow)
        if len(visited) == journey.limits.redirects or journey.asks_for(following) in asked:
            if page:  # it refreshes itself now and then
                return replace(page, url=url, redirects=tuple(visited))
            what = "The page redirects in a circle or too many times."
            raise FetchFailed("too_many_redirects", what, "Use another source.")
        visited.append(target.url)
        target = following


async def _no_cookies() -> aiohttp.CookieJar:
    return aiohttp.CookieJar(quote_cookie=False)


async def _get(target: Target, addresses: Sequence[str], journey: _Journey) -> Fetched | str:
    """Returns the page at `target`, or the address that it redirects to."""
    ends = asyncio.get_running_loop().time() + journey.left()
    connector = aiohttp.TCPConnector(
        resolver=AddressResolver(lambda host, port: addresses),
        use_dns_cache=False,
        force_close=True,
        socket_factory=lambda info: journey.sockets(*info[:3]),
    )
    options = {
        "cookie_jar": journey.cookies,
        "auto_decompress": False,  # aiohttp does not tell that gzip and brotli end too early
        "max_line_size": MOST_HEADER,
        "max_field_size": MOST_HEADER,
    }
    async with new_session(connector, **options) as session:
        try:
            async with asyncio.timeout_at(ends):
                answer = await session.get(
                    URL(target.url, encoded=True),
                    headers=REQUEST_HEADERS,
                    allow_redirects=False,
                    ssl=target.scheme != "https" or journey.tls or system_trust(),
                    timeout=aiohttp.ClientTimeout(sock_connect=journey.limits.connect_seconds),
                )
        except SettingError as error:
            raise FetchFailed("tls", error.message, error.remedy) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(target.host, error) from error
        async with answer:
            leads_to = redirect_of(answer)
            if leads_to is not None:
                return leads_to
            return await read_page(answer, target.url, journey.limits, ends)


def _failure(host: str, error: Exception) -> Exception:
    """Returns the error for a request that got no answer."""
    if isinstance(error, aiohttp.ClientSSLError):
        cause = error.__cause__
        why = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or "TLS"
        what = f"No trustworthy secure connection to {host} came about ({why})."
        return FetchFailed("tls", what, "Use another source; do not enter secrets there.")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotReachable(f"{host}: {error}")
    return TimeoutError() if isinstance(error, TimeoutError) else bad_response(host)
