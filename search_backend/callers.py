"""Who may ask this backend, and how often: a token, and so many requests a minute for each client.

Both are for a backend that other machines can reach; inside a program neither is used. A wrong
token costs as much as a right one, so nobody can try many.

Spec: RFC 6750 2.1 and, for clients that can only put a secret into an address, RFC 7617
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import threading
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable

MOST_CLIENTS = 10_000
_ROUNDING = 1e-6


class Quota:
    """So many requests a minute for each client, at once or spread. Safe for several threads."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives monotonic seconds; with 0 a minute nobody is limited."""
        self._most = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> int | None:
        """None: the request counts and may go on. Otherwise the seconds until one may."""
        if self._most <= 0:
            return None
        client, now = _client(address), self._clock()
        with self._lock:
            left, since = self._clients.pop(client, (self._most, now))
            left = min(left + (now - since) * self._most / 60, self._most)
            granted = left >= 1 - _ROUNDING
            self._clients[client] = (left - granted, now)
            # Whoever was not seen for longest has the most left, so forgetting costs the least.
            if len(self._clients) > MOST_CLIENTS:
                self._clients.popitem(last=False)
        return None if granted else max(math.ceil((1 - left) * 60 / self._most - _ROUNDING), 1)


def has_token(authorization: str, key: str, token: str) -> bool:
    """Whether Authorization is `Bearer TOKEN`, or `Basic` with the token as the password, or else
    the token is the value of X-API-Key, where some clients put what they take for a key."""
    scheme, _, given = authorization.strip().partition(" ")
    if not scheme:
        scheme, given = "bearer", key
    secret = given.strip().encode("utf-8", "replace")
    if scheme.lower() == "basic":
        try:
            secret = b64decode(secret, validate=True).partition(b":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(secret, token.encode())


def _client(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network that an IPv6 host owns."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
