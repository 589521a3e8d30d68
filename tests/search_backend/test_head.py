"""Answers that two readers could read differently: the guard reads one thing, or nothing."""

from __future__ import annotations

import io

import pytest
from hypothesis import given

from search_backend.body import read_body
from search_backend.decode import Cut
from search_backend.head import BadHead, Head, read_head
from tests.search_backend.test_framing import answers, theirs

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def read(data: bytes) -> tuple[Head, bytes, str]:
    """The head, as much of the body as there is, and why it ends before its end."""
    file = io.BufferedReader(io.BytesIO(data))
    head, body, cut = read_head(file), b"", ""
    try:
        for piece in read_body(file, head, 10**6):
            body += piece
    except Cut as why:
        cut = why.why
    return head, body, cut


@pytest.mark.parametrize(
    "head",
    [
        # Lengths: two that differ, and what is no row of digits.
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n",
        OK + b"Content-Length: 3, 4\r\n",
        *(OK + b"Content-Length: " + v + b"\r\n" for v in (b"+3", b"-3", b"0x3", b"3_0", b"3 0")),
        *(OK + b"Content-Length:" + v + b"\r\n" for v in (b"", b"\x0b3", b"3;", b"3.0", b"\xb3")),
        OK + b"Content-Length: " + b"9" * 30 + b"\r\n",
        OK + b"Content-Length: 3\r\n 0\r\n",
        *(OK + b"Content-Length" + v + b": 3\r\n" for v in (b" ", b"\t", b"\x0c", b"\xa0")),
        # Codings: beside a length, for a version without, twice, hidden, unknown.
        OK + CHUNKED + b"Content-Length: 3\r\n",
        OK + b"Content-Length: 3\r\n" + CHUNKED,
        OK + b"Content-Length: 3\r\nTransfer-Encoding: identity\r\n",
        b"HTTP/1.0 200 OK\r\n" + CHUNKED,
        OK + CHUNKED * 2,
        OK + b"Transfer-Encoding: chunked, chunked\r\n",
        OK + b"Transfer-Encoding: chunked, identity\r\n",
        OK + b"Transfer-Encoding: xchunked\r\n",
        OK + b"Transfer-Encoding: \x0bchunked\r\n",
        OK + b"Transfer-Encoding:\r\n chunked\r\n",
        OK + b"Transfer-Encoding : chunked\r\n",
        OK + b"X: y\r\n\x0bTransfer-Encoding: chunked\r\n",
        # Line ends and characters.
        OK + b"X: y\rContent-Length: 3\r\n",
        OK + b"X: y\r\rContent-Length: 3\r\n",
        OK + b"X: y\0\r\n",
        OK + b"X\0: y\r\n",
        OK + b" X: y\r\n",
        b"HTTP/1.1 200 O\rK\r\n",
        b"HTTP/1.1 200 O\0K\r\n",
        # Status lines.
        *(b"HTTP/1.1 " + v + b" OK\r\n" for v in (b"", b"20", b"2000", b"+200", b"0200", b"2x0")),
        *(b"HTTP/1.1 " + v + b"\r\n" for v in (b"200OK", b"-20", b"2_0", b"\xb200", b"000")),
        *(v + b" 200 OK\r\n" for v in (b"HTTP/2.0", b"HTTP/1", b"http/1.1", b"HTTP/1.10", b"ICY")),
        b"\r\n" + OK,
        b" " + OK,
    ],
)
def test_a_head_of_two_meanings_is_none(head: bytes) -> None:
    """What RFC 9112 forbids, or leaves to each reader, where it decides what is an answer."""
    with pytest.raises(BadHead):
        read(head + b"\r\nabc")


@pytest.mark.parametrize(
    "size",
    [
        *(b"+3", b"-3", b"0x3", b"0X3", b"3_0", b" 3", b"\t3", b"3 0", b"", b"3\0", b"\xb3", b"3g"),
        *(b"0" * 16 + b"3", b"3\r", b"3;a\rb", b"3;a\0", b"3,a", b"3 a", b"3;" + b"e" * 5_000),
    ],
)
def test_a_chunk_of_an_odd_size_ends_the_body(size: bytes) -> None:
    """Python would take many of these for a number; other readers would not."""
    found = read(OK + CHUNKED + b"\r\n3\r\nabc\r\n" + size + b"\r\ndef\r\n0\r\n\r\n")
    assert found[1:] == (b"abc", "connection")


@pytest.mark.parametrize("rest", [b"def0\r\n", b"\n3\r\ndef\r\n", b"\r3\r\ndef", b"d", b"\r", b""])
def test_a_chunk_ends_where_it_says(rest: bytes) -> None:
    """What stands behind it is a line end and nothing else."""
    assert read(OK + CHUNKED + b"\r\n3\r\nabc" + rest)[1:] == (b"abc", "connection")
    assert read(OK + CHUNKED + b"\r\n3\r\nabc\r\n3\ndef\r\n0\r\n\r\n")[1:] == (b"abc", "connection")


def test_trailers_are_nobodys() -> None:
    """They are not read: not for fields, and not for ever."""
    head, body, cut = read(OK + CHUNKED + b"\r\n3\r\nabc\r\n0\r\n" + b"Location: /x\r\n" * 9_999)
    assert (body, cut, head.every("location")) == (b"abc", "", [])


def test_what_says_nothing_of_framing_is_read_as_browsers_do() -> None:
    """Servers write much that is no field; the fields behind it count all the same."""
    odd = b"no field\r\nno name: x\r\n: y\r\nA : 1\r\nb:2\r\n\tand 3\r\n"
    odd += b"no field\r\n too\r\nC:\t\xe4 \r\n"
    head, body, cut = read(OK + odd + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabcdef")
    assert head.fields[:3] == [("a", "1"), ("b", "2 and 3"), ("c", "ä")]
    assert (body, cut, head.length) == (b"abc", "", 3)
    for first in (
        b"HTTP/1.1 999 Odd\n",
        b"HTTP/1.1\t200\n",
        b"HTTP/1.0  200  OK\n",
        b"HTTP/1.9 200 \n",
    ):
        assert read(first + b"X: y\n\nabc")[1:] == (b"abc", "")
    identity = read(OK + b"Transfer-Encoding: identity\r\n\r\nabc")
    assert identity[1:] == (b"abc", "")
    kept = read(OK + CHUNKED + b'\r\n03 \r\nabc\r\nA;x="y"\r\n0123456789\r\n000\r\n\r\nH')
    assert kept[1:] == (b"abc0123456789", "")


@given(answers)
def test_never_another_body_than_the_library_reads(data: bytes) -> None:
    """Where both find a whole answer in the same bytes, it is the same one."""
    try:
        head, body, cut = read(data)
    except BadHead:
        return
    said = theirs([data, b""])
    if not cut and len(said) > 2:
        assert (head.status, body) == (said[1], said[3])
