"""`searchloop check`: one claim against a file, or a batch of them, without a model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.attached import LOCKED_PDF
from tests.cli.conftest import CLEAN, Cli

PAGE = "The bridge was opened in 1931. It carries 81,365 cars a day.\n"


def test_a_claim_is_held_against_a_file(cli: Cli, tmp_path: Path) -> None:
    """The verdict, its reason and the passage, as text and as JSON."""
    (tmp_path / "page.md").write_text(PAGE, "utf-8")
    ran = cli("check", "The bridge was opened in 1932.", "page.md")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].startswith("contradicted: ")
    assert "The bridge was opened in 1931." in ran.out
    told = cli("check", "It carries 81 365 cars a day", "page.md", "-o", "json").json
    assert told["verdict"] == "supported"
    assert PAGE[told["start"] : told["end"]] == told["passage"]


def test_an_address_goes_through_the_search_backend(cli: Cli) -> None:
    """A document of the library is a page like any other; one that is missing is named."""
    claim = "The licence of this program is the MIT licence."
    ran = cli("check", claim, "library://docs/README.md", "-o", "json")
    assert (ran.code, ran.json["verdict"]) == (0, "unclear"), ran.err
    ran = cli("check", "A claim.", "library://docs/missing.md")
    assert (ran.code, ran.out) == (2, "")
    assert "library://docs/missing.md could not be read: " in ran.err


def test_every_kind_of_source_is_read(cli: Cli, tmp_path: Path) -> None:
    """Stdin as a file is, in any charset and as PDF; the address of a file; a scheme is no path."""
    said = "Die Brücke wurde 1932 eröffnet."
    for body in (said.encode("latin-1"), said.encode("utf-16"), f"<p>{said}</p>".encode()):
        assert cli("check", said, "-", stdin=body).out.startswith("supported: ")
    ran = cli("check", said, "-", stdin=LOCKED_PDF)
    assert (ran.code, ran.out) == (2, "")
    assert "stdin could not be read: This PDF needs a password." in ran.err
    assert "stdin is larger than 10 MB." in cli("check", said, "-", stdin=b"a " * 6_000_000).err
    (tmp_path / "ü 1.txt").write_text(said, "utf-8")
    assert cli("check", said, (tmp_path / "ü 1.txt").as_uri()).out.startswith("supported: ")
    assert "ftp://a.example/ could not be read: " in cli("check", said, "ftp://a.example/").err


def test_the_nearest_words_are_told_as_such(cli: Cli, tmp_path: Path) -> None:
    """A passage below `misquoted` and `unclear` is not what the verdict rests on; it is text."""
    (tmp_path / "page.md").write_text("| Bridge | **opened** 1931 |\n", "utf-8")
    told = cli("check", "Many like to walk on the bridge that was opened late.", "page.md").out
    assert told.startswith("unclear: ")
    assert told.endswith("\n  The nearest words there: Bridge · opened 1931\n")


def test_a_batch_answers_line_by_line(cli: Cli, tmp_path: Path) -> None:
    """A line that is no question is named, and the others are answered."""
    asked = [
        {"id": "a", "claim": "The bridge was opened in 1931.", "text": PAGE},
        {"id": 2, "claim": "The bridge was never opened in 1931.", "text": PAGE},
        {"id": 3, "claim": "", "text": PAGE},
        {"id": 4, "claim": "The bridge was opened in 1931.", "text": " "},
    ]
    lines = [json.dumps(line) for line in asked]
    lines[1:1] = ["{no json", '{"id": NaN, "claim": "a b", "text": "c"}', '{"id": 9}', ""]
    lines += ['{"id": 1e999, "claim": "a b", "text": "c"}']
    (tmp_path / "batch.jsonl").write_text("\n".join(lines), "utf-8")
    ran = cli("check", "--batch", "batch.jsonl")
    assert ran.code == 2
    wanted = {"a": "supported", 2: "contradicted", 3: "unclear", 4: "unclear"}
    assert {e["id"]: e["verdict"] for e in ran.events} == wanted
    assert list(ran.events[0]) == ["id", "verdict", "by", "passage", "reason"]
    for n in (2, 3, 9):
        assert f"line {n}: this is no JSON." in ran.err
    for n, what in {7: "claim", 8: "text"}.items():
        assert f"line {n}: the {what} is empty." in ran.err
    assert 'line 4: an object with "id", "claim" and "text" is needed.' in ran.err


def test_ctrl_c_ends_the_wait_for_a_pipe(tmp_path: Path) -> None:
    """A named pipe, or a keyboard, may never say anything."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run = [sys.executable, "-m", "searchloop.cli", "check", "A claim.", str(pipe)]
    env = {**CLEAN, "SEARCHLOOP_HOME": str(tmp_path)}
    with subprocess.Popen(run, env=env, stderr=subprocess.PIPE) as process, pipe.open("wb"):
        process.send_signal(signal.SIGINT)  # opening went on once the command read
        try:
            assert process.communicate(timeout=60)[1].endswith(b"Stopped.\n")
        finally:
            process.kill()
    assert process.returncode == 130
