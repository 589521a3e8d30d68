"""Serving: binds the port, says where the page is, and stops in order.

The port is bound before anything else, so that whatever is wrong with it is one sentence. An
address that other machines can reach needs a token that the user chose.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from agent.errors import AgentError, ConfigError
from web.access import Access
from web.api import House
from web.app import Web, create_app

if TYPE_CHECKING:
    from uvicorn import Server

OK, FAILED, BAD_INPUT = 0, 1, 2
PORT = 8321
_STOP_SECONDS = 5  # how long an ordinary request may go on once we are told to stop
_SHORT = 16  # characters of a token


def serve(
    house: House,
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    open_browser: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
    on_start: Callable[[Serving], None] | None = None,
) -> int:
    """Serves until it is told to stop; returns the exit code. Port 0 takes any free port.

    `on_start` is told once the first request can come.
    """
    out, err = out or sys.stdout, err or sys.stderr
    try:
        token = house.settings.token
        family, address = _resolve(host, port)
        warning = _exposure(host, address[0], token)
        listener = _bind(family, address, host, port)
    except ConfigError as error:
        _say(err, f"searchloop: {error.message} {error.remedy}")
        return BAD_INPUT
    if warning:
        _say(err, warning)
    bound = listener.getsockname()
    own = socket.gethostname() if _is_any(bound[0]) else host
    names = () if ":" in own else (own,)
    access = Access(bound[1], token or secrets.token_urlsafe(32), bound[0], names)

    def started(serving: Serving) -> None:
        _say(out, f"searchloop is running at {serving.url}  (Ctrl-C stops it)")
        if open_browser:
            _open(serving.url, house.settings.env)
        if on_start:
            on_start(serving)

    serving = Serving(create_app(house, access), access, started)
    try:
        serving.run(listener)
    except KeyboardInterrupt:
        return OK
    finally:
        listener.close()
        house.log.close()
    if serving.app.failure:
        _say(err, f"searchloop: {_sentence(serving.app.failure)}")
        return FAILED
    return OK


class Serving:
    """A server that runs; `stop` may be called from any thread."""

    def __init__(self, app: Web, access: Access, started: Callable[[Serving], None]) -> None:
        self.app = app
        self.access = access
        self._started = started
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """The address that lets a browser in."""
        host = "127.0.0.1" if self.access.anywhere else self.access.host
        literal = f"[{host}]" if ":" in host else host
        return f"http://{literal}:{self.access.port}{self.access.start_path()}"

    def stop(self) -> None:
        """Stops in order: streams, requests, runs."""
        if self._server is not None:
            self._server.should_exit = True

    def run(self, listener: socket.socket) -> None:
        """Runs on this thread until it is stopped."""
        import uvicorn

        serving = self

        class Ours(uvicorn.Server):
            """Says when it is up, ends the streams first, and takes a signal for a wish."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                serving._started(serving)

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                serving.app.streams.close()
                await super().shutdown(sockets)

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                with _signals(self.handle_exit):
                    yield

        config = uvicorn.Config(
            self.app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self._server = Ours(config)
        with _quiet(lambda: self.app.failure is not None), contextlib.suppress(SystemExit):
            self._server.run([listener])


@contextlib.contextmanager
def _quiet(failed: Callable[[], bool]) -> Iterator[None]:
    """Why a start failed is said in `serve`, in one sentence; the library need not say it too."""

    def keep(record: logging.LogRecord) -> bool:
        return not failed()

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


@contextlib.contextmanager
def _signals(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C and the like stop the server and nothing else."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    listener = socket.socket(family, socket.SOCK_STREAM)
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
            f"Stop the program that uses it, or choose another: --port {other}",
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


def _open(url: str, env: Mapping[str, str]) -> None:
    """Opens the browser, if there is a screen to show it on."""
    on_screen = sys.platform in ("win32", "darwin") or env.get("DISPLAY")
    if not (on_screen or env.get("WAYLAND_DISPLAY")):
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _sentence(error: AgentError) -> str:
    return f"{error.message} {error.remedy}".strip()


def _say(stream: TextIO, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(f"{line}\n")
        stream.flush()
