"""The guard's verdict on an address, whoever then goes there: `fetch`, or a reader elsewhere.

A reader that is somebody else's service is told an address only after the same verdict as if we
opened it ourselves; names of a private network never leave it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from search_backend.addresses import Block, canonical, parse_ranges, why_refused
from search_backend.domains import refuse_outside
from search_backend.errors import NotReachable
from search_backend.fetched import DEFAULT_LIMITS, FetchLimits
from search_backend.lookup import Resolver, look_up
from search_backend.urls import Target, check_url


def vet(
    url: str,
    resolve: Resolver,
    *,
    host_allowed: Callable[[str], bool] | None = None,
    allow_ranges: Sequence[str] = (),
    limits: FetchLimits = DEFAULT_LIMITS,
) -> str:
    """The canonical form of `url`, when a page there may be opened.

    `allow_ranges` holds for what names resolve to (stand-in addresses), never for an address that
    is written out: it means nothing elsewhere. Raises FetchRefused, NotReachable, ConfigError.
    """
    with evenly(limits.failure_step):
        target = check_url(url)
        refuse_outside(target.host, host_allowed)
        public_addresses(target, resolve, limits.connect_seconds, parse_ranges(allow_ranges))
    return target.url


def public_addresses(
    target: Target, resolve: Resolver, seconds: float, allow: Sequence[Block]
) -> list[str]:
    """The public addresses of `target`, from one look-up; one that is not public spoils all."""
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
    """What ends in NotReachable takes a multiple of `step` seconds, so that its duration does not
    tell why."""
    started = time.monotonic()
    try:
        yield
    except NotReachable:
        threading.Event().wait(-(time.monotonic() - started) % step if step > 0 else 0)
        raise
