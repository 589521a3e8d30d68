"""Decides which IP addresses are public, by networks.toml, which is the same on every Python.

The standard library's `is_global` changes between patch releases and calls some addresses public
that lead inside. The first row that holds an address decides. IPv4 is public unless a row says
otherwise; IPv6 is public only inside 2000::/3 and outside the rows in it.

An IPv6 address that carries an IPv4 address is refused, as some gateway may unpack it. Two forms
are judged by the address inside: NAT64's 64:ff9b::/96 if the resolver returned it (IPv6-only
networks reach IPv4 that way), and ISATAP interface ids. `allow_ranges` opens rows marked `may_open`
for networks whose resolver returns stand-in addresses (TUN proxies), and nothing else.

Spec: https://www.iana.org/assignments/iana-ipv4-special-registry and
https://www.iana.org/assignments/iana-ipv6-special-registry
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

from searchloop.search_backend.types import SettingError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class _Row(NamedTuple):
    """A network that is refused for `reason`, unless `allow_ranges` may open it and does."""

    network: Network
    reason: str
    may_open: bool


_ROWS = tomllib.loads(Path(__file__).with_name("networks.toml").read_text("utf-8"))
_TABLE = tuple(
    _Row(ip_network(text), reason, kind == "may_open")
    for kind, rows in _ROWS.items()
    for text, reason in rows.items()
)
_GLOBAL_UNICAST, _NAT64 = IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96")
# Wider than any stand-in pool in use; whoever means more has made a mistake in the prefix.
_WIDEST = {4: 8, 6: 16}
_RANGE = re.compile(r"[0-9A-Fa-f:.]+/(?:0|[1-9][0-9]*)")


def parse(address: str | bytes) -> Address | None:
    """Parses an address in text (a canonical dotted quad, or IPv6 without a zone) or packed in 4 or
    16 bytes; None for anything else."""
    if isinstance(address, str) and "%" in address:
        return None
    try:
        return ip_address(address)
    except ValueError:
        return None


def canonical(address: str) -> str | None:
    """Returns the shortest usual spelling of an address; None for anything else."""
    parsed = parse(address)
    return None if parsed is None else str(parsed)


def unmapped(address: str) -> str:
    """Returns the dotted quad of an IPv4 address behind ::ffff:, any other host unchanged."""
    parsed = parse(address) if address.startswith("::ffff:") else None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return address if mapped is None else str(mapped)


def why_refused(
    address: str | bytes, *, resolved: bool = False, allow: Sequence[Network] = ()
) -> str | None:
    """Returns the reason to refuse this address, or None if it is public.

    `resolved`: it came from the resolver and not from a URL. `allow`: from `parse_ranges`.
    """
    parsed = parse(address)
    if parsed is None:
        return "not an IP address in its usual form"
    number = int(parsed)
    if resolved and parsed in _NAT64:
        return _why_embedded(number)
    # The bits for "universal" and "group" may be set or not; the rest of the marker is fixed.
    isatap = parsed.version == 6 and (number >> 32) & 0xFCFF_FFFF == 0x0000_5EFE
    if isatap and (reason := _why_embedded(number)):
        return reason
    for row in _TABLE:
        if parsed in row.network:
            opened = row.may_open and any(parsed in block for block in allow)
            return None if opened else row.reason
    if parsed.version == 6 and parsed not in _GLOBAL_UNICAST:
        return "outside global unicast"
    return None


def _why_embedded(number: int) -> str | None:
    """Returns the reason to refuse the IPv4 address in the last 32 bits."""
    reason = why_refused(str(IPv4Address(number & 0xFFFF_FFFF)))
    return f"carries an IPv4 address: {reason}" if reason else None


def is_public(address: str | bytes) -> bool:
    """True if a page may be opened at this address (text, or packed in 4 or 16 bytes)."""
    return why_refused(address) is None


def parse_ranges(ranges: Sequence[str]) -> tuple[Network, ...]:
    """Parses an `allow_ranges` setting, such as ("198.18.0.0/15",).

    Raises SettingError for a range that is not written as one, is very wide, or reaches outside the
    private blocks of the table: loopback, link-local and metadata stay closed whatever it says.
    """
    return tuple(_parse_range(text.strip()) for text in ranges)


@lru_cache(maxsize=16)
def _parse_range(text: str) -> Network:
    with suppress(ValueError):
        block = ip_network(text if _RANGE.fullmatch(text) else "")
        ends = block.network_address, block.broadcast_address
        row = next((row for row in _TABLE if all(end in row.network for end in ends)), None)
        if row and row.may_open and block.prefixlen >= _WIDEST[block.version]:
            return block
    raise SettingError(
        "bad_range",
        f"{text!r} is no range of addresses that can be opened.",
        "Write it as address/length with nothing after the prefix, such as 198.18.0.0/15, no wider "
        f"than /8 (IPv6: /16) and inside one of {', '.join(_ROWS['may_open'])}.",
    )
