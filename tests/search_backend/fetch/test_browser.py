"""The reader `browser`: what scripts write is read, and no request gets past the guard."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from searchloop.search_backend.fetch.browser import fetch_rendered
from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.ip_addresses import why_refused
from searchloop.search_backend.fetch.proxy import CheckedProxy
from searchloop.search_backend.pages.reading import Reading, read_fetched
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.readers.services.browser import SERVICE
from searchloop.search_backend.types import FetchFailed, FetchRefused, Page
from tests.conftest import linux_only
from tests.search_backend.fetch.test_addresses import REFUSED
from tests.search_backend.hostile import PUBLIC, Internet, answer, serving
from tests.tables import each_row
from tests.waiting import LATE, until

URL = "http://page.example/"


@contextmanager
def proxied(net: Internet, **rules: object) -> Iterator[CheckedProxy]:
    """A running proxy to this internet."""
    proxy = CheckedProxy(resolve=net.resolve, sockets=net.sockets, **rules)  # type: ignore[arg-type]
    run(proxy.__aenter__(), timeout=LATE)
    yield proxy
    run(proxy.__aexit__(), timeout=LATE)


def told(proxy: CheckedProxy, request: bytes) -> bytes:
    """Everything that comes back for these bytes, until the proxy hangs up."""
    with socket.create_connection(("127.0.0.1", proxy.port), LATE) as link:
        link.settimeout(LATE)
        link.sendall(request)
        return b"".join(iter(lambda: link.recv(65_536), b""))


def wanting(host: str, port: int = 443) -> bytes:
    """What a browser says that wants a connection to a host."""
    name = host.encode("latin-1")
    return b"\5\1\0\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2)


def bracketed(address: str) -> str:
    """The address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address


GREETED, REFUSAL = b"\5\0", b"\5\0\5\2\0\1" + bytes(6)


@pytest.mark.parametrize("port", [80, 443])
def test_the_proxy_refuses_every_denied_address(port: int) -> None:
    """Written as an address or as a name that leads there: nobody is connected to."""
    # A resolver may give an address of a translator (64:ff9b::8.8.8.8) to a public server.
    lead_there = [address for address in REFUSED if why_refused(address, resolved=True)]
    names = {f"n{n}.example": (address,) for n, address in enumerate(lead_there)}
    net = Internet(9, names)
    hosts = (*REFUSED, *names, "localhost", "printer.local", "2130706433")
    with proxied(net) as proxy:
        for host in hosts:
            assert told(proxy, wanting(host, port)) == REFUSAL, host
        assert proxy.refused == [*hosts]
    assert net.connected == []


def test_the_proxy_connects_to_what_is_allowed() -> None:
    """The name is looked up once, and the bytes pass as they are."""
    with serving({"/a?b=1": answer(b"Tea")}) as server:
        net = Internet(server.port)
        with proxied(net) as proxy:
            request = b"GET /a?b=1 HTTP/1.1\r\nHost: page.example\r\n\r\n"
            got = told(proxy, wanting("page.example", 80) + request)
    assert got == b"\5\0\5\0\0\1" + bytes(6) + answer(b"Tea")
    assert server.requests == [request]
    assert (net.looked_up, net.connected) == (["page.example"], [(PUBLIC, 80)])


@each_row(
    ("request_", "said"),
    [
        (b"GET http://page.example/ HTTP/1.1\r\n\r\n" + b"x" * 99, GREETED),
        (b"\5\0", GREETED),
        (b"\5\1\0\5\1\0\1\x5d\xb8\xd8\x22\0\x50", GREETED),  # an address in bytes
        (b"\5\1\0\5\2\0\3\1a\0\x50", GREETED),  # a port to listen on
        (wanting("page.example", 22), REFUSAL),
        (wanting("a.example@127.0.0.1"), REFUSAL),
        (wanting("a.example/\r\nHost: b"), REFUSAL),
        (wanting(""), REFUSAL),
        (wanting("\xff\0"), REFUSAL),
        (wanting("x" * 255), REFUSAL),
    ],
)
def test_the_proxy_bears_anything(request_: bytes, said: bytes) -> None:
    """Nothing is sent to anybody, and the connection ends."""
    with serving({}) as server, proxied(Internet(server.port)) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), LATE) as link:
            link.settimeout(LATE)
            link.sendall(request_)
            link.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):  # where it was not read to its end
                assert b"".join(iter(lambda: link.recv(99), b"")) == said
        assert server.requests == []


def test_the_proxy_keeps_rules_for_domains() -> None:
    """A blocked site is none of the requests of a page either."""
    net = Internet(9)
    with proxied(net, host_allowed=lambda host: host != "bad.example") as proxy:
        assert told(proxy, wanting("bad.example")) == REFUSAL
    assert (net.looked_up, net.connected) == ([], [])


def test_an_address_that_the_guard_refuses_starts_no_browser() -> None:
    """Neither does one outside the rules."""
    for url in ("http://127.0.0.1/", "file:///etc/passwd", "http://[::1]/", "chrome://gpu"):
        with pytest.raises(FetchRefused):
            fetch_rendered(url, "/no/such/browser")
    with pytest.raises(FetchRefused):
        fetch_rendered(URL, "/no/such/browser", host_allowed=lambda host: False)


def test_a_browser_that_does_not_start_is_said_so() -> None:
    """With the setting to look at."""
    with pytest.raises(FetchFailed, match="could not show the page") as caught:
        fetch_rendered(URL, "/bin/false", resolve=lambda host, port: [PUBLIC])
    assert caught.value.code == "browser"
    assert "SEARCH_BROWSER" in caught.value.remedy


# From here on a real Chromium.

TEXT = "The harbour bridge was opened in 1932 and carries eight lanes of traffic and two of rail."
# How scripts bring a text onto a page; TEXT is its JSON, /text.json and /module.js hold it too.
WAYS = (
    "setTimeout(() => { out.textContent = TEXT }, 200)",
    "fetch('/text.json').then(r => r.json()).then(j => { out.textContent = j.text })",
    "import('/module.js').then(m => out.append(m.text))",
    "class S extends HTMLElement { connectedCallback() { this.attachShadow({mode: 'open'})"
    ".innerHTML = '<p>' + TEXT + '</p>' } }; customElements.define('s-s', S); "
    "out.append(document.createElement('s-s'))",
    "const w = new Worker(URL.createObjectURL(new Blob(['postMessage(' + JSON.stringify(TEXT) + "
    "')']))); w.onmessage = e => out.append(e.data)",
    "if (!location.search) location.replace('/?two'); else out.append(TEXT)",
)


def shell(way: str) -> dict[str, bytes]:
    """A site whose page holds a script and no text."""
    words = json.dumps(TEXT)
    code = way.replace("TEXT", words)
    page = f"<!doctype html><title>Page</title><main id=out></main><script>{code}</script>"
    return {
        **dict.fromkeys(("/", "/?two"), answer(page.encode())),
        "/text.json": answer(json.dumps({"text": TEXT}).encode(), kind="application/json"),
        "/module.js": answer(f"export const text = {words}".encode(), kind="text/javascript"),
    }


@pytest.fixture(scope="session")
def command(headless: str) -> str:
    """The system's Chromium, which in a container is started without its own sandbox."""
    return f"{headless} --no-sandbox" if os.geteuid() == 0 else headless


@pytest.fixture(scope="session")
def whole_command(chromium: str) -> str:
    """The same with all that a user's has, and that could reach somebody."""
    return f"{chromium} --no-sandbox" if os.geteuid() == 0 else chromium


def rendered(command: str, net: Internet, seconds: float = LATE, **options: object) -> Page:
    """The page as a reader gives it."""
    fetched = fetch_rendered(
        *(URL, command),
        resolve=net.resolve,
        sockets=net.sockets,
        seconds=seconds,
        **options,  # type: ignore[arg-type]
    )
    return read_fetched(fetched)


@pytest.mark.integration
def test_pages_that_need_scripts_are_read(command: str) -> None:
    """However scripts write a text: by a timer, a module, a worker, on another address."""

    def text(way: str) -> str:
        with serving(shell(way)) as server:
            return rendered(command, Internet(server.port)).text

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(text, WAYS)] == [TEXT] * len(WAYS)


class Ear:
    """Listens on this machine by TCP and UDP, and counts whoever comes."""

    def __init__(self) -> None:
        self.heard = 0
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for wait in (self._tcp.accept, lambda: self._udp.recvfrom(99)):
            threading.Thread(target=self._listen, args=(wait,), daemon=True).start()

    def _listen(self, wait: object) -> None:
        try:
            wait()  # type: ignore[operator]
            self.heard += 1
        except OSError:
            pass

    def close(self) -> None:
        """Stops listening."""
        for end in (self._tcp, self._udp):
            end.close()


# A page that tries to reach HOST in every way there is.
EVERY_WAY = """<!doctype html><title>x</title>
<link rel=preconnect href=//HOST><link rel=dns-prefetch href=//HOST>
<link rel=prefetch href=http://HOST/p><link rel=stylesheet href=http://HOST/s.css>
<link rel=icon href=http://HOST/i.ico><link rel=manifest href=http://HOST/m.json>
<link rel=modulepreload href=http://HOST/m.js><script src=http://HOST/s.js></script>
<style>body{background:url(http://HOST/b.png)}@font-face{font-family:f;src:url(http://HOST/f)}
p{font-family:f}</style><p>x<img src=http://HOST/i.png srcset="https://HOST/i2.png 2x">
<iframe src=http://HOST/frame></iframe><iframe srcdoc="<img src=http://HOST/inner>"></iframe>
<object data=http://HOST/o></object><embed src=http://HOST/e><video src=http://HOST/v></video>
<audio src=http://HOST/a></audio><form id=f action=http://HOST/form target=t></form>
<a id=a href=http://HOST/link ping=http://HOST/ping target=u>x</a><iframe name=t></iframe>
<script>
const go = f => { try { Promise.resolve(f()).catch(() => {}) } catch { } };
go(() => fetch('http://HOST/fetch', {mode: 'no-cors'}));
go(() => fetch('https://HOST/tls', {mode: 'no-cors', keepalive: true}));
go(() => { const x = new XMLHttpRequest(); x.open('POST', 'http://HOST/xhr'); x.send('x') });
go(() => new WebSocket('ws://HOST/ws')); go(() => new WebSocket('wss://HOST/wss'));
go(() => new EventSource('http://HOST/events')); go(() => navigator.sendBeacon('http://HOST/b'));
go(() => new Worker(URL.createObjectURL(new Blob(["importScripts('http://HOST/w.js')"]))));
go(() => new Worker(URL.createObjectURL(new Blob(["fetch('http://HOST/wf')"]))));
go(() => import('http://HOST/mod.js')); go(() => window.open('http://HOST/popup'));
go(() => new Image().src = 'http://HOST/image'); go(() => f.submit()); go(() => a.click());
go(() => { const c = new RTCPeerConnection({iceServers: [{urls: 'stun:HOST'}]});
  c.createDataChannel('x'); return c.createOffer().then(o => c.setLocalDescription(o)) });
go(() => new WebTransport('https://HOST/wt'));
</script>"""


@pytest.mark.integration
def test_no_part_of_a_page_reaches_a_denied_address(whole_command: str) -> None:
    """Every denied address as an image, and this machine in each way a page has, also as a name:
    nothing is connected to but the page's own server."""
    ear = Ear()
    here = (f"127.0.0.1:{ear.port}", "169.254.169.254", "inner.example")
    images = "".join(f"<img src=http://{bracketed(a)}/i{n}>" for n, a in enumerate(REFUSED))
    pages = [answer(EVERY_WAY.replace("HOST", host).encode()) for host in here]
    pages.append(answer(f"<!doctype html><title>x</title>{images}".encode()))
    for page in pages:
        with serving({"/": page}) as server:
            net = Internet(server.port, {"page.example": (PUBLIC,), "inner.example": ("10.0.0.1",)})
            rendered(whole_command, net, 8.0)
            assert {address for address, _ in net.connected} == {PUBLIC}
            assert set(net.looked_up) <= {"page.example", "inner.example"}
            own = {request.split(b" ")[1] for request in server.requests}
            assert own <= {b"/", b"/favicon.ico"}
    ear.close()
    assert ear.heard == 0


@pytest.mark.integration
@pytest.mark.parametrize(
    "leads",
    [
        "<meta http-equiv=refresh content='0;url=http://{}/'>",
        "<script>location = 'http://{}/'</script>",
        "<script>location.replace('https://{}/')</script>",
        "<form action=http://{}/ id=f></form><script>f.submit()</script>",
    ],
)
def test_a_page_cannot_lead_to_a_denied_address(command: str, leads: str) -> None:
    """Navigation is checked like any other request."""
    ear = Ear()
    body = leads.format(f"127.0.0.1:{ear.port}")
    with serving({"/": answer(f"<title>x</title><p>Here.{body}".encode())}) as server:
        net = Internet(server.port)
        with pytest.raises((FetchRefused, FetchFailed)):
            rendered(command, net, 8.0)
        assert {address for address, _ in net.connected} == {PUBLIC}
    ear.close()
    assert ear.heard == 0


@pytest.mark.integration
def test_the_reader_browser_gives_pages(whole_command: str) -> None:
    """As one of the chain of readers."""
    with serving(shell(WAYS[1])) as server:
        net = Internet(server.port)
        opened = partial(
            fetch_rendered,
            command=whole_command,
            resolve=net.resolve,
            sockets=net.sockets,
            seconds=LATE,
        )
        services = {"browser": replace(SERVICE, fetch=opened)}
        calls = ServiceCalls({})
        reading = Reading(opened, lambda url, **_: url, services, calls.read, ("browser",))
        page = reading.page(URL)
    assert (page.reader, page.status) == ("browser", "ok")
    assert page.text == TEXT


def group_of(marker: str) -> list[int]:
    """The processes whose command line names this."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.integration
@linux_only
@pytest.mark.parametrize(
    ("body", "options", "code"),
    [
        ("<script>for (;;) {}</script>", {"seconds": 5.0}, "timeout"),
        ("<script>alert(1); confirm(2)</script><p>x", {"seconds": 6.0}, None),
        ("<p>x", {"seconds": LATE, "memory": 2**20}, "browser"),
    ],
)
def test_a_page_that_takes_too_much_is_killed(
    command: str, body: str, options: dict[str, object], code: str | None
) -> None:
    """A loop without end, questions without an answer, too much memory: no process is left."""
    marked = f"{command} --searchloop-test={os.getpid()}"
    with serving({"/": answer(f"<title>x</title>{body}".encode())}) as server:
        net = Internet(server.port)
        if code is None:
            assert rendered(marked, net, **options).status == "ok"  # type: ignore[arg-type]
        else:
            with pytest.raises(FetchFailed) as caught:
                rendered(marked, net, **options)  # type: ignore[arg-type]
            assert caught.value.code == code
    # The kernel ends a killed process a moment after the signal.
    until(lambda: not group_of(f"--searchloop-test={os.getpid()}"), LATE)


@pytest.mark.integration
@linux_only
@each_row(
    "script",
    [
        "debugger; print(); prompt('x')",
        "onbeforeunload = () => 'stay'; setInterval(() => open('/'), 1)",
        "document.title = 'x'.repeat(1e8); for (let n = 0; n < 1e5; n++) console.log('x' + n)",
        "for (let n = 0; n < 400; n++) new Image().src = `http://n${n}.example/`",
        "for (let n = 0; n < 40; n++) new Worker(URL.createObjectURL(new Blob(['for(;;);'])))",
        "Object.defineProperty(document, 'documentElement', {get: () => { throw 1 }})",
        "document.body.innerHTML = '<i>'.repeat(1e6)",
    ],
)
def test_a_page_that_means_harm_ends(command: str, script: str) -> None:
    """A page or one of our errors in its time, and no process is left."""
    marked = f"{command} --searchloop-harm={os.getpid()}"
    body = f"<title>x</title><p>Here.</p><script>{script}</script>"
    with serving({"/": answer(body.encode())}) as server, suppress(FetchFailed):
        page = rendered(marked, Internet(server.port), 6.0)
        assert len(page.text) < 10**7
    until(lambda: not group_of(f"--searchloop-harm={os.getpid()}"), LATE)


@pytest.mark.integration
def test_nothing_is_downloaded(command: str, tmp_path: Path) -> None:
    """An attachment is no page."""
    attached = answer(b"x" * 1000, "Content-Disposition: attachment; filename=a.bin", kind="x/y")
    with serving({"/": attached}) as server, pytest.raises(FetchFailed):
        rendered(command, Internet(server.port))
    assert list(tmp_path.iterdir()) == []
