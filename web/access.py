"""Where this server is reached, and the secret that opens it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from urllib.parse import quote

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_WILDCARD = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class Access:
    """Where the server is reached, and the secret that opens it.

    `host` is what it is bound to; `names` are further host names by which it may be called.
    `open_to_all` asks for no secret: for a server that holds nothing of the user's. `public` is the
    address by which browsers reach it through a proxy: `https://chat.example.org`.
    """

    port: int
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    open_to_all: bool = False
    public: str = ""

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers keep one jar for all ports of a host."""
        return f"searchloop_{self.port}"

    @property
    def pass_value(self) -> str:
        """What the cookie holds: made of the token, and the token cannot be made of it."""
        return hmac.new(self.token.encode(), b"searchloop cookie", hashlib.sha256).hexdigest()

    @property
    def anywhere(self) -> bool:
        """Whether it is bound to every address of the machine."""
        return self.host in _WILDCARD

    def hosts(self) -> frozenset[bytes]:
        """The values of Host that are ours."""
        own = () if self.anywhere else (f"[{self.host}]" if ":" in self.host else self.host,)
        names = {*_LOOPBACK, *own, *self.names}
        full = {f"{name}:{self.port}" for name in names}
        full |= {self.public.partition("://")[2]} - {""}
        return frozenset(n.lower().encode() for n in (full | names if self.port == 80 else full))

    def arrived_at(self, server: tuple[str, int | None] | None) -> bytes | None:
        """Bound to all addresses, the one that a connection came in on is ours as well."""
        if not self.anywhere or server is None or server[1] is None:
            return None
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{address}:{server[1]}".encode()

    def set_cookie(self, host: bytes) -> bytes:
        """The Set-Cookie line that lets a browser in until it is closed; `host` is the request's.

        One that came by the public https address is never sent without TLS.
        """
        secure = "; Secure" if self.public == f"https://{host.decode('latin-1').lower()}" else ""
        rest = f"Path=/; HttpOnly; SameSite=Strict{secure}"
        return f"{self.cookie}={self.pass_value}; {rest}".encode()

    def start_path(self) -> str:
        """Path and query of the link that lets a browser in."""
        return "/?token=" + quote(self.token, safe="")
