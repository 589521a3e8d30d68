"""Serves the page and the API: binds the port, prints where the page is, and stops in order."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TextIO

from searchloop.agent.errors import AgentError
from searchloop.agent.observe.logs import be_a_server
from searchloop.compose import Services
from searchloop.web.app import WebApp
from searchloop.web.gate.access import OPENED_SECONDS, PRINTED_SECONDS, Access, KeptToken, People
from searchloop.web.listen import PORT, Server, access_to, config, listen, public_url

OK, FAILED, BAD_INPUT = 0, 1, 2


def serve(
    services: Services,
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    open_browser: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
    on_start: Callable[[WebServer], None] | None = None,
) -> int:
    """Serves until a signal or `WebServer.stop`; returns the exit code. Port 0: any free port."""
    out, err = out or sys.stdout, err or sys.stderr
    try:
        token, env = services.settings.token, services.settings.env
        kept, people = KeptToken(services.settings.home), People.of(env)
        secret = token or kept.read()
        public = public_url(env.get("SEARCHLOOP_PUBLIC_URL"))
        listener, warning = listen(host, port, token, public)
    except AgentError as error:
        _print(err, f"searchloop: {error}")
        return BAD_INPUT
    if warning:
        _print(err, warning)
    its_own = None if token else kept
    access = access_to(listener, host, secret, public=public, kept=its_own, people=people)

    def started(server: WebServer) -> None:
        # Where a token was set, whoever reads the log of a service has no use for a link.
        url = f"{server.base}/" if token and not out.isatty() else server.link()
        if server.app.waiting:
            _print(err, f"searchloop: {server.app.waiting}")
        _print(out, f"searchloop is running at {url}  (Ctrl-C stops it)")
        if open_browser:
            _open(server.link(OPENED_SECONDS), env)
        if on_start:
            on_start(server)

    be_a_server()
    server = WebServer(WebApp(services, access), access, started)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server.run([listener])
    except AgentError as error:
        _print(err, f"searchloop: {error}")
        return FAILED
    finally:
        listener.close()
        services.close()
    return OK


class WebServer(Server):
    """uvicorn's server that ends event streams before it stops. Signals stop it, nothing more."""

    def __init__(self, app: WebApp, access: Access, on_start: Callable[[WebServer], None]) -> None:
        super().__init__(config(app))
        self.app = app
        self.access = access
        self._on_start = on_start

    def link(self, seconds: float = PRINTED_SECONDS) -> str:
        """Returns a new address that lets a browser in once."""
        return f"{self.base}{self.access.start_path(seconds)}"

    @property
    def base(self) -> str:
        """The address at which browsers reach the server."""
        if self.access.public:
            return self.access.public
        host = "127.0.0.1" if self.access.anywhere else self.access.host
        literal = f"[{host}]" if ":" in host else host
        return f"http://{literal}:{self.access.port}"

    def stop(self) -> None:
        """Stops in order: streams, requests, runs. Any thread may call it."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, then calls `on_start`. Raises AgentError."""
        await self.app.begin()
        await super().startup(sockets)
        self._on_start(self)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the streams, which would never end by themselves, then everything else."""
        self.app.end_streams()
        await super().shutdown(sockets)
        if not self.force_exit:
            await self.app.aclose()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals while it runs, and does not raise them again at the end."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _open(url: str, env: Mapping[str, str]) -> None:
    """Opens the browser, if there is a screen to show it on."""
    on_screen = sys.platform in ("win32", "darwin") or env.get("DISPLAY")
    if not (on_screen or env.get("WAYLAND_DISPLAY")):
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _print(stream: TextIO, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(f"{line}\n")
        stream.flush()
