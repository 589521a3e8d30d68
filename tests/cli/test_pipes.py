"""Pipes and code pages as other systems have them: silent pipes, no `select`, no UTF-8."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError
from searchloop.cli import arguments
from searchloop.cli.terminal import pipes
from tests.tables import each_row

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


def test_other_bytes_are_refused_with_a_sentence(pipe: Pipe) -> None:
    """No wrong letters."""
    pipe.send("Übung".encode("cp1252"))
    with pytest.raises(ConfigError) as refused:
        pipes.piped_text(wait=False, stdin=pipe.stdin)
    assert refused.value.code == "bad_stdin"


def test_a_silent_pipe_is_left_alone(pipe: Pipe) -> None:
    """Some callers leave one open for ever."""
    with pytest.raises(TimeoutError):
        pipes.piped_text(wait=True, stdin=pipe.stdin, silent=0.0)
    pipe.send(b"")


def test_a_long_text_comes_whole(pipe: Pipe) -> None:
    """More than a pipe holds at once."""
    writer = threading.Thread(target=pipe.send, args=[b"x" * 300_000])
    writer.start()
    assert pipes.piped_text(wait=False, stdin=pipe.stdin) == "x" * 300_000
    writer.join()


def test_a_pipe_without_an_end_is_not_read_to_it(pipe: Pipe) -> None:
    """A few megabytes are more than any question may have; a sign that is cut there is no fault."""
    reading = pipe.stdin

    def write() -> None:
        with suppress(BrokenPipeError), open(pipe.writing, "wb") as stream:
            while True:
                stream.write("潮".encode() * 10_000)

    writer = threading.Thread(target=write)
    writer.start()
    text = pipes.piped_text(wait=False, stdin=reading)
    reading.close()
    writer.join()
    assert pipes.MOST / 3 <= len(text) <= pipes.MOST / 2


@each_row("page", ["cp1252", "cp437", "cp850", "cp932", "ascii", "utf-8", "latin-1"])
def test_a_code_page_shows_what_it_can(page: str) -> None:
    """Never an error; what it cannot is a question mark."""
    raw = io.BytesIO()
    console = io.TextIOWrapper(raw, page, write_through=True)
    pipes.prepare_streams(console)
    console.write(SIGNS)
    shown = raw.getvalue().decode(page)
    assert "Ebb" in shown
    assert page == "utf-8" or "潮" not in shown or page == "cp932"
    if page == "ascii":
        assert shown.startswith("?Ebb?")


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
