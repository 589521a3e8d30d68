"""Serving: binds the port, says where the page is, and stops in order.

The port is bound before anything else, so that whatever is wrong with it is one sentence. An
address that other machines can reach needs a token that the user chose.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from agent.errors import AgentError, ConfigError
from agent.process import be_a_server
from web.access import Access
from web.api import House
from web.app import Web, create_app
from web.listen import PORT, access_to, listen, public_url
from web.uvicorn_server import config

if TYPE_CHECKING:
    from uvicorn import Server

OK, FAILED, BAD_INPUT = 0, 1, 2


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
        public = public_url(house.settings.env.get("SEARCHLOOP_PUBLIC_URL"))
        listener, warning = listen(host, port, token)
    except ConfigError as error:
        _say(err, f"searchloop: {error.message} {error.remedy}")
        return BAD_INPUT
    if warning:
        _say(err, warning)
    access = access_to(listener, host, token or secrets.token_urlsafe(32), public=public)

    def started(serving: Serving) -> None:
        # A token that the user chose opens the next start as well: it belongs in no file of a log.
        url = serving.url if not token or out.isatty() else f"{serving.base}/?token=YOUR_TOKEN"
        if serving.app.waiting:
            _say(err, f"searchloop: {_sentence(serving.app.waiting)}")
        _say(out, f"searchloop is running at {url}  (Ctrl-C stops it)")
        if open_browser:
            _open(serving.url, house.settings.env)
        if on_start:
            on_start(serving)

    be_a_server()
    serving = Serving(create_app(house, access), access, started)
    try:
        serving.run(listener)
    except KeyboardInterrupt:
        return OK
    finally:
        listener.close()
        house.close()
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
        return f"{self.base}{self.access.start_path()}"

    @property
    def base(self) -> str:
        """Where browsers reach it."""
        if self.access.public:
            return self.access.public
        host = "127.0.0.1" if self.access.anywhere else self.access.host
        literal = f"[{host}]" if ":" in host else host
        return f"http://{literal}:{self.access.port}"

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

        self._server = Ours(config(self.app, lifespan="on"))
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
