"""The guard at work: one look-up a hop, checked addresses only, every redirect checked again."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.fetch import OutwardSocket, fetch
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.fetch.ip_addresses import why_refused
from searchloop.search_backend.types import (
    FetchFailed,
    FetchRefused,
    NotReachable,
    SearchBackendError,
    SettingError,
)
from tests.search_backend.hostile import (
    DATA,
    HANG,
    LIMITS,
    PUBLIC,
    HostileServer,
    Internet,
    answer,
    canned,
    redirect,
    serving,
)
from tests.tables import each_row

PAGE = answer(b"<p>hello</p>", "Content-Length: 12", kind="text/html; charset=UTF-8")


@pytest.fixture
def server() -> Iterator[HostileServer]:
    """A server with one page; tests add routes."""
    with serving({"/": PAGE}) as running:
        yield running


@pytest.fixture(scope="module")
def trust() -> ssl.SSLContext:
    """Trust in the authority that signed the test server's certificate, and in no other."""
    return ssl.create_default_context(cafile=str(DATA / "ca.pem"))


def test_a_page_comes_with_what_the_server_said_about_it(server: HostileServer) -> None:
    """Status, type, charset, body and the headers a reader may want."""
    net = Internet(server.port)
    page = net.fetch("http://Example.COM./#top")
    assert (page.url, page.final_url) == ("http://Example.COM./#top", "http://example.com/")
    assert (page.status, page.content_type, page.charset) == (200, "text/html", "utf-8")
    assert (page.body, page.truncated, page.cut, page.redirects) == (b"<p>hello</p>", False, "", ())
    assert page.headers == {"content-type": "text/html; charset=UTF-8"}
    assert net.looked_up == ["example.com"]
    assert net.connected == [(PUBLIC, 80)]


def test_a_request_says_nothing_about_the_user(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """These lines and no others go out, whatever proxies and passwords the environment holds."""
    (tmp_path / ".netrc").write_text("machine example.com login me password secret\n")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9/")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HOME", str(tmp_path))
    net = Internet(server.port)
    server.routes["/a?b=%C3%BC"] = PAGE
    net.fetch("http://example.com:8080/a?b=ü")
    first, *lines = server.requests[0].decode().split("\r\n")
    agent = next(line for line in lines if line.startswith("User-Agent: "))
    assert agent == "User-Agent: searchloop (+local)"
    assert first == "GET /a?b=%C3%BC HTTP/1.1"
    assert sorted(lines) == [
        "",
        "",
        "Accept-Encoding: gzip, deflate, br",
        "Accept: text/html,application/xhtml+xml,text/*;q=0.9,application/*;q=0.8,*/*;q=0.1",
        "Connection: close",
        "Host: example.com:8080",
        agent,
    ]
    assert net.connected == [(PUBLIC, 8080)]


# Where the guard may connect to.


@each_row(
    "answers",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["fe80::1%eth0"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
        [PUBLIC, "2606:4700::1111", "::1"],
        [*[f"93.184.216.{n}" for n in range(1, 200)], "192.168.1.1"],
        ["localhost"],
        [""],
        [],
    ],
)
def test_one_answer_that_is_not_public_refuses_the_host(answers: list[str]) -> None:
    """Nothing is connected to, not even the public addresses of such a name."""
    net = Internet(9, {"example.com": answers})
    with pytest.raises(NotReachable):
        net.fetch("http://example.com/")
    assert net.looked_up == ["example.com"]
    assert net.connected == []


def test_addresses_are_tried_in_order_until_one_answers(server: HostileServer) -> None:
    """A dead address costs a try, not the page; the same address is tried once."""
    dead = ["93.184.216.1", "2606:4700::1"]
    net = Internet(
        server.port, {"example.com": [dead[0], dead[0], "2606:4700:0::1", PUBLIC]}, closed=dead
    )
    page = net.fetch("http://example.com/")
    assert page.status == 200
    assert net.connected == [(dead[0], 80), (dead[1], 80), (PUBLIC, 80)]


def test_literal_addresses_are_not_looked_up(server: HostileServer) -> None:
    """There is nothing to look up, and the Host header has brackets."""
    net = Internet(server.port, {})
    net.fetch("http://[2606:4700:0:0::1]/")
    assert net.looked_up == []
    assert net.connected == [("2606:4700::1", 80)]
    assert b"\r\nHost: [2606:4700::1]\r\n" in server.requests[0]


def test_a_range_of_stand_in_addresses_can_be_opened(server: HostileServer) -> None:
    """With a resolver that answers 198.18.x.x for everything, only that range is opened."""
    net = Internet(server.port, {"a.example": ["198.18.0.7"], "b.example": ["10.0.0.7"]})
    for host, reached in [("a.example", True), ("b.example", False)]:
        try:
            net.fetch(f"http://{host}/", allow_ranges=["198.18.0.0/15"])
        except NotReachable:
            assert not reached
    assert net.connected == [("198.18.0.7", 80)]
    with pytest.raises(SettingError):
        fetch("http://a.example/", allow_ranges=["0.0.0.0/0"], resolve=net.resolve)


def test_a_real_connection_to_this_machine_is_closed_unused() -> None:
    """A public address of this machine's own is recognised by where the connection comes from."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with OutwardSocket() as connection, pytest.raises(OSError, match="this machine"):
            connection.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(60)
            assert accepted.recv(1) == b""


ADDRESSES = [PUBLIC, "8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "127.0.0.1", "10.1.1.1", "::1"]


@given(
    st.lists(st.lists(st.sampled_from(ADDRESSES), max_size=3), min_size=1, max_size=40),
    st.integers(0, 4),
    st.booleans(),
)
def test_rebinding_is_impossible(answers: list[list[str]], hops: int, same_host: bool) -> None:
    """Whatever the resolver says next time: one look-up a hop, no connection to what is not public,
    and none to an address that this hop's look-up did not give."""
    asked: list[str] = []
    connected: list[tuple[int, str]] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[(len(asked) - 1) % len(answers)]

    def sockets(family: int, kind: int, protocol: int) -> socket.socket:
        hop = len(asked)
        host = "example.com" if same_host else f"hop{hop}.example"
        response = redirect(f"http://{host}/{hop}") if hop <= hops else PAGE
        return stack.enter_context(
            canned(response, lambda address: connected.append((hop, address)))
        )

    page = None
    with contextlib.ExitStack() as stack, contextlib.suppress(NotReachable):
        page = fetch("http://example.com/", limits=LIMITS, resolve=resolve, sockets=sockets)
    assert len(asked) <= hops + 1
    assert len({hop for hop, _ in connected}) == len(connected)
    for hop, address in connected:
        assert why_refused(address, resolved=True) is None
        assert address in answers[(hop - 1) % len(answers)]
        assert all(not why_refused(a, resolved=True) for a in answers[(hop - 1) % len(answers)])
    if page:
        assert len(asked) == hops + 1
        assert len(page.redirects) == hops


# Redirects.


def test_redirects_are_followed_and_told(server: HostileServer) -> None:
    """Relative and absolute, from https's port to http's: each hop is looked up anew."""
    server.routes |= {
        "/1": redirect("/2", "301 Moved"),
        "/2": redirect("3?x=ü", "303 See Other"),
        "/3?x=%C3%BC": redirect("//www.example.com/4", "307 Temporary"),
        "/4": redirect("HTTP://Other.example:8080#end", "308 Permanent"),
    }
    net = Internet(server.port)
    page = net.fetch("http://example.com/1")
    assert page.final_url == "http://other.example:8080/"
    assert page.redirects == (
        "http://example.com/1",
        "http://example.com/2",
        "http://example.com/3?x=%C3%BC",
        "http://www.example.com/4",
    )
    assert net.looked_up == [*["example.com"] * 3, "www.example.com", "other.example"]
    assert len(net.connected) == 5


INNER = (
    *("http://127.0.0.1/", "http://[::1]/", "http://localhost/", "//10.0.0.1/"),
    *("http://inside.example/", "http://nowhere.example/", "http://example.com:22/"),
)
ODD = (
    *("file:///etc/passwd", "data:text/html,x", "http://user:pass@example.com/"),
    *("http://2130706433/", "http://example.com\\@127.0.0.1/", "http://example.com/a b"),
)


LEADS = [*((to, NotReachable) for to in INNER), *((to, FetchRefused) for to in ODD)]


@pytest.mark.parametrize(("location", "error"), LEADS)
def test_a_redirect_is_judged_like_an_address_from_the_caller(
    server: HostileServer, location: str, error: type[SearchBackendError]
) -> None:
    """A public page leads nowhere that could not have been asked for."""
    server.routes["/out"] = redirect(location)
    net = Internet(server.port, {"example.com": [PUBLIC], "inside.example": ["10.0.0.1"]})
    with pytest.raises(error):
        net.fetch("http://example.com/out")
    assert net.connected == [(PUBLIC, 80)]
    assert len(server.requests) == 1


def test_two_different_locations_are_no_redirect(server: HostileServer) -> None:
    """Two readers would go to two places."""
    server.routes["/out"] = answer(
        b"", "Location: http://a.example/", "Location: http://b.example/", status="302 Found"
    )
    net = Internet(server.port)
    with pytest.raises(FetchFailed) as caught:
        net.fetch("http://example.com/out")
    assert caught.value.code == "bad_response"


def test_redirects_end(server: HostileServer) -> None:
    """A circle ends when it closes, a chain at the limit, and the limit itself still passes."""
    server.routes |= {"/a": redirect("/b#1"), "/b": redirect("/a#2"), "/self": redirect("")}
    server.routes |= {f"/{n}": redirect(f"/{n + 1}") for n in range(9)} | {"/9": PAGE}
    net = Internet(server.port)
    for path, requests in [("/a", 2), ("/self", 1), ("/3", 6)]:
        server.requests.clear()
        with pytest.raises(FetchFailed) as caught:
            net.fetch(f"http://example.com{path}")
        assert caught.value.code == "too_many_redirects"
        assert len(server.requests) == requests
    page = net.fetch("http://example.com/4")
    assert len(page.redirects) == 5


def test_the_body_of_a_redirect_is_not_read(server: HostileServer) -> None:
    """Neither its size nor its encoding nor its end matters."""

    def bomb() -> Iterator[object]:
        yield answer(
            b"\x1f\x8b not gzip", "Location: /", "Content-Encoding: br, gzip", status="302 Found"
        )
        yield HANG

    server.routes["/out"] = bomb
    net = Internet(server.port)
    page = net.fetch("http://example.com/out")
    assert page.final_url == "http://example.com/"


# TLS.


def test_tls_names_the_host_while_the_address_is_pinned(trust: ssl.SSLContext) -> None:
    """The certificate and the server's choice of site go by name, the connection by address."""
    with serving({"/": redirect("https://example.com/x"), "/x": PAGE}, tls=True) as server:
        net = Internet(server.port)
        page = net.fetch("https://www.example.com/", tls=trust)
        assert page.body == b"<p>hello</p>"
        assert server.server_names == ["www.example.com", "example.com"]
        assert net.connected == [(PUBLIC, 443), (PUBLIC, 443)]
        assert b"\r\nHost: www.example.com\r\n" in server.requests[0]


def test_the_systems_trust_is_what_counts_by_default() -> None:
    """An authority that nobody installed is not trusted."""
    with serving({"/": PAGE}, tls=True) as server, pytest.raises(FetchFailed) as caught:
        Internet(server.port).fetch("https://example.com/")
    assert caught.value.code == "tls"


# What a refusal gives away.


def test_private_closed_and_absent_look_alike() -> None:
    """Same class, same words, same duration: opening addresses does not map a network."""
    names = {"inside.example": ["10.0.0.1"], "mixed.example": [PUBLIC, "10.0.0.1"]}
    names |= {"closed.example": [PUBLIC], "example.com": [PUBLIC]}
    net = Internet(9, names, closed=[PUBLIC])
    errors = []
    hosts = ("inside.example", "mixed.example", "nowhere.example", "closed.example")
    for host in ("127.0.0.1", "localhost:8080", "example.com:22", *hosts):
        started = time.monotonic()
        with pytest.raises(NotReachable) as caught:
            net.fetch(f"http://{host}/", limits=FetchLimits(failure_step=0.05))
        assert time.monotonic() - started >= 0.05
        errors.append(caught.value.problem.as_json())
    assert errors == [errors[0]] * len(errors)
    assert errors[0]["code"] == "not_reachable"
    assert not any("private" in text or "10.0.0.1" in text for text in errors[0].values())


def test_the_true_cause_is_kept_for_the_log() -> None:
    """Whoever runs the program can find out what happened."""
    net = Internet(9, {"inside.example": ["10.0.0.1"]})
    for url, cause in [
        ("http://inside.example/", "10.0.0.1: private"),
        ("http://nowhere.example/", "not known"),
        ("http://127.0.0.1/", "loopback"),
    ]:
        with pytest.raises(NotReachable, match="No public web server") as caught:
            net.fetch(url)
        assert cause in caught.value.detail


def test_a_look_up_that_hangs_is_given_up() -> None:
    """Resolvers know no deadline, so nobody waits for them beyond it."""
    release = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        release.wait()
        return [PUBLIC]

    try:
        with pytest.raises((NotReachable, FetchFailed)):
            fetch("http://example.com/", limits=FetchLimits(seconds=0.1), resolve=resolve)
    finally:
        release.set()
