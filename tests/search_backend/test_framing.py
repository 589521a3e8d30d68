"""Reading answers: the short way never says anything that h11 does not say of the same bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_backend.framing import MOST_BYTES, MOST_HEAD, AnswerReader, BadAnswer

# Pieces of answers, well-formed and not; strung together they give every doubt there is.
PARTS = [
    *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 404 \r\n", b"HTTP/1.1 204 No\r\n"),
    *(b"HTTP/1.1 304 N\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 100 Go on\r\n"),
    *(b"HTTP/1.1 101 Up\r\n", b"HTTP/1.1 200\r\n", b"HTTP/2 200 OK\r\n", b"HTTP/1.1 20x OK\r\n"),
    *(b"http/1.1 200 OK\r\n", b"HTTP/1.1  200 OK\r\n", b"Content-Length: 4\r\n"),
    *(b"content-length:4\r\n", b"Content-Length: 0\r\n", b"Content-Length: 04 \r\n"),
    *(b"Content-Length: +4\r\n", b"Content-Length: 4, 4\r\n", b"Content-Length: 5\r\n"),
    *(b"Content-Length: \r\n", b"Content-Length : 4\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(b"Transfer-Encoding: Chunked \r\n", b"Transfer-Encoding: gzip, chunked\r\n"),
    *(b"transfer-encoding: identity\r\n", b"Connection: close\r\n"),
    *(b"Connection: Keep-Alive\r\n", b"Connection: close, te\r\n", b"Upgrade: h2c\r\n"),
    *(b"Trailer: X\r\n", b"X: y\r\n", b"X:\r\n", b"X: \xe4\r\n", b"X: a\rb\r\n", b" folded\r\n"),
    *(b"X\r\n", b": x\r\n", b"X: a\x00\r\n", b"X: a\n", b"\n", b"\r", b"\r\n", b"\r\n", b"\r\n"),
    *(b"\r\n\r\n", b"\n\r\n", b"body", b"tail", b"4\r\nbody\r\n", b"0\r\n\r\n"),
    *(b"04\r\nbody\r\n", b"4;a=b\r\nbody\r\n", b"4 \r\nbody\r\n", b"5\r\nbody\r\n"),
    *(b"0\r\nX: y\r\n", b"0x4\r\nbody\r\n", b"-4\r\n", b"fffff\r\n", b"0000004\r\nbody\r\n"),
    *(b"4\nbody\n", b"0\n\n"),
]
GOOD = [
    (b"HTTP/1.1 200 OK\r\n", b"X: y\r\nContent-Length: 8\r\n\r\n", b"4\r\nbody\r"),
    (b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nbody\r\n", b"0\r\n\r\n"),
    (b"HTTP/1.1 503 No\r\n", b"Connection: close\r\n", b"Content-Length: 0\r\n\r\n"),
    (b"HTTP/1.1 200 OK\r\n", b"\r\n", b"until the end"),
]
answers = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=9),
    st.tuples(st.sampled_from(GOOD), st.lists(st.sampled_from(PARTS), max_size=2)).map(
        lambda both: [*both[0], *both[1]]
    ),
    st.tuples(st.sampled_from(GOOD), st.integers(0, 60), st.binary(min_size=1, max_size=2)).map(
        lambda one: [b"".join(one[0])[: one[1]], one[2], b"".join(one[0])[one[1] :]]
    ),
).map(b"".join)

Said = tuple[object, ...]


def ours(pieces: Sequence[bytes]) -> Said:
    """After how many pieces the answer is complete and what it is; or that it is a bad one."""
    reader = AnswerReader()
    for count, piece in enumerate(pieces):
        try:
            if reader.feed(piece):
                return count, reader.status, reader.headers, reader.body, reader.reusable
        except BadAnswer:
            return (count, "bad")
    return ("unfinished",)


def theirs(pieces: Sequence[bytes]) -> Said:
    """The same by h11, but for what the standard calls an attack."""
    talk = h11.Connection(h11.CLIENT)
    talk.send(h11.Request(method="POST", target="/", headers=[("Host", "x")]))
    talk.send(h11.EndOfMessage())
    head, body = h11.Response(status_code=200, headers=[]), b""
    for count, piece in enumerate(pieces):
        try:
            talk.receive_data(piece)
            while (event := talk.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.ConnectionClosed):
                    return (count, "bad")
                head = event if isinstance(event, h11.Response) else head
                named = dict(head.headers)
                if b"transfer-encoding" in named and (
                    b"content-length" in named or head.http_version == b"1.0"
                ):
                    return (count, "bad")  # it ends in two places: we are stricter than they
                body += bytes(event.data) if isinstance(event, h11.Data) else b""
                if isinstance(event, h11.EndOfMessage):
                    headers = {n.decode(): v.decode("latin-1") for n, v in head.headers}
                    again = talk.their_state is h11.DONE and not talk.trailing_data[0]
                    return count, head.status_code, headers, body, again
        except h11.RemoteProtocolError:
            return (count, "bad")
    return ("unfinished",)


@given(answers, st.lists(st.integers(1, 40), max_size=12), st.booleans())
def test_it_says_what_the_library_says(data: bytes, sizes: list[int], hangs_up: bool) -> None:
    """Any bytes, cut anyhow, with or without an end of the connection behind them."""
    pieces, rest = [], data
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    pieces = [piece for piece in (*pieces, rest) if piece] + [b""] * hangs_up
    assert ours(pieces) == theirs(pieces)


def test_ordinary_answers_need_no_library() -> None:
    """They are what the short way is for: whole, and a byte at a time."""
    code = (
        "import ast, sys\n"
        "from search_backend.framing import AnswerReader\n"
        "for data in ast.literal_eval(sys.argv[1]):\n"
        "    reader = AnswerReader()\n"
        "    assert AnswerReader().feed(data)\n"
        "    assert [reader.feed(data[n : n + 1]) for n in range(len(data))][-1]\n"
        "    assert reader.status in (200, 503)\n"
        "print('h11' in sys.modules)"
    )
    ordinary = repr([b"".join(parts) for parts in GOOD[:3]])
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code, ordinary]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_server_that_goes_on_is_not_trusted_again() -> None:
    """Bytes behind an answer are nobody's: the connection is not used for another request."""
    again = [ours([b"".join(parts) + extra])[-1] for parts in GOOD[:2] for extra in (b"", b"H")]
    assert again == [True, False, True, False]


def fed(head: bytes, piece: bytes, times: int) -> str:
    """What is said of an answer that goes on and on."""
    reader = AnswerReader()
    with pytest.raises(BadAnswer) as told:
        any(reader.feed(part) for part in (head, *[piece] * times))
    return str(told.value)


def test_nothing_grows_without_end() -> None:
    """Heads, lengths, chunks and what comes until the end are bounded."""
    ok, piece = b"HTTP/1.1 200 OK\r\n", b"x" * 65_536
    chunked = ok + b"Transfer-Encoding: chunked\r\n\r\n"
    enough = MOST_BYTES // len(piece) + 2
    assert "not valid" in fed(ok, b"X: " + b"y" * 1_000 + b"\r\n", MOST_HEAD // 1_000 + 2)
    assert "larger" in fed(ok + b"Content-Length: 9999999\r\n\r\n", piece, enough)
    assert "larger" in fed(ok + b"\r\n", piece, enough)
    assert "larger" in fed(chunked, b"10000\r\n" + piece + b"\r\n", enough)
    assert "larger" in fed(chunked + b"fffffff\r\n", piece, enough)
    assert "pieces" in fed(chunked, b"1\r\nx\r\n" * 9_000, 20)
    assert "interim" in fed(b"H", b"TTP/1.1 103 Wait\r\n\r\nH", 20)
