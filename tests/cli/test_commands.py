"""`search`, `open`, `library` and `models`: plain words, the right exit code, safe output."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.cli.arguments import as_json, number, safe
from searchloop.cli.main import parse
from tests.cli.conftest import CLEAN, ROOT, Cli
from tests.tables import each_row


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["search", " "], 2, "The query is empty. Write what to search for."),
        (["search", "--engine", "nope", "x"], 2, "no engine named 'nope'"),
        (["open", ""], 2, "The address is empty."),
        (["open", "ftp://a.example/"], 2, "not an absolute http or https address"),
        (["open", "http://127.0.0.1:9/"], 1, "No public web server could be reached"),
        (["library", "add", "/no/such/folder"], 2, "Check the path."),
        (["library", "remove", "/no/such/folder"], 2, "is not in the library"),
        (["library", "remove", "docs"], 2, "own documents, which are always in the library"),
    ],
)
def test_bad_input_has_its_own_code(cli: Cli, args: list[str], code: int, words: str) -> None:
    """What the user can correct ends in 2, what failed in 1; both in one sentence."""
    ran = cli(*args, SEARCHLOOP_OFFLINE="")
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_a_question_needs_no_command(cli: Cli) -> None:
    """Words that are no command are asked; one that is nearly a command is a mistake."""
    asked = cli("What is the switch?", "-o", "json")
    assert (asked.code, asked.json["model"]) == (0, "builtin:extractive")
    assert cli("--no-web", "hello", "-o", "json").json["search_path"] == "off"
    mistyped = cli("modles")
    assert (mistyped.code, "invalid choice: 'modles'" in mistyped.err) == (2, True)
    assert parse(["search-backend", "--port", "4000"]).port == 4000
    assert cli("help").out.startswith("usage: searchloop")


@each_row("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_fault(tmp_path: Path, closed: str) -> None:
    """The answer comes where there is a place for it, and never a traceback."""
    env = {**CLEAN, "HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path)}
    line = f"{shlex.quote(sys.executable)} -m searchloop.cli ask hi {closed}"
    ran = subprocess.run(
        ["sh", "-c", line], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
    assert ("I am not a language model" in ran.stdout) == (closed != ">&-")


def test_a_setting_of_the_search_backend_is_bad_input_too(cli: Cli) -> None:
    """Whichever of our parts reads it."""
    ran = cli("search", "x", SEARCH_ALLOW_RANGES="0.0.0.0/0")
    assert (ran.code, ran.out) == (2, "")
    assert "too wide to be opened" in ran.err


def test_text_that_is_not_in_the_page_is_said(cli: Cli) -> None:
    """An empty page is no answer to --find."""
    ran = cli("open", "library://docs/README.md", "--find", "zxqwv")
    assert (ran.code, ran.out.count("\n")) == (0, 3)
    assert "The page has no such text." in ran.err


def test_one_is_not_many(cli: Cli, tmp_path: Path) -> None:
    """Counts agree with what they count."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "zebra.md").write_text("# Zebras\n\nZebras eat grass, and hay.\n")
    cli("library", "add", "notes")
    assert "1 result · used Library" in cli("search", "--engine", "library", "zebras").err
    assert " 1 document  " in cli("library", "list").out
    assert cli("library", "remove", "notes").out.startswith("1 document forgotten")
    assert number(2, "page") == "2 pages"


def test_what_a_model_lacks_is_a_sentence(cli: Cli) -> None:
    """Missing keys and missing servers read as such."""
    told = cli("models").out
    assert "Not available without OPENAI_API_KEY. Set OPENAI_API_KEY" in told
    assert "Not available now: " in told


@given(st.text(st.characters(codec="utf-8")))
def test_json_cannot_steer_the_terminal(text: str) -> None:
    """JSON keeps every character and prints none that `safe` takes away."""
    line = as_json({"title": text})
    assert json.loads(line) == {"title": text}
    assert safe(line) == line
    assert "\n" not in line


def test_a_folder_is_added_with_patterns_paused_and_listed(cli: Cli, tmp_path: Path) -> None:
    """What is left out or kept is counted; pausing what is not being read changes nothing."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text("Zebras eat grass.")
    added = cli("library", "add", "notes", "-x", "b.*")
    assert added.out == "notes: 1 added, 0 updated, 0 unchanged, 0 removed, 1 skipped\n"
    assert "  skipped: left out by your patterns: b.md" in added.err
    assert cli("library", "pause", "notes").code == 0
    assert "(1 skipped)" in cli("library", "list").out
    folder.rename(tmp_path / "away")
    assert "1 kept with their old text" in cli("library", "add", "notes").out
    assert "1 with old text" in cli("library", "list").out
    assert "[The file" in cli("search", "--engine", "library", "zebras").out
