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

import ipaddress
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from searchloop.search_backend.types import ConfigError


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses `first` to `last` (as numbers) of IP `version`, refused for `reason`."""

    version: int
    first: int
    last: int
    reason: str = ""
    may_open: bool = False

    def holds(self, version: int, number: int) -> bool:
        """True if the address lies in this network."""
        return version == self.version and self.first <= number <= self.last

    def covers(self, other: Network) -> bool:
        """True if all of `other` lies in this network."""
        return self.holds(other.version, other.first) and self.holds(other.version, other.last)


_ROWS = tomllib.loads(Path(__file__).with_name("networks.toml").read_text("utf-8"))
# Wider than any stand-in pool in use; whoever means more has made a mistake in the prefix.
_WIDEST = {4: 8, 6: 16}
_BITS = {4: 32, 6: 128}
# Dotted quad as everybody reads it: no leading zeros, which some resolvers take as octal.
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_QUAD = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_IPV6_CHARACTERS = re.compile(r"[0-9A-Fa-f:.]{2,45}")


def parse(address: str | bytes) -> tuple[int, int] | None:
    """Returns (version, number) of an address in text (canonical dotted quad, or IPv6 without zone)
    or packed in 4 or 16 bytes; None for anything else."""
    if isinstance(address, bytes):
        version = {4: 4, 16: 6}.get(len(address))
        return (version, int.from_bytes(address, "big")) if version else None
    if _QUAD.fullmatch(address):
        first, second, third, fourth = map(int, address.split("."))
        return 4, first << 24 | second << 16 | third << 8 | fourth
    if ":" not in address or not _IPV6_CHARACTERS.fullmatch(address):
        return None
    try:
        return 6, int(ipaddress.IPv6Address(address))
    except ValueError:
        return None


def canonical(address: str) -> str | None:
    """Returns the shortest usual spelling of an address; None for anything else."""
    parsed = parse(address)
    if parsed is None:
        return None
    return address if parsed[0] == 4 else str(ipaddress.IPv6Address(parsed[1]))


def unmapped(address: str) -> str:
    """Returns the dotted quad of an IPv4 address behind ::ffff:, any other host unchanged."""
    parsed = parse(address) if address.startswith("::ffff:") else None
    if parsed is None or parsed[1] >> 32 != 0xFFFF:
        return address
    return str(ipaddress.IPv4Address(parsed[1] & 0xFFFF_FFFF))


def _block(text: str, reason: str = "", may_open: bool = False) -> Network | None:
    """Parses `address/length`; None for another form or bits after the prefix."""
    address, _, length = text.partition("/")
    parsed = parse(address)
    if parsed is None or not re.fullmatch(r"0|[1-9][0-9]{0,2}", length):
        return None
    version, first = parsed
    size = _BITS[version] - int(length)
    if size < 0 or first & ((1 << size) - 1):
        return None
    return Network(version, first, first + (1 << size) - 1, reason, may_open)


_TABLE: tuple[Network, ...] = tuple(
    block
    for kind, rows in _ROWS.items()
    for text, reason in rows.items()
    if (block := _block(text, reason, kind == "may_open"))
)
_GLOBAL_UNICAST = Network(6, 0x2000 << 112, (0x4000 << 112) - 1)
_NAT64 = Network(6, 0x64FF9B << 96, (0x64FF9B << 96) + 0xFFFF_FFFF)


def why_refused(
    address: str | bytes, *, resolved: bool = False, allow: Sequence[Network] = ()
) -> str | None:
    """Returns the reason to refuse this address, or None if it is public.

    `resolved`: it came from the resolver and not from a URL. `allow`: from `parse_ranges`.
    """
    parsed = parse(address)
    if parsed is None:
        return "not an IP address in its usual form"
    version, number = parsed
    if resolved and _NAT64.holds(version, number):
        return _why_embedded(number & 0xFFFF_FFFF)
    # The bits for "universal" and "group" may be set or not; the rest of the marker is fixed.
    isatap = version == 6 and (number >> 32) & 0xFCFF_FFFF == 0x0000_5EFE
    if isatap and (reason := _why_embedded(number & 0xFFFF_FFFF)):
        return reason
    for row in _TABLE:
        if row.holds(version, number):
            opened = row.may_open and any(block.holds(version, number) for block in allow)
            return None if opened else row.reason
    if version == 6 and not _GLOBAL_UNICAST.holds(version, number):
        return "outside global unicast"
    return None


def _why_embedded(number: int) -> str | None:
    reason = why_refused(number.to_bytes(4, "big"))
    return f"carries an IPv4 address: {reason}" if reason else None


def is_public(address: str | bytes) -> bool:
    """True if a page may be opened at this address (text, or packed in 4 or 16 bytes)."""
    return why_refused(address) is None


def parse_ranges(ranges: Sequence[str]) -> tuple[Network, ...]:
    """Parses an `allow_ranges` setting, such as ("198.18.0.0/15",).

    Raises ConfigError for a range that is not written as one, is very wide, or reaches outside the
    private blocks of the table: loopback, link-local and metadata stay closed whatever it says.
    """
    return _parse_ranges(tuple(ranges))


@lru_cache(maxsize=16)
def _parse_ranges(ranges: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(_parse_range(text.strip()) for text in ranges)


def _parse_range(text: str) -> Network:
    block = _block(text)
    if block is None:
        raise ConfigError(
            "bad_range",
            f"{text!r} is not a range of addresses.",
            "Write it as address/length with nothing after the prefix, such as 198.18.0.0/15.",
        )
    if (block.last - block.first) >> (_BITS[block.version] - _WIDEST[block.version]):
        raise ConfigError(
            "bad_range",
            f"The range {text} is too wide to be opened.",
            f"Name the part that is used, /{_WIDEST[block.version]} or narrower.",
        )
    row = next((row for row in _TABLE if row.covers(block)), None)
    if row is None or not row.may_open:
        raise ConfigError(
            "bad_range",
            f"The range {text} cannot be opened: it is not inside one private block.",
            "Only parts of " + ", ".join(_ROWS["may_open"]) + " can be.",
        )
    return block
