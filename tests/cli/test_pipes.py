"""Pipes and code pages as other systems have them: silent pipes, no `select`, no UTF-8."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.cli import arguments
from searchloop.cli.terminal import pipes

SIGNS = "“Ebb” … – — • → é 潮 🎉 \u202e ‘x’"


class Pipe:
    """A pipe, its reading end as a Windows program would open it."""

    def __init__(self) -> None:
        reading, self.writing = os.pipe()
        self.stdin = open(reading, encoding="cp1252")  # noqa: SIM115

    def send(self, data: bytes) -> None:
        """Writes all of it and closes, as a program that ends."""
        with open(self.writing, "wb") as stream:
            stream.write(data)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """One, closed in the end."""
    made = Pipe()
    yield made
    made.stdin.close()


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_piped_text_is_utf8_on_every_system(pipe: Pipe, bom: bytes) -> None:
    """Whatever the code page is; PowerShell puts a mark before it."""
    pipe.send(bom + SIGNS.encode())
    assert pipes.piped_text(wait=True, stdin=pipe.stdin) == SIGNS


def test_a_silent_pipe_is_left_alone(pipe: Pipe) -> None:
    """Some callers leave one open for ever."""
    with pytest.raises(TimeoutError):
        pipes.piped_text(wait=True, stdin=pipe.stdin, silent=0.0)
    pipe.send(b"")


@given(st.text(), st.sampled_from(["cp1252", "cp437", "ascii", "utf-8"]))
def test_json_loses_nothing_on_any_code_page(text: str, page: str) -> None:
    """What the page has not is an escape, so that the next program reads the same; it is one line,
    and nothing in it steers a terminal.
    """
    console = io.TextIOWrapper(io.BytesIO(), page)
    with redirect_stdout(console):
        written = arguments.as_json({"text": text})
    assert json.loads(written.encode(page).decode(page)) == {"text": text}
    assert arguments.safe(written) == written
    assert "\n" not in written
