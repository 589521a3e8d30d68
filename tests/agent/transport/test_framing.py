"""Framing: the same payloads however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.exchange import MAX_EVENT, NdjsonSplitter, SseSplitter
from tests.tables import each_row

CASES = {
    "one line": (b"data: {}\n\n", [b"{}"]),
    "named event": (b"event: x\ndata: {}\n\n", [b"{}"]),
    "name after data": (b"data: {}\nevent: x\n\n", [b"{}"]),
    "no blank after the colon": (b"data:{}\n\n", [b"{}"]),
    "one blank is dropped": (b"data:   a\n\n", [b"  a"]),
    "several data lines": (b"data: a\ndata: b\ndata\n\n", [b"a\nb\n"]),
    "comments": (b": hello\n\n: there\ndata: a\n\n", [b"a"]),
    "id and retry": (b"id: 3\nretry: 10\ndata: a\n\n", [b"a"]),
    "CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "CR": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\n", [b"a", b"b"]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "many blank lines": (b"\n\ndata: a\n\n\n\n\ndata: b\n\n", [b"a", b"b"]),
    "an event without data": (b"event: ping\n\ndata: a\n\n", [b"a"]),
    "empty data": (b"data:\n\ndata: \n\ndata: a\n\n", [b"a"]),
    "unknown fields and garbage": (b"dataset: 1\n<html>\ndata: a\n\n", [b"a"]),
    "no last blank line": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "an error without framing": (
        b'data: a\n\n{\n "error": {}\n}\n\ndata: b\n\n[{"error": 1}]',
        [b"a", b'{\n "error": {}\n}', b"b", b'[{"error": 1}]'],
    ),
    "half an error without framing": (b'data: a\n\n{"error": {', [b"a"]),
    "nothing": (b"", []),
}


def sse(pieces: list[bytes]) -> list[bytes]:
    """All payloads of a stream that comes in these pieces."""
    splitter = SseSplitter()
    return [p for piece in pieces for p in splitter.feed(piece)] + splitter.close()


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@each_row("size", [1, 2, 3, 7, 64, 10**6])
@each_row("name", CASES)
def test_sse_payloads(name: str, size: int) -> None:
    """Every form the specification allows gives its payloads, at every chunk size."""
    wire, payloads = CASES[name]
    assert sse(cut(wire, size)) == payloads


LINES = st.lists(
    st.sampled_from(
        [b"data: a", b"data:b", b"data", b": c", b"event: e", b"", b"", b"x", b"data: \xe2\x82\xac"]
    )
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(LINES, ENDS, st.lists(st.integers(0, 200)))
def test_sse_is_split_invariant(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    """Any stream cut at any places equals the stream in one piece."""
    wire = b"".join(line + end for line in lines)
    places = [0, *sorted(min(c, len(wire)) for c in cuts), len(wire)]
    pieces = [wire[a:b] for a, b in pairwise(places)]
    assert sse(pieces) == sse([wire])


@given(st.lists(st.sampled_from([b"{}", b"", b"  ", b'{"a": 1}', b"\xc3\xa9"])), st.integers(1, 9))
def test_ndjson_is_split_invariant(lines: list[bytes], size: int) -> None:
    """JSON lines come out whole and in order, without blanks, with or without a last newline."""
    wire = b"\r\n".join(lines)
    splitter = NdjsonSplitter()
    found = [line for piece in cut(wire, size) for line in splitter.feed(piece)]
    assert found + splitter.close() == [line.strip() for line in lines if line.strip()]


@pytest.mark.parametrize("splitter", [SseSplitter, NdjsonSplitter])
def test_an_event_without_end_is_refused(splitter: type[SseSplitter | NdjsonSplitter]) -> None:
    """A server that never ends its event cannot fill the memory."""
    split = splitter()
    for _ in range(4):
        split.feed(b"x" * (MAX_EVENT // 4))
    with pytest.raises(ProviderError) as caught:
        split.feed(b"x")
    assert caught.value.code == "bad_response"
