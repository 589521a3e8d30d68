"""Opens a page in the user's own Chromium, for pages that scripts write.

The browser reaches the web through `CheckedProxy` alone: it looks no name up, bypasses no proxy,
not even for loopback, and speaks neither QUIC nor WebRTC. It has a new profile in a temporary
folder, downloads nothing, and is killed with all its processes when the page is there, after
`SECONDS`, or when they take more than `MOST_MEMORY`. It is steered over a pipe, so that no port is
open.

Spec: https://chromedevtools.github.io/devtools-protocol/ (messages end with a NUL byte)
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchloop.search_backend.fetch.client import run
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
_IN_PLACE = (
    "import fcntl, os, sys; "
    "ends = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
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
    nowhere = CheckedProxy(lambda _host: False)  # for what the browser itself wants to send
    run(proxy.start(), timeout=seconds)
    run(nowhere.start(), timeout=seconds)
    try:
        with _browser(command, nowhere.port) as browser:
            browser.ends, browser.memory = time.monotonic() + seconds, memory
            return _page(browser, url, target.url, proxy)
    except TimeoutError:
        raise timed_out(seconds) from None
    except (_Gone, OSError) as error:
        raise FetchFailed(
            "browser",
            f"The browser could not show the page ({str(error) or 'it ended'}).",
            "Check SEARCH_BROWSER, and do not run as root: Chromium's sandbox refuses that.",
        ) from error
    finally:
        run(proxy.close(), timeout=seconds)
        run(nowhere.close(), timeout=seconds)


@dataclass(slots=True)
class _Browser:
    """A running browser, and what it has said so far."""

    process: subprocess.Popen[bytes]
    write: int
    read: int
    ends: float = 0.0
    memory: int = MOST_MEMORY
    lines: deque[bytes] = field(default_factory=deque)
    rest: bytes = b""
    heard: int = 0
    last: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its result. Raises TimeoutError, _Gone."""
        self.last += 1
        message: dict[str, Any] = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            said = self.hear(self.ends)
            if said.get("id") == message["id"]:
                if "error" in said:
                    raise _Gone(str(said["error"].get("message"))[:200])
                result: dict[str, Any] = said.get("result", {})
                return result
            self.events.append(said)

    def hear(self, until: float) -> dict[str, Any]:
        """Returns the next message. Raises TimeoutError at `until`, _Gone."""
        while not self.lines:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready, _, _ = select.select([self.read], [], [], min(left, 0.25))
            if _memory(self.process.pid) > self.memory:
                raise _Gone("it took too much memory")
            if ready:
                piece = os.read(self.read, 1 << 20)
                self.heard += len(piece)
                if not piece or self.heard > _MOST_HEARD:
                    raise _Gone("it said too much" if piece else "")
                *whole, self.rest = (self.rest + piece).split(b"\0")
                self.lines.extend(whole)
        said: dict[str, Any] = json.loads(self.lines.popleft())
        return said


@contextlib.contextmanager
def _browser(command: str, port: int) -> Iterator[_Browser]:
    """Starts a browser with a new profile; kills it with all that it has started."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        pipes = [*os.pipe(), *os.pipe()]
        theirs = (pipes[0], pipes[3])
        own = [f"--user-data-dir={profile}", f"--proxy-server=socks5://127.0.0.1:{port}"]
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-c", _IN_PLACE, *map(str, theirs)),
                *(*shlex.split(command), *_KNOWN["flags"], *own, "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=theirs,
            start_new_session=True,
            env={"PATH": _PATH, "HOME": profile, "TMPDIR": profile},
        )
        for end in theirs:
            os.close(end)
        try:
            yield _Browser(process, pipes[1], pipes[2])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(pipes[1])
            os.close(pipes[2])


def _page(browser: _Browser, url: str, address: str, proxy: CheckedProxy) -> Fetched:
    apart = browser.call(
        "Target.createBrowserContext",
        proxyServer=f"socks5://127.0.0.1:{proxy.port}",
        proxyBypassList="<-loopback>",
    )
    browser.call("Browser.setDownloadBehavior", behavior="deny", **apart)
    made = browser.call("Target.createTarget", url="about:blank", **apart)
    session = browser.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
    name = str(session["sessionId"])
    for method in ("Page.enable", "Network.enable"):
        browser.call(method, name)
    browser.call("Page.setLifecycleEventsEnabled", name, enabled=True)
    browser.call("Page.addScriptToEvaluateOnNewDocument", name, source=_NO_WEBRTC)
    blank = browser.call("Page.getFrameTree", name)["frameTree"]["frame"]["loaderId"]
    begun = browser.call("Page.navigate", name, url=address)
    if begun.get("errorText"):
        if proxy.refused:
            raise NotReachable(f"{address}: {begun['errorText']}")
        raise bad_response(check_url(address).host)
    frame = str(begun["frameId"])
    _settle(browser, name, frame, str(blank))
    shown = browser.call("Page.getFrameTree", name)["frameTree"]["frame"]
    # A world of our own: the page's scripts cannot change what is read there.
    world = browser.call("Page.createIsolatedWorld", name, frameId=frame)["executionContextId"]
    taken = browser.call("Runtime.evaluate", name, expression=_HTML, contextId=world)
    html = str(taken.get("result", {}).get("value", ""))
    final = check_url(str(shown["url"]), allow=proxy.allow).url
    status = _status(browser.events, frame)
    truncated = len(html) >= MOST_HTML
    body = html.encode("utf-8", "replace")
    return Fetched(url, final, status, "text/html", "utf-8", body, truncated)


def _settle(browser: _Browser, session: str, frame: str, blank: str) -> None:
    """Waits until the page loads nothing any more, or its time is over."""
    until, seen = browser.ends - _SETTLED, 0
    with contextlib.suppress(TimeoutError):
        while True:
            new, seen = browser.events[seen:], len(browser.events)
            if any(_idle(event, frame, blank) for event in new):
                return
            if any(event.get("method") == "Page.javascriptDialogOpening" for event in new):
                with contextlib.suppress(_Gone):  # it may be closed by now
                    browser.call("Page.handleJavaScriptDialog", session, accept=False)
            browser.events.append(browser.hear(until))


def _idle(event: dict[str, Any], frame: str, blank: str) -> bool:
    about = event.get("params", {})
    is_end = event.get("method") == "Page.lifecycleEvent" and about.get("name") == "networkIdle"
    return is_end and about.get("frameId") == frame and about.get("loaderId") != blank


def _status(events: Sequence[dict[str, Any]], frame: str) -> int:
    """Returns the status of the last document of the page's own frame."""
    told = [
        event["params"]["response"]["status"]
        for event in events
        if event.get("method") == "Network.responseReceived"
        and event["params"].get("type") == "Document"
        and event["params"].get("frameId") == frame
    ]
    return int(told[-1]) if told else 200


def _memory(group: int) -> int:
    """Returns the bytes in memory of a process group; 0 where the system does not tell."""
    pages = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")
