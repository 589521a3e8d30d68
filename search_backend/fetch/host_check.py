"""Decides whether an address may be opened, here or by a service elsewhere.

A service gets an address only after the same checks as our own fetch, so names of a private network
never leave it. Each name is looked up once, in a thread that is abandoned when its time is over.

Domain rules are host names that cover themselves and the names below them. The same code applies
them to search results, pages and redirects, in canonical ASCII form. A block wins over an allow.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from searchloop.search_backend.fetch.client import in_thread
from searchloop.search_backend.fetch.http import DEFAULT_LIMITS, FetchLimits
from searchloop.search_backend.fetch.ip_addresses import (
    Network,
    canonical,
    is_public,
    parse,
    parse_ranges,
    unmapped,
    why_refused,
)
from searchloop.search_backend.fetch.url_check import (
    LOCAL_NAMES,
    Target,
    check_url,
    host_of,
    to_ascii,
    with_host,
)
from searchloop.search_backend.text.clean import cleaned
from searchloop.search_backend.types import FetchRefused, NotReachable, SearchBackendError

MOST_RULES = 100
_WEB = re.compile(r"https?:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """Domain rules: the canonical host names that are allowed (all if empty) and blocked."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def passes(self, host: str) -> bool:
        """True if these rules let the canonical `host` through; a block wins over an allow."""
        host = unmapped(host)
        if any(covers(rule, host) for rule in self.blocked):
            return False
        return not self.allowed or any(covers(rule, host) for rule in self.allowed)

    def passes_url(self, url: str) -> bool:
        """True if a page at `url` may be shown; one without a web host passes no allow list."""
        host = host_of(url)
        if host is None:
            return not self.allowed and not _WEB.match(url)
        return self.passes(host)

    def within(self, outer: Rules) -> Rules:
        """Returns the rules that both imply. Raises SearchBackendError if they allow nothing."""
        allowed = self.allowed or outer.allowed
        if self.allowed and outer.allowed:
            pairs = [(mine, theirs) for mine in self.allowed for theirs in outer.allowed]
            narrow = [mine for mine, theirs in pairs if covers(theirs, mine)]
            narrow += [theirs for mine, theirs in pairs if covers(mine, theirs)]
            allowed = tuple(dict.fromkeys(narrow))
            if not allowed:
                what = "None of the domains asked for is inside SEARCH_ALLOWED_DOMAINS."
                remedy = "Ask for one of: " + ", ".join(outer.allowed[:10]) + "."
                raise SearchBackendError("bad_domain", what, remedy)
        return Rules(allowed, tuple(dict.fromkeys(outer.blocked + self.blocked)))


ANYWHERE = Rules()


def parse_rules(raw: Sequence[str], name: str) -> tuple[str, ...]:
    """Returns canonical host names. Raises SearchBackendError(code "bad_domain")."""
    if len(raw) > MOST_RULES:
        what = f"{name} has more than {MOST_RULES} entries."
        raise SearchBackendError("bad_domain", what, "Shorten the list.")
    return tuple(_rule(text, f"{name}[{at}]") for at, text in enumerate(raw))


def _rule(text: str, place: str) -> str:
    host = to_ascii(text.strip())
    # A number at the end makes it an address in dotted form, or nothing that any host is called.
    address = canonical(host or "")
    if host and (address or host_of(f"http://{host}/") == host):
        if is_public(host) if address else host.rpartition(".")[2] not in LOCAL_NAMES:
            return host
        what = "an address" if address else "a name"
        raise SearchBackendError(
            "bad_domain",
            f"{place} is {what} that is not of the public web, where no page is opened: {host!r}.",
            "Take it out; it would change nothing.",
        )
    raise SearchBackendError(
        "bad_domain",
        f"{place} is not a domain: {text[:100]!r}.",
        "Write a host name such as example.org, without scheme, port, path, stars and the dot in "
        "front, each in an entry of its own; other letters than a to z also as A-labels (xn--...).",
    )


def covers(rule: str, host: str) -> bool:
    """True if the canonical `host` is the rule or a name below it."""
    return host == rule or host.endswith("." + rule)


def plain_url(url: str, allow: Sequence[Network] = ()) -> str | None:
    """Returns `url` with its host in ASCII (A-labels), so that a look-alike name looks like itself.

    None for a URL that can be read in two ways, holds invisible characters, or names this machine
    or an address that is neither public nor in `allow`.
    """
    host = host_of(url)
    if host is None:
        return None if _WEB.match(url) else url
    if host.rpartition(".")[2] == "localhost" or (parse(host) and why_refused(host, allow=allow)):
        return None
    shown = url if url.isascii() else with_host(url, host)
    return None if cleaned(shown)[1] else shown


def refuse_outside(host: str, rules: Callable[[str], bool] | None) -> None:
    """Raises FetchRefused(refused_domain) when the rules do not let `host` through."""
    if rules and not rules(host):
        what = f"The domain rules do not allow {host}."
        remedy = "Use a page of an allowed domain, or change the rules."
        raise FetchRefused("refused_domain", what, remedy)


# (host, port) -> addresses as text. Raises OSError.
Resolver = Callable[[str, int], Sequence[str]]

# Look-ups that hang must not pile up threads without end.
_running = threading.BoundedSemaphore(64)


def look_up(resolve: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """Calls `resolve` once, in a thread. Raises NotReachable, also after `seconds`."""
    if not _running.acquire(timeout=seconds):
        raise NotReachable("too many look-ups hang")

    def work() -> Sequence[str]:
        try:
            return tuple(resolve(host, port))
        finally:
            _running.release()

    try:
        return in_thread(work).result(seconds)
    except (OSError, ValueError) as error:  # TimeoutError is one
        raise NotReachable(f"{host}: {str(error) or 'looking it up took too long'}") from error


def vet(
    url: str,
    resolve: Resolver,
    *,
    host_allowed: Callable[[str], bool] | None = None,
    allow_ranges: Sequence[str] = (),
    limits: FetchLimits = DEFAULT_LIMITS,
) -> str:
    """Returns the canonical form of `url` if a page there may be opened.

    `allow_ranges` applies to the addresses of names (stand-ins), not to a written address, which
    would mean nothing to a service elsewhere. Raises FetchRefused, NotReachable, SettingError.
    """
    with evenly(limits.failure_step):
        target = check_url(url)
        refuse_outside(target.host, host_allowed)
        public_addresses(target, resolve, limits.connect_seconds, parse_ranges(allow_ranges))
    return target.url


def public_addresses(
    target: Target, resolve: Resolver, seconds: float, allow: Sequence[Network]
) -> list[str]:
    """Looks `target` up once. Raises NotReachable unless all its addresses are public."""
    if target.is_address:
        return [target.host]
    addresses = []
    for found in look_up(resolve, target.host, target.port, seconds):
        if reason := why_refused(found, resolved=True, allow=allow):
            raise NotReachable(f"{target.host} is {found}: {reason}")
        addresses.append(canonical(found) or found)
    if not addresses:
        raise NotReachable(f"{target.host} has no address")
    return list(dict.fromkeys(addresses))


@contextlib.contextmanager
def evenly(step: float) -> Iterator[None]:
    """Delays NotReachable to a multiple of `step` seconds, so its duration hides the cause."""
    started = time.monotonic()
    try:
        yield
    except NotReachable:
        threading.Event().wait(-(time.monotonic() - started) % step if step > 0 else 0)
        raise
