"""`check_url`: the one reading of a URL that the guard trusts, and everything that has two readings
refused.

Browsers, libc and HTTP clients disagree about backslashes, userinfo, short and octal IPv4 forms,
percent-encoded hosts, invisible and look-alike characters. A guard that reads a URL one way while
the connection is made another way guards nothing, so only forms with a single reading pass, and the
request is built from the parts found here, never from the text. Refusing costs the caller little:
such forms are not in use for honest pages. Names that cannot be public are refused before anyone is
asked about them; all others are judged by the addresses they have.

Spec: RFC 3986; UTS #46 for names (non-transitional); RFC 6761 and 6762 appendix G for local names;
https://url.spec.whatwg.org for what browsers do
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urljoin, urlsplit

from search_backend.addresses import Block, canonical, why_refused
from search_backend.errors import FetchRefused, NotReachable
from search_backend.names import to_ascii

# RFC 9110 4.1 asks everybody to support 8000 octets at least; nothing promises more.
MAX_URL = 8000
# The two web ports, the registered alternatives (8008, 8080, 8443) and the two usual ones without a
# registration. A wider list lets a page use this machine to speak to mail servers and databases.
WEB_PORTS = frozenset({80, 443, 8000, 8008, 8080, 8443, 8888})
# The last label of names that no public server can have. `test` and `example` are not here: they
# are for documentation, and where a network gives them an address, the address decides.
LOCAL_NAMES = frozenset(
    {
        *("localhost", "localdomain", "local", "internal", "intranet", "private"),
        *("corp", "home", "lan", "arpa", "onion", "alt", "invalid"),
    }
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Whitespace and controls (ASCII or not), the backslash, and what has no meaning outside the UTF-16
# or the program it came from.
_FORBIDDEN = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\ud800-\udfff]"
)
_URL = re.compile(r"(https?)://([^/?#]+)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
# Nothing in it that two programs could read differently.
_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(?:[/?#]|$)")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]*))?")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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


def check_url(raw: str, *, allow: Sequence[Block] = ()) -> Target:
    """The only reading of `raw`, an absolute http or https URL. Nothing is looked up.

    Raises FetchRefused for what is not such a URL or has more than one reading, and NotReachable
    for hosts and ports at which there is no public web server. `allow`: see `addresses`.
    """
    scheme, host_text, port_text, path = _split(raw)
    host, is_address = _host(host_text, allow)
    port = _port(port_text, scheme)
    _second_opinion(raw, scheme, host_text, port_text)
    return Target(scheme, host, port, quote(path, safe=_LEFT_ALONE), is_address)


def host_of(url: str) -> str | None:
    """The canonical host of a web address, public or not: what domain rules are applied to.

    None for what is no absolute http or https address or has more than one reading.
    """
    # Asked of each result of each search: most are as plain as can be.
    usual = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if usual and len(url) <= MAX_URL and (plain := _PLAIN.match(url)):
        return _plain_host(plain[1])
    try:
        scheme, host, port, _ = _split(url)
        _second_opinion(url, scheme, host, port)
    except FetchRefused:
        return None
    return canonical(host[1:-1]) if host.startswith("[") else _plain_host(host)


@lru_cache(maxsize=4096)
def _plain_host(host: str) -> str | None:
    name = to_ascii(host) or ""
    return canonical(host) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name or None


def with_host(url: str, host: str) -> str:
    """A web address with the host written in another way; for addresses that `host_of` can read."""
    scheme, written, _, _ = _split(url)
    shown = f"[{host}]" if ":" in host else host
    return f"{url[: len(scheme)]}://{url[len(scheme) + 3 :].replace(written, shown, 1)}"


def check_redirect(base: Target, location: str, *, allow: Sequence[Block] = ()) -> Target:
    """Where a Location header leads from `base`, checked as strictly as a URL from a caller.

    Raises what `check_url` raises.
    """
    location = _printable(location)
    if _ABSOLUTE.match(location):
        return check_url(location, allow=allow)
    if location.startswith("///"):
        # Browsers take the next label for a host, RFC 3986 takes it for a path.
        raise _refused("it starts with more than two slashes")
    if location.startswith("//"):
        return check_url(f"{base.scheme}:{location}", allow=allow)
    target = check_url(urljoin(base.url, location), allow=allow)
    if target.authority != base.authority:
        raise _refused("it leaves its server without naming another")
    return target


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


def _host(text: str, allow: Sequence[Block]) -> tuple[str, bool]:
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


def _address(text: str, version: int, allow: Sequence[Block]) -> str:
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


def _second_opinion(raw: str, scheme: str, host: str, port: str | None) -> None:
    """Refuse what the standard library reads otherwise: two readers that differ are the danger."""
    try:
        other = urlsplit(raw)
        same = (
            (other.scheme, other.hostname) == (scheme, host.strip("[]").lower())
            and other.port == (int(port) if port else None)
            and other.username is None
        )
    except ValueError:
        same = False
    if not same:
        raise _refused("it can be read in two ways")


def _refused(why: str) -> FetchRefused:
    return FetchRefused(
        "refused_url",
        f"This address cannot be opened: {why}.",
        "Give the full address of a public page, such as https://example.com/page.",
    )
