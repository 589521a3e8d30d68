"""The head of an answer as it came, read in one way only.

Whoever stands between a server and us (a proxy, a filter) reads the same bytes. Where the standard
lets two readers differ about where an answer begins or ends, or forbids what came, there is no
answer: lengths and codings that are odd, double or contradict each other, NUL, a bare CR. What says
nothing about framing is read as browsers do: lines that are no field are passed over, folded ones
are joined.

Spec: RFC 9112 2.2, 4, 5, 6.1 to 6.3; RFC 9110 5.5
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

_INTERIM_ANSWERS = 8
_LONGEST_LINE = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([0-9])[ \t]+([1-9][0-9][0-9])(?:[ \t].*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,18}")
_FRAMING = (b"content-length", b"transfer-encoding")
_UNSEEN = re.compile(rb"[^!-~]")
_BODILESS = frozenset({204, 304})  # whatever their headers say


class BadHead(Exception):
    """What came is no head of an HTTP/1 answer, or says two things about where its body ends."""


@dataclass(frozen=True, slots=True)
class Head:
    """`fields`: (name in lower case, value) as they came, bytes as Latin-1. `length`: of the body
    in bytes; None when it comes in chunks (`chunked`) or goes on to the end of the connection."""

    status: int
    fields: Sequence[tuple[str, str]]
    length: int | None
    chunked: bool

    def every(self, name: str) -> list[str]:
        """All values of a field."""
        return [value for key, value in self.fields if key == name]


def read_head(file: io.BufferedIOBase) -> Head:
    """The head of the final answer, interim ones (103 Early Hints and such) skipped; the body is
    next in `file`, which bounds how much there is to read. Raises BadHead."""
    for _ in range(_INTERIM_ANSWERS):
        started = _STATUS.fullmatch(_line(file))
        if started is None:
            raise BadHead("no status line")
        fields, status = _fields(file), int(started[2])
        if status >= 200:
            return _framed(status, fields, old=started[1] == b"0")
        if status == 101:
            raise BadHead("another protocol, which nobody asked for")
    raise BadHead("interim answers without end")


def contradicts(names: Sequence[str], *, old: bool) -> bool:
    """Whether these fields make an answer end in two places at once: a coding beside a length, or
    with a version (`old`: HTTP/1.0) that knows no coding."""
    return "transfer-encoding" in names and (old or "content-length" in names)


def _line(file: io.BufferedIOBase) -> bytes:
    line = file.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise BadHead("the head breaks off")
    line = line[:-1].removesuffix(b"\r")
    if b"\r" in line or b"\0" in line:
        raise BadHead("a character that no head may hold")
    return line


def _fields(file: io.BufferedIOBase) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    folds, first = False, True  # whether the line before may go on
    while line := _line(file):
        if line[0] in b" \t":
            if first:
                raise BadHead("a first field that is folded")
            if folds and fields[-1][0].encode() in _FRAMING:
                raise BadHead("a length or coding that is folded")
            if folds:
                fields[-1] = fields[-1][0], f"{fields[-1][1]} {_value(line)}"
            continue
        first = False
        raw, colon, rest = line.partition(b":")
        name = raw.rstrip(b" \t").lower()
        folds = bool(colon) and _NAME.fullmatch(name) is not None
        if raw.lower() not in _FRAMING and _UNSEEN.sub(b"", raw.lower()) in _FRAMING:
            raise BadHead("a length or coding that is spelt oddly")
        if folds:
            fields.append((name.decode("ascii"), _value(rest)))
    return fields


def _value(raw: bytes) -> str:
    return raw.strip(b" \t").decode("latin-1")


def _framed(status: int, fields: list[tuple[str, str]], *, old: bool) -> Head:
    lengths = [value for name, value in fields if name == "content-length"]
    codings = [value.lower() for name, value in fields if name == "transfer-encoding"]
    if contradicts([name for name, _ in fields], old=old):
        raise BadHead("a coding that contradicts the rest of the head")
    if codings not in ([], ["chunked"], ["identity"]):
        raise BadHead("a coding that was not asked for")
    said = {one.strip(" \t") for value in lengths for one in value.split(",")}
    if len(said) > 1 or not all(map(_LENGTH.fullmatch, said)):
        raise BadHead("no length, or two")
    chunked = codings == ["chunked"]
    if status in _BODILESS:
        return Head(status, fields, 0, chunked=False)
    return Head(status, fields, int(said.pop()) if said else None, chunked)
