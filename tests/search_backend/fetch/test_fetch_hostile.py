"""Servers that mean harm: whatever they send, a fetch ends in time, in little memory, in one of the
documented ways."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import partial

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import Fetched, FetchLimits, content_type
from searchloop.search_backend.types import FetchFailed
from tests.search_backend.hostile import (
    HANG,
    PAUSE,
    RESET,
    Internet,
    Script,
    answer,
    canned,
    forever,
    redirect,
    serving,
)
from tests.tables import each_row

LIMITS = FetchLimits(seconds=5, failure_step=0, max_bytes=100_000, max_decoded=300_000)
HURRIED = FetchLimits(seconds=0.1, failure_step=0)
KIB = 1024


def load(route: bytes | Script, limits: FetchLimits = LIMITS) -> Fetched:
    """What `fetch` makes of a server that answers with `route`."""
    with serving({"/": route}) as server:
        net = Internet(server.port)
        return net.fetch("http://example.com/", limits=limits)


def fails(route: bytes | Script, limits: FetchLimits = LIMITS) -> str:
    """The code with which it fails."""
    with pytest.raises(FetchFailed) as caught:
        load(route, limits)
    assert caught.value.message.endswith(".")
    assert caught.value.remedy
    return caught.value.code


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n", encoding: str = "identity") -> bytes:
    """An answer in chunks."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end
    return answer(body, "Transfer-Encoding: chunked", f"Content-Encoding: {encoding}")


# Framing.


def test_interim_answers_are_skipped_but_not_without_end() -> None:
    """Early hints come before pages; a flood of them is not a page."""
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    more = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert load(more + hint + more + answer(b"abc")).body == b"abc"
    assert fails(lambda: forever(hint), HURRIED) == "timeout"
    assert fails(lambda: forever(more), HURRIED) == "timeout"
    assert fails(b"HTTP/1.1 101 Switching Protocols\r\n\r\n") == "bad_response"


MANY = b"".join(b"abc%d" % n for n in range(999))


@pytest.mark.parametrize(
    "answer_",
    [
        answer(b"abc", "Content-Length: 10"),
        chunked(b"abc", end=b""),
        chunked(b"abc", end=b"5\r\nab"),
        *(answer(zlib.compress(MANY)[:n], "Content-Encoding: deflate") for n in (-8, 40)),
        *(answer(gzip.compress(MANY, mtime=0)[:n], "Content-Encoding: gzip") for n in (-12, -1)),
        answer(gzip.compress(MANY, mtime=0)[:-12]),
        answer(gzip.compress(MANY) + gzip.compress(MANY)[:-4], "Content-Encoding: gzip"),
        answer(brotli.compress(MANY)[:-4], "Content-Encoding: br"),
        chunked(gzip.compress(b"abc" * 999, mtime=0)[:-12], end=b"", encoding="gzip"),
    ],
)
def test_what_a_server_broke_off_is_told(answer_: bytes) -> None:
    """The part that came is of use as text, and is marked as a part."""
    page = load(answer_)
    assert page.body[:3] == b"abc"
    assert (page.truncated, page.cut) == (True, "connection")
    assert fails(answer_.replace(b"text/html", b"application/pdf")) == "bad_response"


@each_row(
    "route",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 302 Found\r\nLocation: /x",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        answer(b"abc", "Content-Length: 10", kind="image/png"),
        answer(b"abc", "Content-Encoding: zstd"),
        answer(b"abc", "Content-Encoding: gzip, gzip"),
        answer(gzip.compress(b"abc", mtime=0), *["Content-Encoding: gzip"] * 2),
        chunked(b"abc").replace(b": chunked", b": gzip, chunked"),
        chunked(b"abc").replace(b": chunked", b": chunked\r\nTransfer-Encoding: gzip"),
        answer(gzip.compress(b"abc", mtime=0), "Transfer-Encoding: gzip"),
        answer(b"abc", "Content-Encoding: aes\x01"),
        answer(b"not gzip at all", "Content-Encoding: gzip"),
        chunked(b"abc", end=b"zz\r\nabc"),
        answer(b"\xff not deflate", "Content-Encoding: deflate"),
    ],
)
def test_an_answer_that_is_none_is_a_bad_response(route: bytes) -> None:
    """Other protocols, broken heads, encodings that were not offered."""
    assert fails(route) == "bad_response"


def test_a_part_that_nobody_asked_for_is_no_page() -> None:
    """Its text counts as a part, and a part of a file is of no use."""
    part = answer(b"abc", "Content-Range: bytes 0-2/9", status="206 Partial Content")
    page = load(part)
    assert (page.body, page.cut, page.truncated) == (b"abc", "partial", True)
    assert fails(part.replace(b"text/html", b"application/pdf")) == "bad_response"


def test_a_reset_is_a_bad_response_or_the_end_of_a_part() -> None:
    """Before any text came it is a failure, after it the part counts."""

    head = answer(b"", "Content-Length: 10")
    for said in ([], [b"HTTP/1.1 200 OK\r\nCont"], [head]):
        assert fails(partial(iter, [*said, RESET])) == "bad_response"


# Size.


def test_caps_are_exact() -> None:
    """A body of just the permitted size is whole; one byte more is a part of just that size."""
    limits = FetchLimits(seconds=5, max_bytes=70_000, max_decoded=140_000)
    for size, truncated in [(69_999, False), (70_000, False), (70_001, True), (200_000, True)]:
        for route in (
            answer(b"x" * size),
            answer(b"x" * size, f"Content-Length: {size}"),
            chunked(b"x" * 1000, b"x" * (size - 1000)),
        ):
            page = load(route, limits)
            assert (len(page.body), page.truncated) == (min(size, 70_000), truncated)
            assert page.cut == ("max_bytes" if truncated else "")
    for size, truncated in [(140_000, False), (140_001, True)]:
        page = load(answer(gzip.compress(b"x" * size, mtime=0), "Content-Encoding: gzip"), limits)
        assert (len(page.body), page.cut) == (140_000, "max_decoded" if truncated else "")


@each_row("kind", ["text/html", "text/plain", "application/json", "image/svg+xml", ""])
def test_the_beginning_of_endless_text_is_a_part(kind: str) -> None:
    """An endless page can be read as far as the cap, and the server notices that nobody listens. A
    part of another file is of no use."""
    page = load(endlessly(answer(kind=kind), b"x" * 64 * KIB))
    assert (len(page.body), page.truncated, page.cut) == (LIMITS.max_bytes, True, "max_bytes")
    for other in ("application/pdf", "image/png", "application/octet-stream"):
        assert fails(endlessly(answer(kind=other), b"x" * 64 * KIB)) == "too_large"


def endlessly(head: bytes, piece: bytes, pause: bool = False) -> Script:
    """`head`, and then `piece` for ever, now and then where it is to `pause`."""

    def script() -> Iterator[object]:
        yield head
        yield from forever(piece, pause)

    return script


def test_headers_without_end_are_refused_early() -> None:
    """The head is bounded as a whole: many lines, long lines, and no line at all."""

    for piece in (b"X: y\r\n", b"X: " + b"y" * 30_000 + b"\r\n", b"y" * 4096, b" folded\r\n"):
        assert fails(endlessly(b"HTTP/1.1 200 OK\r\n", piece)) == "bad_response"


def test_chunks_of_one_byte_are_counted() -> None:
    """Each costs more work than it carries, so their number is bounded as well."""

    dust = endlessly(answer(b"", "Transfer-Encoding: chunked"), b"1\r\nx\r\n" * 9000)
    page = load(dust, FetchLimits(seconds=15))
    assert (page.cut, len(page.body)) == ("max_pieces", 100_000)


# Bombs.


def deflated(size: int) -> Iterator[bytes]:
    """`size` zeros (a multiple of 1 MiB) as one raw stream, without ever holding them."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeeze.compress(bytes(KIB * KIB)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    for _ in range(size // (KIB * KIB)):
        yield block
    yield squeeze.flush()


def bomb(encoding: str) -> Script:
    """One GiB once decompressed."""

    def script() -> Iterator[object]:
        yield answer(b"", f"Content-Encoding: {encoding}")
        if encoding == "gzip":
            yield b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
        yield from deflated(1024 * KIB * KIB)

    return script


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_of_a_gibibyte_costs_what_was_asked_for(encoding: str) -> None:
    """Memory follows the cap, not the bomb."""
    limits = FetchLimits(seconds=10, max_decoded=1024 * KIB)
    with serving({"/": bomb(encoding)}) as server:
        net = Internet(server.port)
        tracemalloc.start()
        try:
            page = net.fetch("http://example.com/", limits=limits)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (len(page.body), page.cut) == (limits.max_decoded, "max_decoded")
    assert peak < 4 * limits.max_decoded


def test_thousands_of_empty_gzip_members_are_refused() -> None:
    """Members are counted, for each costs work and yields nothing."""
    body = gzip.compress(b"abc", mtime=0) + gzip.compress(b"") * 4000
    assert fails(answer(body, "Content-Encoding: gzip")) == "bad_response"


# Time.


def hang(head: bytes) -> Script:
    """`head`, and then nothing."""
    return lambda: iter([head, HANG])


@each_row(
    "route",
    [
        hang(b""),
        hang(b"HTTP/1.1 200 OK\r\n"),
        hang(answer(b"")),
        hang(answer(b"abc", "Content-Length: 10", kind="application/pdf")),
        endlessly(b"", b"H", pause=True),
        endlessly(b"HTTP/1.1 200 OK\r\n", b"X", pause=True),
        endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", pause=True),
        endlessly(answer(b"", kind="image/png"), b"x", pause=True),
        endlessly(answer(b"", "Transfer-Encoding: chunked"), b"0", pause=True),
        endlessly(answer(b"", "Content-Encoding: gzip"), b"\x1f", pause=True),
        endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=True),
    ],
)
def test_no_server_outlasts_the_deadline(route: Script) -> None:
    """Dripping bytes wins no time: not in the head, not in the body, not between chunks."""
    assert fails(route, HURRIED) in ("timeout", "bad_response")


def test_the_text_that_came_before_the_deadline_is_a_part() -> None:
    """A slow page is read as far as it came."""
    route = endlessly(answer(b"hello "), b"x", pause=True)
    page = load(route, FetchLimits(seconds=0.5, failure_step=0))
    assert page.body.startswith(b"hello ")
    assert (page.truncated, page.cut) == (True, "deadline")


def test_the_deadline_is_for_all_hops_together() -> None:
    """A chain of slow redirects takes no longer than one slow page."""

    def slow(n: int) -> Script:
        return lambda: iter([*[PAUSE] * 8, redirect(f"/{n + 1}")])

    routes = {f"/{n}": slow(n) for n in range(20)}
    limits = FetchLimits(seconds=0.4, redirects=20)
    with serving(routes) as server, pytest.raises(FetchFailed) as caught:
        Internet(server.port).fetch("http://example.com/0", limits=limits)
    assert caught.value.code == "timeout"


def test_a_handshake_that_stalls_ends_at_the_deadline() -> None:
    """TLS gets no time of its own."""
    with serving({}) as server, pytest.raises(FetchFailed) as caught:
        Internet(server.port).fetch("https://example.com/", limits=HURRIED)
    assert caught.value.code == "timeout"


# Whatever comes.

fragments = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 302 Found\r\n", b"HTTP/1.1 100 C\r\n\r\n"),
        *(b"\r\n", b"\n", b"\r", b" folded\r\n", b": x\r\n", b"\xff\xfe", b"\x00" * 9, b"x" * 300),
        *(b"Content-Length: %d\r\n" % size for size in (5, -1, 99999999999)),
        *(b"Content-Encoding: %b\r\n" % name for name in (b"gzip", b"br")),
        *(b"Content-Type: %b\r\n" % kind for kind in (b"text/html", b"application/pdf")),
        *(b"Location: /\r\n", b"Location: http://127.0.0.1/\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffff\r\n"),
        *(b"-1\r\n", gzip.compress(b"hello", mtime=0)),
    ]
)


@given(st.lists(fragments | st.binary(max_size=20), max_size=12).map(b"".join))
def test_any_bytes_end_in_a_page_or_a_documented_error(response: bytes) -> None:
    """Nothing that a server can say raises anything else, and no cap is passed."""
    net = Internet(9)
    code, page = "", None
    with canned(response) as connection:
        try:
            page = fetch(
                "http://example.com/",
                limits=LIMITS,
                resolve=net.resolve,
                sockets=lambda *kind: connection,
            )
        except FetchFailed as error:
            code = error.code
    assert page or code in ("bad_response", "too_large", "too_many_redirects", "not_reachable")
    assert not page or len(page.body) <= LIMITS.max_decoded
    assert not page or page.truncated == bool(page.cut)


@each_row(
    ("header", "kind", "charset"),
    [
        ("text/html", "text/html", None),
        ("Text/HTML; Charset=UTF-8", "text/html", "utf-8"),
        (' text/html ;charset="iso-8859-1" ; x=y', "text/html", "iso-8859-1"),
        ("text/html; boundary=x; charset='Shift_JIS'", "text/html", "shift_jis"),
        ("text/html, text/plain", "text/html", None),
        ("", "", None),
        ("text/html/x", "", None),
        ("<script>/x", "", None),
        (";charset=utf-8", "", "utf-8"),
        ("text/html;" + "a=b;" * 5000, "text/html", None),
    ],
)
def test_content_types_are_read_leniently_and_safely(
    header: str, kind: str, charset: str | None
) -> None:
    """What servers write in all its forms; what is no type is none."""
    assert content_type(header) == (kind, charset)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@each_row(
    "head",
    [
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n",
        *(OK + b"Content-Length: " + v + b"\r\n" for v in (b"3, 4", b"+3", b"0x3", b"9" * 30)),
        OK + b"Content-Length: 3\r\n 0\r\n",
        OK + CHUNKED + b"Content-Length: 3\r\n",
        OK + CHUNKED * 2,
        OK + b"Transfer-Encoding: chunked, identity\r\n",
        OK + b"X: y\r\n\x0bTransfer-Encoding: chunked\r\n",
        OK + b"X: y\rContent-Length: 3\r\n",
        OK + b"X\0: y\r\n",
        *(b"HTTP/1.1 " + v + b" OK\r\n" for v in (b"", b"20", b"+200", b"\xb200")),
        b" " + OK,
    ],
)
def test_a_head_of_two_meanings_is_none(head: bytes) -> None:
    """What RFC 9112 forbids where it decides what is an answer and where it ends."""
    body = b"3\r\nabc\r\n0\r\n\r\n" if b"chunked" in head else b"abc"
    assert fails(head + b"\r\n" + body) == "bad_response"
