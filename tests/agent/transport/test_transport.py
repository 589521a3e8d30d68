"""Transport: bytes over a real socket, and every way in which that can fail."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import AgentError, ConfigError, IncompleteError, ProviderError
from searchloop.agent.transport.pool import no_certificates
from searchloop.agent.transport.transport import Timeouts, Transport
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.ports import closed_port
from tests.tables import each_row

CERTIFICATE = Path(__file__).parents[2] / "search_backend" / "data" / "ca.pem"
KEY = "sk-canary-0123456789abcdef"
HEADERS = {"authorization": f"Bearer {KEY}"}
Work = Callable[[Transport], Awaitable[Any]]


def run(work: Work, timeouts: Timeouts | None = None) -> Any:
    """`work` with a transport of its own, on a loop of its own."""

    async def main() -> Any:
        async with aclosing(Transport(timeouts)) as transport:
            return await work(transport)

    return asyncio.run(main())


async def fetch(transport: Transport, url: str) -> tuple[int, bytes]:
    async with transport.post(url, HEADERS, b"{}") as response:
        return response.status, b"".join([piece async for piece in response])


def failure(url: str, timeouts: Timeouts | None = None) -> AgentError:
    """The error of one request."""
    with pytest.raises(AgentError) as caught:
        run(lambda transport: fetch(transport, url), timeouts)
    return caught.value


def test_a_body_arrives_as_it_was_cut() -> None:
    """Pieces come one by one; the request is JSON with our headers, uncompressed."""
    with FakeServer([Reply([b"one", b"two"], headers={"X-Thing": "y"})]) as server:

        async def work(transport: Transport) -> tuple[str, bytes]:
            async with transport.post(f"{server.url}/v1/x?y=1", HEADERS, b'{"a":1}') as response:
                return response.headers["x-thing"], await response.read()

        assert run(work) == ("y", b"onetwo")
    request = server.requests[0]
    assert (request.method, request.path, request.json) == ("POST", "/v1/x?y=1", {"a": 1})
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/v1/%7Eone/../a%2Fb//c:d", "/v1/", "/v1/x?q=%20a+b&&r", "/v1?"])
def test_an_address_is_used_as_it_was_given(path: str) -> None:
    """Nothing is decoded, resolved or tidied on the way."""
    with FakeServer([Reply([b"x"])]) as server:
        run(lambda t: fetch(t, f"{server.url.replace('://', '://user:word@')}{path}#part"))
    assert server.requests[0].path == path.removesuffix("?")
    assert server.requests[0].headers["host"] == server.url.removeprefix("http://")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("path", ["/a b\r\nX: y", "/\u00e9"])
def test_what_http_forbids_in_an_address_is_quoted(path: str) -> None:
    """An address cannot end its line and begin a header."""
    with FakeServer([Reply([b"x"])]) as server:
        run(lambda t: fetch(t, server.url + path))
    assert server.requests[0].path in ("/a%20bX:%20y", "/%C3%A9")
    assert "x" not in server.requests[0].headers


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip"])
def test_an_answer_that_nobody_wanted_compressed(coding: str) -> None:
    """Nobody can tell its end from a cut: it is refused in a sentence of its own."""
    reply = Reply(b"\x1f\x8b\x08", headers={"content-encoding": coding})
    with FakeServer([reply]) as server:
        found = failure(server.url)
    assert (found.code, found.retryable) == ("bad_response", False)
    assert "compressed" in found.message
    with FakeServer([Reply(b"x", headers={"content-encoding": "Identity"})]) as server:
        assert run(lambda transport: fetch(transport, server.url)) == (200, b"x")


async def test_a_connection_is_used_again() -> None:
    """Also when the caller stopped reading at the event it was waiting for."""
    with FakeServer(lambda _: Reply([b"first", b"last"])) as server:
        async with aclosing(Transport()) as transport:
            await fetch(transport, server.url)
            async with transport.post(server.url, HEADERS, b"") as response:
                assert await anext(response)
            await fetch(transport, server.url)
    assert len({request.connection for request in server.requests}) == 1


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"


@each_row(
    "head",
    [
        IN_CHUNKS.replace(b"\r\n", b"\r\nContent-Length: 3\r\n", 1),
        IN_CHUNKS.replace(b"1.1", b"1.0"),
        WHOLE.replace(b"\r\n", b"\r\nContent-Length: 4\r\n", 1),
        WHOLE.replace(b": 3", b": +3"),
        WHOLE.replace(b": 3", b": 3\rX: y"),
        WHOLE.replace(b": 3", b": 3\0"),
        WHOLE.replace(b"\r\n", b"\r\nTransfer-Encoding: identity\r\n", 1),
        IN_CHUNKS.replace(b"chunked", b"\x0bchunked"),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\none",
        IN_CHUNKS.replace(b"chunked", b"gzip, chunked"),
        *(IN_CHUNKS.replace(b"3\r", odd + b"\r") for odd in (b"+3", b"0x3", b"3_0", b" 3", b"-3")),
        IN_CHUNKS.replace(b"3\r", b"3" * 30 + b"\r"),
    ],
)
def test_an_answer_that_ends_in_two_places_is_none(head: bytes) -> None:
    """Others on the way may have read it otherwise."""
    with FakeServer([Reply(head, raw=True)]) as server:
        assert failure(server.url).code == "bad_response"


def test_a_head_without_end_ends() -> None:
    """Interim answers keep a connection alive, but nobody waiting for ever."""
    hints = [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100] * 1_000_000
    with FakeServer([Reply(hints, raw=True)]) as server:
        assert failure(server.url, Timeouts(head=0.2)).code == "timeout"
    fields = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000
    with FakeServer([Reply(fields, raw=True)]) as server:
        assert failure(server.url).code == "bad_response"


SHORT = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"
FAULTS = {
    "closed before the answer": (Reply(before="cut"), "connection_lost"),
    "reset before the answer": (Reply(before="reset"), "connection_lost"),
    "closed inside the headers": (Reply(b"HTTP/1.1 200 OK\r\nx-", raw=True), "connection_lost"),
    "cut inside the body": (Reply([b"data: 1\n\n"], end="cut"), "incomplete"),
    "reset inside the body": (Reply([b"data: 1\n\n"], end="reset"), "incomplete"),
    "shorter than announced": (Reply(SHORT, raw=True), "incomplete"),
    "not HTTP": (Reply(b"220 mail.example ESMTP\r\n\r\n", raw=True), "bad_response"),
    "broken chunking": (Reply(IN_CHUNKS.replace(b"3\r", b"zz\r"), raw=True), "bad_response"),
    "a redirect": (Reply((), 307, {"location": "http://127.0.0.1:9/elsewhere"}), "bad_response"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_error(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """One typed error names the origin, says whether a retry helps, and holds no key."""
    caplog.set_level(logging.DEBUG)
    reply, code = FAULTS[name]
    with FakeServer([reply]) as server:
        error = failure(f"{server.url}/v1/private?key={KEY}")
    assert isinstance(error, ProviderError)
    assert (error.code, error.retryable) == (code, code != "bad_response")
    assert isinstance(error, IncompleteError) == (code == "incomplete")
    assert server.url in error.message
    assert error.remedy
    chain: BaseException | None = error
    while chain is not None:
        assert KEY not in repr(chain)
        assert "private" not in str(chain)
        chain = chain.__cause__ or chain.__context__
    assert f"Bearer {KEY}" not in caplog.text


def test_https_to_a_plain_server() -> None:
    """A failed TLS handshake is not a network problem, and no retry helps."""
    with FakeServer([Reply([b"x"])]) as server:
        error = failure(server.url.replace("http://", "https://"))
    assert isinstance(error, ProviderError)
    assert (error.code, error.retryable) == ("tls", False)


@pytest.mark.parametrize("reply", [Reply(before="stall"), Reply([b"x"], end="stall")])
def test_silence_ends(reply: Reply) -> None:
    """A server that falls silent is given up after the read timeout, before and after headers."""
    with FakeServer([reply]) as server:
        error = failure(server.url, Timeouts(read=0.05))
        assert server.requests[0].gone.wait(90)
    assert isinstance(error, ProviderError)
    assert (error.code, error.retryable) == ("timeout", False)


@each_row("url", ["ftp://127.0.0.1/", "127.0.0.1:11434", "http://", "http://[::1/"])
def test_what_is_no_address(url: str) -> None:
    """A wrong address is the user's to correct."""
    assert failure(url).code == "bad_url"


@each_row("value", [f"{KEY}\n", f" {KEY}", f"{KEY}\u201d", ""])
def test_what_is_no_key(value: str) -> None:
    """A mangled key is the user's to correct, and is not shown."""

    async def work(transport: Transport) -> None:
        async with transport.post("http://127.0.0.1/", {"x-key": value}, b""):
            pass

    with pytest.raises(ConfigError) as caught:
        run(work)
    assert caught.value.code == "bad_header"
    assert KEY not in repr(caught.value)


def test_this_machine_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local model is reached although a proxy is set that cannot know it."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    with FakeServer([Reply([b"direct"])]) as server:
        assert run(lambda t: fetch(t, server.url)) == (200, b"direct")


@pytest.mark.parametrize(
    "address",
    [
        *("gopher://user:secret@127.0.0.1:1", "http://user:secret@", "http://secret:99999"),
        *("http://[secret", "http://secret:abc", " http://secret:1", "://secret"),
        *("socks5://secret:1", "socks5h://user:secret@127.0.0.1:1"),
    ],
)
def test_a_proxy_address_that_is_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named without its password."""
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "")
    error = failure("http://model.invalid/v1")
    assert error.code == "bad_proxy"
    assert "secret" not in repr(error)
    assert error.__cause__ is None


@pytest.mark.parametrize("name", ["nowhere", "", "empty.pem"])
def test_certificates_that_are_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the setting and what it says, and a server without TLS is still asked."""
    (tmp_path / "empty.pem").write_text("none\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
    error = failure("https://model.invalid/v1")
    assert error.code == "bad_certificates"
    assert error.message.startswith(f"SSL_CERT_FILE names '{tmp_path}")
    with FakeServer([Reply([b"plain"])]) as server:
        assert run(lambda t: fetch(t, server.url)) == (200, b"plain")


async def test_a_short_answer() -> None:
    """Status and body, whatever they are; one limit of time for all of it."""

    def answer(request: Received) -> Reply:
        return Reply(before="stall") if request.path == "/slow" else json_reply(request.json, 503)

    with FakeServer(answer) as server:
        async with aclosing(Transport()) as transport:
            assert await transport.fetch(server.url, HEADERS, b"[1]", "POST") == (503, b"[1]")
            with pytest.raises(ProviderError) as caught:
                await transport.fetch(f"{server.url}/slow", timeout=0.2)
    assert (caught.value.code, caught.value.retryable) == ("timeout", False)


def test_only_https_reads_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes longer than a local answer: the HTTP library is imported without them. A context
    that another thread makes meanwhile has its certificates all the same."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    found = []

    def count() -> None:
        found.append(ssl.create_default_context().cert_store_stats()["x509"])

    with no_certificates():
        count()
        (other := threading.Thread(target=count)).start()
        other.join()
    count()
    assert found == [0, 1, 1]
