"""HTTP client of the search backend: aiohttp sessions on one event loop in a background thread.

The search backend is a plain WSGI application: any server may run it, in threads and after a fork.
So the loop starts at the first call in each process, and a forked child never touches the loop or
the connections of its parent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from functools import cache
from typing import Any, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from searchloop.search_backend.types import SettingError

T = TypeVar("T")


class _Loop:
    """An event loop and the daemon thread that runs it, started by the first coroutine."""

    def __init__(self) -> None:
        self._starting = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts `coroutine` on the loop."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.SelectorEventLoop()  # the one that calls `socket.connect`
                self.thread = threading.Thread(target=self._loop.run_forever, daemon=True)
                self.thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


_loops: dict[int, _Loop] = {}  # by process id: a child leaves the entry of its parent alone


def run(coroutine: Coroutine[Any, Any, T], *, timeout: float | None) -> T:
    """Runs `coroutine` on the loop of this process and returns its result to any other thread.

    Raises TimeoutError after `timeout` seconds and cancels the coroutine.
    """
    future = _loops.setdefault(os.getpid(), _Loop()).submit(coroutine)
    try:
        return future.result(timeout)
    finally:
        future.cancel()  # does nothing to one that is done


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Runs `work` in a daemon thread.

    A thread of the loop's own pool that hangs would delay the end of the program.
    """
    future = Future[T]()

    def act() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # raised where it is awaited, and never ends the loop
                future.set_exception(tame(error))

    threading.Thread(target=act, daemon=True).start()
    return future


def tame(error: BaseException) -> Exception:
    """Returns the error itself, or one in place of what ends a loop: SystemExit, StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(type(error).__name__)


class AddressResolver(AbstractResolver):
    """Gives aiohttp the addresses that `look_up` returns for a host and port, of every family."""

    def __init__(self, look_up: Callable[[str, int], Sequence[str]]) -> None:
        self._look_up = look_up

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        """Runs the look-up in a thread of its own, as nothing stops one that hangs."""
        found = await asyncio.wrap_future(in_thread(lambda: self._look_up(host, port)))
        shape = ResolveResult(hostname=host, host="", port=port, family=0, proto=0, flags=0)
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [{**shape, "host": a, "family": families[":" in a]} for a in found]

    async def close(self) -> None:
        """Does nothing: no connection is open."""


def new_session(connector: aiohttp.BaseConnector, **options: Any) -> aiohttp.ClientSession:
    """A session without proxies, `.netrc`, time limits and, unless `options` have a jar, cookies.

    To be called on the loop.
    """
    options = {"cookie_jar": aiohttp.DummyCookieJar(), **options}
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(), **options)


def close_session(sessions: dict[int, aiohttp.ClientSession]) -> None:
    """Closes the session of this process among these, by process id."""
    if session := sessions.pop(os.getpid(), None):
        loop = _loops[os.getpid()]
        closing = loop.submit(session.close())
        if loop.thread is not threading.current_thread():  # it may be the collector that calls
            wait([closing], 1)


@cache  # errors are not kept: a file that is there later counts
def system_trust() -> ssl.SSLContext:
    """Returns a TLS context for HTTP/1.1. Raises SettingError (bad_certificates).

    SSL_CERT_FILE or SSL_CERT_DIR replace the system's certificates. OpenSSL ignores a file that it
    cannot read, and then every server seems untrusted; so this says which setting is wrong.
    """
    context = ssl.create_default_context()
    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        try:
            context.load_verify_locations(file)
        except OSError as error:  # ssl.SSLError is one
            why = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
            raise _unusable("SSL_CERT_FILE", file, str(why)) from error
    elif folders and not any(map(os.path.isdir, folders.split(os.pathsep))):
        raise _unusable("SSL_CERT_DIR", folders, "no such folder")
    context.set_alpn_protocols(["http/1.1"])
    return context


def _unusable(name: str, value: str, why: str) -> SettingError:
    what = f"{name} names {value[:200]!r}, which cannot be used ({why.lower()})."
    return SettingError("bad_certificates", what, f"Correct {name}, or unset it.")
