"""Who may come in: the token, one-time start links, guesses, and people whom a proxy signed in.

The gate asks `Access.admit` once for each request. Its answer, a `Person`, travels with the request
as a value; no other code looks at a cookie, a token or a user's header.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import os
import secrets
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

from searchloop.agent.errors import ConfigError
from searchloop.agent.settings.private_files import remedy_for, write_private
from searchloop.analysis.addresses import network_of
from searchloop.protocols.programs import Program, Programs

TOKEN_FILE = "token"
SHORTEST = 16  # characters of a token where other machines can reach the server
OPENED_SECONDS, PRINTED_SECONDS = 120.0, 12 * 3600.0  # that a start link lasts if nobody uses it
COOKIE_SECONDS = 400 * 86_400  # the longest that browsers keep one
_GUESSES, _REFILL = 10.0, 10 / 60  # wrong tokens of an address at once, and a second
_MOST_GUESSERS, _REMEMBERED = 10_000, 16  # addresses; wrong tokens of one
_LONGEST_NAME = 200  # characters
_SETTINGS = ("SEARCHLOOP_USER_HEADER", "SEARCHLOOP_TRUSTED_PROXIES", "SEARCHLOOP_ADMINS")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_WILDCARD = frozenset({"0.0.0.0", "::", ""})


class Person(NamedTuple):
    """Whoever asks. `name` is what the proxy calls them, empty for the holder of the token."""

    name: str = ""
    admin: bool = True
    program: Program | None = None  # of theirs, which sent its own key


class KeptToken:
    """The token in SEARCHLOOP_HOME, for its user only. Another process may replace it."""

    def __init__(self, home: Path) -> None:
        self.path = home / TOKEN_FILE
        self._seen: tuple[int, int] | None = None
        self._value = ""

    def read(self) -> str:
        """Returns the token of now; makes one if there is none. Raises ConfigError, StoreError."""
        try:
            found = self.path.stat()
            seen = found.st_mtime_ns, found.st_ino  # it is always replaced, never written in place
            if seen != self._seen:
                self._value, self._seen = self._checked(found.st_mode), seen
        except FileNotFoundError:
            return self._value or self._made()
        except (OSError, ValueError) as error:
            remedy = remedy_for(error, "Remove it; a new one is made, and browsers sign in again.")
            what = f"{self.path} cannot be read: {error}."
            raise ConfigError("bad_token_file", what, remedy) from error
        return self._value

    def renew(self) -> str:
        """Replaces the token: every cookie and link of the old one dies. Raises StoreError."""
        write_private(self.path, f"{secrets.token_urlsafe(32)}\n")
        return self.read()

    def _checked(self, mode: int) -> str:
        if mode & 0o077 and os.name == "posix":
            self.path.chmod(0o600)
        value = self.path.read_text("utf-8").strip()
        if len(value) < SHORTEST:
            raise ValueError("it holds no token")
        return value

    def _made(self) -> str:
        """Writes the first token, unless another process was quicker."""
        own = self.path.with_name(f".{TOKEN_FILE}-{secrets.token_hex(8)}")
        write_private(own, f"{secrets.token_urlsafe(32)}\n")
        try:
            os.link(own, self.path)
        except OSError:  # or a file system without links
            if not self.path.exists():
                os.replace(own, self.path)
        own.unlink(missing_ok=True)
        return self.read()


class StartLinks:
    """Codes that let a browser in once each. Any thread may call every method."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: dict[str, tuple[float, str]] = {}

    def make(self, seconds: float, token: str) -> str:
        """Returns a new code, which dies with this token."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = self._clock() + seconds, token
        return code

    def take(self, code: str, token: str) -> bool:
        """Uses a code up. Returns True if it was good."""
        # The code is random and dies here: how long a look-up takes tells nothing.
        until, made_for = self._codes.pop(code, (0.0, ""))
        return until > self._clock() and made_for == token


class Guesses:
    """Limits wrong tokens by address. It remembers a bounded number of addresses.

    A token that an address repeats counts once: a program with an old token is no guesser.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float, tuple[int, ...]]] = OrderedDict()

    def wrong(self, address: str, given: bytes) -> int:
        """Counts a wrong token. Returns the seconds that the address has to wait, 0 for none."""
        left, since, seen = self._left.get(address, (_GUESSES, 0.0, ()))
        left = min(left + (self._clock() - since) * _REFILL, _GUESSES)
        if hash(given) in seen:
            return 0
        if left < 1:
            return math.ceil((1 - left) / _REFILL)
        self._left[address] = left - 1, self._clock(), (*seen, hash(given))[-_REMEMBERED:]
        self._left.move_to_end(address)
        while len(self._left) > _MOST_GUESSERS:
            self._left.popitem(last=False)
        return 0


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class People(NamedTuple):
    """The proxy that signs people in: its header, its addresses, and who is an administrator."""

    header: bytes
    proxies: tuple[Network, ...]
    admins: frozenset[str]

    @classmethod
    def of(cls, env: Mapping[str, str]) -> People | None:
        """Reads the settings; None without SEARCHLOOP_USER_HEADER. Raises ConfigError."""
        header, proxies, admins = ((env.get(name) or "").strip() for name in _SETTINGS)
        if not header:
            return None
        if not header.isascii() or not header.replace("-", "").isalnum():
            what, remedy = "is not the name of a header", "Write one such as X-Forwarded-User."
            raise ConfigError("bad_user_header", f"SEARCHLOOP_USER_HEADER {what}.", remedy)
        try:
            parts = [part.strip() for part in (proxies or "127.0.0.1,::1").split(",")]
            known = tuple(ipaddress.ip_network(part) for part in parts if part)
        except ValueError as error:
            what = f"SEARCHLOOP_TRUSTED_PROXIES: {error}."
            remedy = "Write addresses or ranges, for example 10.0.0.5,10.1.0.0/24."
            raise ConfigError("bad_proxies", what, remedy) from error
        names = frozenset(_name(part) for part in admins.split(",") if part.strip())
        return cls(header.lower().encode(), known, names)

    def trusts(self, address: str) -> bool:
        """Returns True for an address of the proxy."""
        found = _ip(address)
        return found is not None and any(found in network for network in self.proxies)

    def person(self, given: bytes) -> Person | None:
        """Returns the person of a header's value; None for what is no name."""
        name = _name(given.decode("utf-8", "replace"))
        if not name or len(name) > _LONGEST_NAME or not name.isprintable() or "\ufffd" in name:
            return None
        return Person(name, name in self.admins)


def _name(text: str) -> str:
    # Capitals count: two names that a proxy tells apart are two people.
    return unicodedata.normalize("NFC", text).strip()


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(address.partition("%")[0].strip("[] "))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses of the server, and what lets requests in.

    `names` are further host names, `public` is the address of a proxy before the server. With
    `open_to_all` no request needs the secret: for a server that holds nothing of the user's.
    `kept` replaces `token` by the one in the file. Keys of `programs` are for their addresses only.
    """

    port: int
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    open_to_all: bool = False
    public: str = ""
    kept: KeptToken | None = None
    people: People | None = None
    links: StartLinks = field(default_factory=StartLinks)
    guesses: Guesses = field(default_factory=Guesses)
    programs: Programs | None = None

    @property
    def cookie(self) -> str:
        """Returns the cookie's name, with the port: browsers share cookies among a host's ports."""
        return f"searchloop_{self.port}"

    def secret(self) -> str:
        """Returns the token of now."""
        return self.kept.read() if self.kept else self.token

    @property
    def cookie_value(self) -> str:
        """Returns the cookie's value. It is derived from the token, which it does not reveal."""
        return hmac.new(self.secret().encode(), b"searchloop cookie", hashlib.sha256).hexdigest()

    @property
    def anywhere(self) -> bool:
        """Is true if the socket is bound to every address of the machine."""
        return self.host in _WILDCARD

    def hosts(self) -> frozenset[bytes]:
        """Returns the values of Host that name this server."""
        own = () if self.anywhere else (f"[{self.host}]" if ":" in self.host else self.host,)
        names = {*_LOOPBACK, *own, *self.names}
        full = {f"{name}:{self.port}" for name in names}
        full |= {self.public.partition("://")[2]} - {""}
        return frozenset(n.lower().encode() for n in (full | names if self.port == 80 else full))

    def arrived_at(self, server: tuple[str, int | None] | None) -> bytes | None:
        """Returns the Host of the address that a connection came in on, if bound to all of them."""
        if not self.anywhere or server is None or server[1] is None:
            return None
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{address}:{server[1]}".encode()

    def set_cookie(self, host: bytes, *, end: bool = False) -> bytes:
        """Returns the Set-Cookie line, which needs TLS if `host` is the public https address.

        With `end` it removes the cookie.
        """
        secure = "; Secure" if self.public == f"https://{host.decode('latin-1').lower()}" else ""
        value, age = ("", 0) if end else (self.cookie_value, COOKIE_SECONDS)
        rest = f"Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        return f"{self.cookie}={value}; {rest}".encode()

    def start_path(self, seconds: float = PRINTED_SECONDS) -> str:
        """Returns path and query of a new link that lets a browser in once."""
        return "/?token=" + quote(self.links.make(seconds, self.secret()), safe="")

    async def admit(
        self, scope: Mapping[str, Any], head: Mapping[bytes, bytes]
    ) -> Person | int | None:
        """Returns who asks; None without a token, for a wrong one the seconds to wait, or 0.

        Of two keys in one request the right one counts.
        """
        client = (scope.get("client") or ("",))[0]
        if self.people and self.people.header in head and self.people.trusts(client):
            return self.people.person(head[self.people.header])
        if self._has_cookie(scope):
            return Person()
        scheme, _, bearer = head.get(b"authorization", b"").partition(b" ")
        keys = head.get(b"x-api-key", b""), bearer if scheme.lower() == b"bearer" else b""
        who: Person | int | None = None
        for given in filter(None, map(bytes.strip, keys)):  # clients of Messages send the first
            found = await self.programs.with_key(given) if self.programs else None
            who = Person(found.owner, False, found) if found else self.guess(given, scope, head)
            if isinstance(who, Person):
                break
        return who

    def guess(
        self,
        given: bytes,
        scope: Mapping[str, Any],
        head: Mapping[bytes, bytes],
        *,
        link: bool = False,
    ) -> Person | int:
        """Compares a token; with `link` a code as well. The right one always gets in.

        The token of the file is never a link, which browsers remember and which works once.
        """
        secret = self.secret()
        if hmac.compare_digest(given, secret.encode()) and not (link and self.kept):
            return Person()
        if link and self.links.take(given.decode("utf-8", "replace"), secret):
            return Person()
        return self.guesses.wrong(self._address(scope, head), given)

    def _has_cookie(self, scope: Mapping[str, Any]) -> bool:
        lines = b";".join(value for name, value in scope["headers"] if name == b"cookie")
        pairs = (part.strip().partition(b"=") for part in lines.split(b";"))
        name, right = self.cookie.encode(), self.cookie_value.encode()
        passes = [value for found, _, value in pairs if found == name]
        return any(hmac.compare_digest(value, right) for value in passes)

    def _address(self, scope: Mapping[str, Any], head: Mapping[bytes, bytes]) -> str:
        """Returns the address that guesses; behind our proxies the one that the first saw."""
        client = (scope.get("client") or ("",))[0]
        if self.people and self.people.trusts(client):
            for seen in reversed(head.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
                found = _ip(seen) or _ip(seen.rpartition(":")[0])  # some proxies add a port
                client = str(found or client)
                if not (found and self.people.trusts(client)):
                    break
        return network_of(client)


def given_token(query: str) -> bytes:
    """Returns the token in a query or a form, as bytes."""
    values: Sequence[str] = parse_qs(query, keep_blank_values=True).get("token", [""])
    return values[-1].encode("utf-8", "surrogateescape")
