"""`search`, `open`, `library` and `models`: plain words, the right exit code, safe output."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from searchloop.cli.arguments import number
from searchloop.cli.main import parse
from tests.cli.conftest import CLEAN, ROOT, Cli
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.pages.test_reading import case
from tests.tables import each_row


def test_a_question_needs_no_command(cli: Cli) -> None:
    """Words that are no command are asked, also one alone, with a question mark or among others."""
    for words in (["Photosynthesis"], ["undo?"], ["find", "me", "a", "tide"], ["list tides"]):
        assert parse(words).question == words
    asked = cli("What is the switch?", "-o", "json")
    assert (asked.code, asked.json["model"]) == (0, "builtin:extractive")
    assert cli("--no-web", "hello", "-o", "json").json["search_path"] == "off"
    assert parse(["search-backend", "--port", "4000"]).port == 4000
    assert cli("help").out.startswith("usage: searchloop")


PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
STREAMS = {  # a line of the shell -> its exit code, and a word of what is shown
    "searchloop ask hi <&-": (0, "I am not a language model"),
    "searchloop ask hi >&-": (0, "builtin:extractive"),
    "searchloop chat <&- >&- 2>&-": (0, ""),
    "searchloop export nowhere 2>&-": (2, ""),
    "searchloop --version > /dev/full": (1, "searchloop: No space left on device.\n"),
    "searchloop config -o json > /dev/full": (1, "searchloop: No space left on device.\n"),
    "yes | searchloop ask": (2, "1,000,000 is the most"),
    # a text that is cut within a sign
    "yes 潮潮 | head -c 5000000 > $HOME/a; searchloop ask < $HOME/a": (2, "1,000,000 is the most"),
    "yes | searchloop check a -": (2, "larger than 10 MB"),
    "yes | searchloop mcp add --json -": (2, "more than 4,000,000 characters"),
    "searchloop models -o json | head -c 1": (0, "{"),
    f"echo '{PING}' | searchloop mcp serve | true": (0, "speaks MCP"),
    "printf '\\377' | searchloop ask": (2, "not UTF-8"),
    "printf '\\377' | searchloop chat": (2, "not UTF-8"),
}


@each_row("typed", list(STREAMS))
def test_streams_that_are_closed_full_or_endless_are_no_fault(tmp_path: Path, typed: str) -> None:
    """What there is to say comes where there is a place for it, and never a traceback."""
    env = {**CLEAN, "HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path), "COLUMNS": "40"}
    line = typed.replace("searchloop", f"{shlex.quote(sys.executable)} -m searchloop.cli", 1)
    ran = subprocess.run(
        ["sh", "-c", line], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    told = ran.stdout + ran.stderr
    assert ran.returncode == STREAMS[typed][0]
    assert STREAMS[typed][1] in told
    assert "Traceback" not in told
    assert "\x1b" not in told


LISTINGS = {  # each that there is -> the key of its list
    "models": "models",
    "agents": "agents",
    "projects": "projects",
    "sessions": "sessions",
    "sessions find x": "sessions",
    "library": "collections",
    "mcp": "servers",
    "mcp list": "servers",
    "setup": "parts",
    "config": "settings",
    "plugins": "plugins",
    "doctor": "findings",
}


@each_row("typed", list(LISTINGS))
def test_each_listing_is_there_as_json(cli: Cli, typed: str) -> None:
    """On one line, for other programs."""
    ran = cli(*typed.split(), "-o", "json")
    assert LISTINGS[typed] in ran.json
    assert ran.out.count("\n") == 1


@each_row(("pager", "lines", "shown"), [("sed s/^/P:/", "9", "P:S"), ("", "9", "S")])
def test_a_long_listing_goes_through_the_pager(
    tmp_path: Path, pager: str, lines: str, shown: str
) -> None:
    """On a terminal whose window is shorter, where PAGER names a program."""
    env = {**CLEAN, "HOME": str(tmp_path), "TERM": "xterm", "PAGER": pager, "LINES": lines}
    screen, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "searchloop.cli", "config"],
        env=env,
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
    ):
        os.close(theirs)
        assert os.read(screen, 4096).decode().startswith(shown)
        with suppress(OSError):  # it has ended
            while os.read(screen, 4096):
                pass
    os.close(screen)


def test_a_setting_of_the_search_backend_is_bad_input_too(cli: Cli) -> None:
    """Whichever of our parts reads it."""
    ran = cli("search", "x", SEARCH_ALLOW_RANGES="0.0.0.0/0")
    assert (ran.code, ran.out) == (2, "")
    assert "is no range of addresses that can be opened" in ran.err


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


def test_a_folder_is_added_with_patterns_and_listed(cli: Cli, tmp_path: Path) -> None:
    """What is left out or kept is counted."""
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


SEARXNG = {"SEARCHLOOP_OFFLINE": "", "SEARCH_ENGINES": "searxng"}


def test_what_a_wish_left_out_is_said(cli: Cli) -> None:
    """Nothing in a time range: searched again without it; what is outside the sites is counted. A
    date stands beside the title."""
    hit = {"url": "https://a.example/", "title": "A", "content": "x"}
    hit["publishedDate"] = "2026-03-04"
    other = {"url": "https://b.example/", "title": "B", "content": "x"}

    def moody(received: Received) -> Reply:
        return json_reply({"results": [] if "time_range" in received.path else [hit, other]})

    with FakeServer(moody) as server:
        ranged = cli("search", "tea", "--time-range", "d", SEARXNG_URL=server.url, **SEARXNG)
        kept = cli("search", "tea", "--domain", "a.example", SEARXNG_URL=server.url, **SEARXNG)
    lifted = "Nothing was found with time_range=d, so the search was repeated without."
    assert lifted in ranged.err
    assert "1 result left out by allowed_domains=a.example." in kept.err
    assert kept.out == "1. A (2026-03-04)\n   https://a.example/\n   x\n"


def test_a_page_says_who_read_it(cli: Cli) -> None:
    """The page's text, for people and for programs. The address needs no look-up."""
    with FakeServer(lambda _: json_reply(case("jina", "").good)) as service:
        here = {**case("jina", service.url).settings, "SEARCHLOOP_OFFLINE": ""}
        read = ("open", "http://93.184.216.34/tea", "--reader", "jina")
        told, shown = cli(*read, "-o", "json", **here).json, cli(*read, **here)
    assert (told["status"], told["reader"], told["error"]) == ("ok", "jina", None)
    assert "is brewed" in told["content"]
    assert "is brewed" in shown.out
    assert "Read by" in shown.err
