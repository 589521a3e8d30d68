"""`fetch`: the only way from here to a web page, and the only module that opens connections.

For each hop: the URL is checked, its host is looked up once, every address found must be public,
and the connection is made to one of the addresses that were checked. The name travels on in the
Host header and in TLS only, so an answer that changes between look-ups changes nothing. A redirect
is a new URL and goes through all of it again. https may redirect to http: requests hold no secret
that could leak by it, and a page may be asked for by http in the first place.

Nothing of the user's goes along: no proxy, .netrc, cookie or referrer. One deadline holds for all
hops and is armed anew before each read, so a server cannot win time by dripping. `head` and `body`
take the answer apart, over a reader that ends after a set number of bytes: lines, headers, interim
answers and chunk sizes are bounded together.

What is not hidden from who measures: whether an address is refused by its spelling or by where it
leads, and how long a public server lets a connection hang.

Spec: RFC 9110, RFC 9112
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from search_backend.addresses import Block, parse, parse_ranges
from search_backend.body import read_body
from search_backend.decode import Decoder, collect
from search_backend.domains import refuse_outside
from search_backend.errors import (
    ConfigError,
    FetchFailed,
    NotReachable,
    bad_response,
    timed_out,
)
from search_backend.fetched import (
    DEFAULT_LIMITS,
    Fetched,
    FetchLimits,
    Known,
    content_type,
    is_part,
    is_text,
    kept,
    location,
    useless,
)
from search_backend.head import BadHead, Head, read_head
from search_backend.lookup import Resolver
from search_backend.request import agent_name, request_head
from search_backend.trust import system_trust
from search_backend.urls import Target, check_redirect, check_url
from search_backend.verdict import evenly, public_addresses
from search_backend.wire import TooMuch, Wire

__all__ = ["DEFAULT_LIMITS", "FetchLimits", "Fetched", "fetch", "open_socket", "system_resolver"]

# (address, port, seconds) -> a connected socket. Raises OSError.
Connect = Callable[[str, int, float], socket.socket]

_ADDRESSES_TRIED = 4
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Journey:
    """What stays the same on all hops of one fetch."""

    limits: FetchLimits
    ends: float
    resolve: Resolver
    connect: Connect
    allow: tuple[Block, ...]
    tls: ssl.SSLContext | None
    user_agent: str
    known: Known | None

    def conditions(self, target: Target) -> Mapping[str, str]:
        """Only the server that gave a page is told which version of it is known."""
        return self.known.conditions if self.known and self.known.url == target.url else {}

    def left(self) -> float:
        """Seconds until the deadline. Raises TimeoutError when there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def fetch(
    url: str,
    *,
    limits: FetchLimits = DEFAULT_LIMITS,
    resolve: Resolver | None = None,
    connect: Connect | None = None,
    host_allowed: Callable[[str], bool] | None = None,
    allow_ranges: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    user_agent: str = "",
    known: Known | None = None,
) -> Fetched:
    """The answer to a GET of `url`, redirects followed. Any status is an answer.

    With `known`, a page that is still the same comes back as status 304 without a body.

    `host_allowed` is asked for the canonical host of each hop. `allow_ranges` opens private ranges
    (see `addresses`); `tls` replaces the system's trust. A text body that is cut short comes back
    with `truncated`. Raises FetchRefused, FetchFailed, NotReachable (see `errors`), ConfigError.
    """
    journey = _Journey(
        limits,
        time.monotonic() + limits.seconds,
        resolve or system_resolver,
        connect or open_socket,
        parse_ranges(allow_ranges),
        tls,
        agent_name(user_agent),
        known,
    )
    with evenly(limits.failure_step):
        try:
            return _follow(url, journey, host_allowed)
        except TimeoutError:
            raise timed_out(limits.seconds) from None


def system_resolver(host: str, port: int) -> Sequence[str]:
    """All addresses of `host`, in the order of the system's preference. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def open_socket(address: str, port: int, seconds: float) -> socket.socket:
    """A connection to a numeric address. Raises OSError, also when it leads to this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((address, port))
        # A machine may have a public address of its own; what listens there is still local.
        if parse(str(connection.getsockname()[0])) == parse(address):
            raise OSError("an address of this machine")
    except BaseException:
        connection.close()
        raise
    return connection


def _follow(url: str, journey: _Journey, host_allowed: Callable[[str], bool] | None) -> Fetched:
    target = check_url(url, allow=journey.allow)
    visited: list[str] = []
    while True:
        refuse_outside(target.host, host_allowed)
        with _answer(target, journey) as (head, file):
            leads_to = location(head)
            if leads_to is None:
                return _read(head, file, url, target, visited, journey)
        visited.append(target.url)
        target = check_redirect(target, leads_to, allow=journey.allow)
        if len(visited) > journey.limits.redirects or target.url in visited:
            raise FetchFailed(
                "too_many_redirects",
                "The page redirects in a circle or too many times.",
                "Use another source.",
            )


@contextlib.contextmanager
def _answer(target: Target, journey: _Journey) -> Iterator[tuple[Head, io.BufferedReader]]:
    """The head of the answer of `target`'s server, and where its body comes from; closed at the end
    whatever happens."""
    with contextlib.ExitStack() as stack:
        context = (journey.tls or _trust()) if target.scheme == "https" else None
        connection = stack.enter_context(_reach(target, journey))
        try:
            if context is not None:
                connection.settimeout(journey.left())
                secured = context.wrap_socket(connection, server_hostname=target.host)
                connection = stack.enter_context(secured)
            connection.settimeout(journey.left())
            connection.sendall(request_head(target, journey.user_agent, journey.conditions(target)))
            wire = Wire(connection, journey.left, journey.limits.max_header_bytes)
            file: io.BufferedReader = io.BufferedReader(wire, _PIECE)
            head = read_head(file)
        except ssl.SSLError as error:
            raise FetchFailed(
                "tls",
                f"No trustworthy secure connection to {target.host} came about"
                f" ({getattr(error, 'verify_message', '') or error.reason or 'TLS'}).",
                "Use another source; do not enter secrets there.",
            ) from error
        except TimeoutError:
            raise
        except (OSError, ValueError, BadHead, TooMuch) as error:
            raise bad_response(target.host) from error
        wire.allowance = 2 * journey.limits.max_bytes + _PIECE
        yield head, file


def _reach(target: Target, journey: _Journey) -> socket.socket:
    """A connection to one of the addresses that were checked for `target`."""
    problem: OSError | None = None
    found = public_addresses(target, journey.resolve, journey.left(), journey.allow)
    for address in found[:_ADDRESSES_TRIED]:
        try:
            seconds = min(journey.left(), journey.limits.connect_seconds)
            return journey.connect(address, target.port, seconds)
        except OSError as error:
            problem = error
    journey.left()  # it may be the time that ended, not the ways
    raise NotReachable(f"{target.host}: {problem}") from problem


def _read(
    head: Head,
    file: io.BufferedReader,
    url: str,
    target: Target,
    visited: Sequence[str],
    journey: _Journey,
) -> Fetched:
    headers = kept(head)
    kind, charset = content_type(headers.get("content-type", ""))
    decoder = Decoder(headers.get("content-encoding", ""))
    body, cut = collect(read_body(file, head, journey.limits.max_bytes), decoder, journey.limits)
    cut = cut or ("partial" if is_part(head) else "")
    if cut and not (body and is_text(kind)):
        raise useless(cut, target.host, journey.limits)
    return Fetched(
        url=url,
        final_url=target.url,
        status=head.status,
        content_type=kind,
        charset=charset,
        body=body,
        truncated=bool(cut),
        redirects=tuple(visited),
        headers=headers,
        cut=cut,
    )


def _trust() -> ssl.SSLContext:
    try:
        return system_trust()
    except ConfigError as error:
        raise FetchFailed("tls", error.message, error.remedy) from error
