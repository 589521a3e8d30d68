"""Opens a page in the user's own Chromium, for pages that scripts write.

The browser reaches the web through `CheckedProxy` alone: it looks no name up, bypasses no proxy,
not even for loopback, and speaks neither QUIC nor WebRTC. It has a new profile in a temporary
folder, downloads nothing, and is killed with all its processes when the page is there, after
`SECONDS`, or when they take more than `MOST_MEMORY`. It is steered over a pipe, so that no port is
open.

Spec: https://chromedevtools.github.io/devtools-protocol/ (messages end with a NUL byte)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from searchloop.search_backend.fetch.client import in_thread, run
from searchloop.search_backend.fetch.fetch import OutwardSocket, Sockets, system_resolver
from searchloop.search_backend.fetch.host_check import Resolver, refuse_outside
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.fetch.ip_addresses import parse_ranges
from searchloop.search_backend.fetch.proxy import CheckedProxy
from searchloop.search_backend.fetch.url_check import check_url
from searchloop.search_backend.types import FetchFailed, NotReachable, bad_response, timed_out

SECONDS = 10.0
MOST_MEMORY = 1500 * 2**20  # bytes of all processes
MOST_HTML = 5_000_000  # characters
_MOST_HEARD = 64 * 2**20  # bytes that the browser may tell of a page
_SETTLED = 1.0  # seconds kept for taking the text
_KNOWN = tomllib.loads(Path(__file__).with_name("browser.toml").read_text("utf-8"))
# A second bar: without it no page finds the API whose packets would be UDP.
_NO_WEBRTC = "delete globalThis.RTCPeerConnection; delete globalThis.webkitRTCPeerConnection"
_PATH = f"{os.defpath}:/usr/local/bin:/snap/bin:/opt/homebrew/bin"
# Chromium looks for the two ends of its pipe at 3 and 4.
_IN_PLACE = 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null'
_HTML = _KNOWN["page"].replace("MOST", str(MOST_HTML))


class _Gone(Exception):
    """The browser ended, or it took too much."""


def fetch_rendered(
    url: str,
    command: str,
    *,
    resolve: Resolver = system_resolver,
    sockets: Sockets = OutwardSocket,
    host_allowed: Callable[[str], bool] | None = None,
    allow_ranges: Sequence[str] = (),
    seconds: float = SECONDS,
    memory: int = MOST_MEMORY,
) -> Fetched:
    """Returns the page at `url` as the browser has it once its scripts have run.

    `command` starts a Chromium, with options of the user's if there are any. Raises FetchRefused,
    FetchFailed, NotReachable; see `fetch` for the other arguments.
    """
    if os.name == "nt":
        remedy = "Use another reader."
        raise FetchFailed("browser", "The reader browser works on Linux and macOS only.", remedy)
    allow = parse_ranges(allow_ranges)
    target = check_url(url, allow=allow)
    refuse_outside(target.host, host_allowed)
    proxy = CheckedProxy(host_allowed, allow, resolve, sockets)
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = _Browser([*shlex.split(command), *_KNOWN["flags"]], profile, memory)
            work = _rendered(browser, url, target.url, proxy, seconds)
            return run(work, timeout=seconds + _SETTLED)
    except TimeoutError:
        raise timed_out(seconds) from None
    except (_Gone, OSError) as error:
        raise FetchFailed(
            "browser",
            f"The browser could not show the page ({str(error) or 'it ended'}).",
            "Check SEARCH_BROWSER, and do not run as root: Chromium's sandbox refuses that.",
        ) from error


async def _rendered(
    browser: _Browser, url: str, address: str, proxy: CheckedProxy, seconds: float
) -> Fetched:
    nowhere = CheckedProxy(lambda _host: False)  # for what the browser itself wants to send
    ends = asyncio.get_running_loop().time() + seconds
    async with proxy, nowhere, browser.started(nowhere.port), asyncio.timeout_at(ends):
        return await _page(browser, url, address, proxy, ends - _SETTLED)


class _Browser:
    """A browser with a new profile, and what it has said of the page."""

    def __init__(self, command: Sequence[str], profile: str, memory: int) -> None:
        self._command, self._profile, self._memory = command, profile, memory
        self._last = self._heard = 0
        self._why = ""
        self.session = self.frame = self.blank = ""
        self.status, self.idle = 200, False

    @contextlib.asynccontextmanager
    async def started(self, port: int) -> AsyncIterator[None]:
        """Starts it; kills it with all that it has started."""
        own = (f"--user-data-dir={self._profile}", f"--proxy-server=socks5://127.0.0.1:{port}")
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _IN_PLACE, "sh", *self._command, *own, "about:blank"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": _PATH, "HOME": self._profile, "TMPDIR": self._profile},
            limit=_MOST_HEARD,
        )
        self._process = process
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._kill()
            await watch

    async def _watch(self) -> None:
        """Returns when the browser has ended, at the latest by taking too much."""
        ended = asyncio.ensure_future(self._process.wait())
        while not ended.done():
            taken = in_thread(partial(_memory, self._process.pid))
            if await asyncio.wrap_future(taken) > self._memory:
                self._why = "it took too much memory"
                self._kill()
            await asyncio.wait([ended], timeout=0.25)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def send(self, method: str, **parameters: Any) -> int:
        """Sends a command and returns its number."""
        self._last += 1
        session = {"sessionId": self.session} if self.session else {}
        message = {"id": self._last, "method": method, "params": parameters, **session}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        return self._last

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns the result of a command. Raises _Gone."""
        number = self.send(method, **parameters)
        while (said := await self.hear()).get("id") != number:
            pass
        if "error" in said:
            raise _Gone(str(said["error"].get("message"))[:200])
        result: dict[str, Any] = said.get("result", {})
        return result

    async def hear(self) -> dict[str, Any]:
        """Returns the next message, and notes what it says of the page. Raises _Gone."""
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readuntil(b"\0")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise _Gone(self._why) from None
        self._heard += len(line)
        if self._heard > _MOST_HEARD:
            raise _Gone("it said too much")
        said: dict[str, Any] = json.loads(line[:-1])
        about = said.get("params", {})
        is_own = about.get("frameId") == self.frame
        match said.get("method"):
            case "Page.lifecycleEvent" if is_own and about["name"] == "networkIdle":
                self.idle = self.idle or about["loaderId"] != self.blank
            case "Network.responseReceived" if is_own and about.get("type") == "Document":
                self.status = int(about["response"]["status"])
            case "Page.javascriptDialogOpening":
                self.send("Page.handleJavaScriptDialog", accept=False)
        return said


async def _page(
    browser: _Browser, url: str, address: str, proxy: CheckedProxy, until: float
) -> Fetched:
    """Returns the page once it loads nothing any more, or as it is at `until`."""
    apart = await browser.call(
        "Target.createBrowserContext",
        proxyServer=f"socks5://127.0.0.1:{proxy.port}",
        proxyBypassList="<-loopback>",
    )
    await browser.call("Browser.setDownloadBehavior", behavior="deny", **apart)
    made = await browser.call("Target.createTarget", url="about:blank", **apart)
    target = await browser.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
    browser.session = str(target["sessionId"])
    for method in ("Page.enable", "Network.enable"):
        await browser.call(method)
    await browser.call("Page.setLifecycleEventsEnabled", enabled=True)
    await browser.call("Page.addScriptToEvaluateOnNewDocument", source=_NO_WEBRTC)
    blank = (await browser.call("Page.getFrameTree"))["frameTree"]["frame"]
    browser.frame, browser.blank = str(blank["id"]), str(blank["loaderId"])
    begun = await browser.call("Page.navigate", url=address)
    if begun.get("errorText"):
        if proxy.refused:
            raise NotReachable(f"{address}: {begun['errorText']}")
        raise bad_response(check_url(address).host)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            while not browser.idle:
                await browser.hear()
    shown = (await browser.call("Page.getFrameTree"))["frameTree"]["frame"]
    # A world of our own: the page's scripts cannot change what is read there.
    world = await browser.call("Page.createIsolatedWorld", frameId=browser.frame)
    taken = await browser.call(
        "Runtime.evaluate", expression=_HTML, contextId=world["executionContextId"]
    )
    html = str(taken.get("result", {}).get("value", ""))
    final = check_url(str(shown["url"]), allow=proxy.allow).url
    body = html.encode("utf-8", "replace")
    is_part = len(html) >= MOST_HTML
    return Fetched(url, final, browser.status, "text/html", "utf-8", body, is_part)


def _memory(group: int) -> int:
    """Returns the bytes in memory of a process group; 0 where the system does not tell."""
    pages = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")
