"""Parses URLs and host names of pages and refuses every form that has two readings.

Browsers, libc and HTTP clients disagree about backslashes, userinfo, short and octal IPv4 forms,
percent-encoded hosts, invisible and look-alike characters. A check that reads a URL in one way
while the connection uses another checks nothing. So the request is built from the parts found here,
never from the text. UTS #46 decides what a character means; characters that only look like ASCII
are refused instead of mapped. Names that cannot be public are refused without a look-up.

Spec: RFC 3986; https://www.unicode.org/reports/tr46 (non-transitional; CheckHyphens, CheckBidi,
CheckJoiners); RFC 6761 and 6762 appendix G for local names; https://url.spec.whatwg.org
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urljoin

from searchloop.search_backend.fetch import NAMES
from searchloop.search_backend.fetch.ip_addresses import Network, canonical, why_refused
from searchloop.search_backend.types import FetchRefused, NotReachable

# The underscore is no part of a host name by the book, yet public hosts use it.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PLAIN = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*\.?", re.IGNORECASE | re.ASCII)
_DOTS = frozenset("\u3002\uff0e\uff61")
# Letters and marks that look like the "/", ".", ":" of an address, and what UTS #46 was changed to
# read otherwise, most of it in 2024: programs of today come to two hosts, or to one and none.
_MISLEADING = re.compile(
    "[\u02d0\u02d1\u02f8\u0335-\u0338\u05c3\u0701-\u0704\u2571-\u2573\u2cc6\u2cc7\u3033-\u3035"
    "\u04c0\u10a0-\u10c5\u1806\u1e9e\u2132\u2183"
    "\U0002f868\U0002f874\U0002f91f\U0002f95f\U0002f9bf]"
)


def to_ascii(host: str) -> str | None:
    """The A-label form of a name, lower case, without one trailing dot; None if it is no name.

    "Bücher.example." -> "xn--bcher-kva.example". An address in dotted form passes as a name.
    """
    if len(host) > 254:
        return None
    if _PLAIN.fullmatch(host) and "xn--" not in (lower := host.lower()):
        name = lower.removesuffix(".")  # what nearly every result is, in a tenth of the time
        return name if len(name) <= 253 else None
    bare = host.removesuffix(".")
    if bare.endswith(".") or any(map(_pretends, bare)) or _MISLEADING.search(bare):
        return None
    import idna  # 9 ms and 2 MB that most hosts do not need

    try:
        # What cannot be seen would be dropped.
        name = idna.encode(bare, uts46=True).decode() if all(map(idna.uts46_remap, bare)) else ""
        # Only what encodes back to itself: an A-label made by hand may decode to anything.
        shown = idna.decode(name)
        is_name = idna.encode(shown).decode() == name and not any(map(_pretends, shown))
    except (idna.IDNAError, UnicodeError):
        return None
    return name if is_name and not _MISLEADING.search(shown) else None


def _pretends(char: str) -> bool:
    """True for a non-ASCII character that maps to ASCII or separates labels."""
    if char.isascii():
        return False
    return char in _DOTS or any(c.isascii() for c in unicodedata.normalize("NFKC", char))


# RFC 9110 4.1 asks everybody to support 8000 octets at least; nothing promises more.
MAX_URL = 8000
# The two web ports, the registered alternatives (8008, 8080, 8443) and the two usual ones without a
# registration. A wider list lets a page use this machine to speak to mail servers and databases.
WEB_PORTS = frozenset({80, 443, 8000, 8008, 8080, 8443, 8888})
LOCAL_NAMES = NAMES["local"]
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Whitespace and controls (ASCII or not), the backslash, and what has no meaning outside the UTF-16
# or the program it came from.
_FORBIDDEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\ud800-\udfff]"
)
_URL = re.compile(r"(https?)://([^/?#]+)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]*))?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Everything a browser leaves alone in a path or query; the rest is percent-encoded as UTF-8.
_LEFT_ALONE = "%/:@!$&'()*+,;=?[]~-._|^"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was checked. `host` is an A-label name without trailing dot, or an IP address
    without brackets; `path` is the request target (with query, percent-encoded, no fragment)."""

    scheme: str
    host: str
    port: int
    path: str
    is_address: bool = False

    @property
    def authority(self) -> str:
        """The Host header: brackets around IPv6, no port where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The canonical URL, without fragment."""
        return f"{self.scheme}://{self.authority}{self.path}"


def check_url(raw: str, *, allow: Sequence[Network] = ()) -> Target:
    """Parses `raw`, an absolute http or https URL, without looking anything up.

    Raises FetchRefused for what is not such a URL or has more than one reading, and NotReachable
    for hosts and ports at which there is no public web server. Networks in `allow` count as public.
    """
    scheme, host_text, port_text, path = _split(raw)
    host, is_address = _host(host_text, allow)
    port = _port(port_text, scheme)
    return Target(scheme, host, port, quote(path, safe=_LEFT_ALONE), is_address)


def host_of(url: str) -> str | None:
    """Returns the canonical host of a web address, public or not; domain rules apply to it.

    None for anything but an absolute http or https address with a single reading.
    """
    try:
        _, host, _, _ = _split(url)
    except FetchRefused:
        return None
    return canonical(host[1:-1]) if host.startswith("[") else _plain_host(host)


@lru_cache(maxsize=4096)
def _plain_host(host: str) -> str | None:
    name = to_ascii(host) or ""
    return canonical(host) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name or None


def with_host(url: str, host: str) -> str:
    """Replaces the host of `url`, which `host_of` can read."""
    scheme, written, _, _ = _split(url)
    shown = f"[{host}]" if ":" in host else host
    return f"{url[: len(scheme)]}://{url[len(scheme) + 3 :].replace(written, shown, 1)}"


def check_redirect(base: Target, location: str, *, allow: Sequence[Network] = ()) -> Target:
    """Resolves a Location header against `base`. Raises what `check_url` raises."""
    return check_url(urljoin(base.url, _printable(location)), allow=allow)


def _split(raw: str) -> tuple[str, str, str | None, str]:
    """(scheme, host as written, port, path with query); raises FetchRefused for other forms."""
    parts = _URL.fullmatch(_printable(raw))
    if parts is None:
        raise _refused("it is not an absolute http or https address")
    if "@" in parts[2]:
        raise _refused("it has a user name in front of the host")
    pieces = _AUTHORITY.fullmatch(parts[2])
    if pieces is None:
        raise _refused("its host and port cannot be told apart")
    return parts[1].lower(), pieces[1], pieces[2], (parts[3] or "/") + (parts[4] or "")


def _printable(raw: str) -> str:
    if len(raw) > MAX_URL or len(raw.encode("utf-8", "replace")) > MAX_URL:
        raise _refused(f"it is longer than {MAX_URL} bytes")
    if _FORBIDDEN.search(raw):
        raise _refused("it holds a space, a control character or a backslash")
    return raw


def _host(text: str, allow: Sequence[Network]) -> tuple[str, bool]:
    """(canonical host, whether it is an IP address)."""
    if text.startswith("["):
        return _address(text[1:-1], 6, allow), True
    name = to_ascii(text)
    if name is None:
        raise _refused("its host is not a valid name")
    last = name.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        # Only now and only as it was written: 127.1, 0x7f.1, 010.0.0.1 and 1.2.3.4. have readings.
        return _address(text, 4, allow), True
    if "." not in name or last in LOCAL_NAMES:
        raise NotReachable(f"{name} is a name of a local network")
    return name, False


def _address(text: str, version: int, allow: Sequence[Network]) -> str:
    address = canonical(text)
    if address is None or (":" in address) != (version == 6):
        raise _refused("its host is not an IP address in its usual form")
    if reason := why_refused(address, allow=allow):
        raise NotReachable(f"{address}: {reason}")
    return address


def _port(digits: str | None, scheme: str) -> int:
    if not digits:
        return _DEFAULT_PORTS[scheme]
    if len(digits) > 5 or digits.startswith("0"):
        raise _refused("its port is not a port number")
    if int(digits) not in WEB_PORTS:
        # As if nothing answered there: a better message would help to map ports.
        raise NotReachable(f"port {digits} is not a web port")
    return int(digits)


def _refused(why: str) -> FetchRefused:
    what = f"This address cannot be opened: {why}."
    remedy = "Give the full address of a public page, such as https://example.com/page."
    return FetchRefused("refused_url", what, remedy)
