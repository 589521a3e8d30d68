"""Taking a port, so that whatever is wrong with it is one sentence.

An address that other machines can reach needs a token that the user chose.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from agent.errors import ConfigError
from web.access import Access

PORT = 8321
_SHORT = 16  # characters of a token


def listen(host: str, port: int, token: str | None) -> tuple[socket.socket, str | None]:
    """A listening socket, and a warning when other machines can reach it.

    Raises ConfigError for a port or address that cannot be had, and for an open one without token.
    """
    family, address = _resolve(host, port)
    warning = _exposure(host, address[0], token)
    return _bind(family, address, host, port), warning


def access_to(
    listener: socket.socket,
    host: str,
    token: str,
    *,
    names: Sequence[str] = (),
    open_to_all: bool = False,
    public: str = "",
) -> Access:
    """By which names this socket may be called, `names` among them, and with which secret.

    `public` is the address of a proxy before it, as `public_url` gives it.
    """
    bound = listener.getsockname()
    own = socket.gethostname() if _is_any(bound[0]) else host
    known = () if ":" in own else (own,)
    return Access(bound[1], token, bound[0], (*known, *names), open_to_all, public)


def public_url(given: str | None) -> str:
    """An address such as https://chat.example.org as browsers write it in Origin; "" for none.

    Raises ConfigError for what is no such address.
    """
    text = (given or "").strip().rstrip("/").lower()
    address = urlsplit(text)
    if text and not (
        address.scheme in ("http", "https")
        and address.hostname
        and text == f"{address.scheme}://{address.netloc}"
        and "@" not in address.netloc
        and text.isascii()
    ):
        raise ConfigError(
            "bad_public_url",
            "SEARCHLOOP_PUBLIC_URL is not an address without a path.",
            "Write it as browsers show it, for example https://chat.example.org.",
        )
    usual = ":443" if address.scheme == "https" else ":80"
    return text.removesuffix(usual) if text else ""


Address = tuple[Any, ...]


def _resolve(host: str, port: int) -> tuple[int, Address]:
    if not 0 <= port <= 65535:
        raise ConfigError("bad_port", f"{port} is not a port.", "Choose one from 1 to 65535.")
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError):
        raise ConfigError(
            "bad_host",
            f"{host!r} is not an address of this machine.",
            "Use --host 127.0.0.1, which only this machine can reach.",
        ) from None
    # Names such as localhost have two addresses; the older kind is what people type.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _exposure(host: str, address: str, token: str | None) -> str | None:
    """A warning for an address that others can reach; ConfigError when nothing would guard it."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return None
    if not token:
        raise ConfigError(
            "exposed",
            f"Other machines could reach {host}, and no token is set.",
            "Set SEARCHLOOP_TOKEN to a long secret first, or use --host 127.0.0.1.",
        )
    weak = " Your token is short; make it longer." if len(token) < _SHORT else ""
    return (
        f"Warning: other machines can reach {host}. Whoever has the token reads your sessions and "
        "spends with your keys, and the connection is not encrypted: use it in a network that you "
        f"trust, or behind a proxy with TLS.{weak}"
    )


def _bind(family: int, address: Address, host: str, port: int) -> socket.socket:
    # With the protocol left open, asyncio would not switch Nagle's algorithm off on what it
    # accepts, and an answer in two pieces would wait 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two programs share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _cannot_bind(error.errno, host, port) from None
    listener.setblocking(False)
    return listener


def _cannot_bind(number: int | None, host: str, port: int) -> ConfigError:
    if number == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else PORT
        return ConfigError(
            "port_in_use",
            f"Port {port} is in use.",
            "Stop the program that uses it, or choose another port: "
            f"searchloop serve --port {other} (make run PORT={other})",
        )
    if number in (errno.EACCES, errno.EPERM):
        return ConfigError(
            "port_denied", f"Port {port} needs more rights.", f"Choose another: --port {PORT}"
        )
    return ConfigError(
        "bad_host",
        f"{host!r} is not an address of this machine.",
        "Use --host 127.0.0.1, which only this machine can reach.",
    )


def _is_any(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_unspecified
