"""The line of a chat: what Tab offers, what is remembered, and where; the last answer again."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from searchloop.cli.terminal.line_editor import HISTORY, PATHS, LineEditor
from tests.cli.conftest import Cli
from tests.cli.screen import Terminal, online, said, serving
from tests.tables import each_row

CHOICES: dict[str, Any] = {
    "mode": lambda: ("ask", "plan", "agent"),
    "model": lambda: ("fast", "ollama:qwen3:8b", "ollama:llama3"),
    "file": lambda: [PATHS],
    "help": tuple,
}


@each_row(
    ("line", "offered"),
    [
        ("/m", ["/mode ", "/model "]),
        ("/h", ["/help "]),
        ("/nothing", []),
        ("/mode ", ["agent", "ask", "plan"]),
        ("/mode p", ["plan"]),
        ("/model ollama:", ["ollama:llama3", "ollama:qwen3:8b"]),
        ("/help x", []),
        ("/nope x", []),
        ("//mode ", []),
        ("mode", []),
        ("", []),
        ("/file n", [f"notes{os.sep}"]),
        ("/file notes/", [os.path.join("notes", "a.txt"), os.path.join("notes", "b.md")]),
        ("/file notes/b", [os.path.join("notes", "b.md")]),
        ("/file gone/", []),
    ],
)
def test_tab_offers_what_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    """Commands, their choices, files; nothing inside a question."""
    (tmp_path / "notes").mkdir(exist_ok=True)
    for name in ("a.txt", "b.md", ".hidden"):
        (tmp_path / "notes" / name).write_text("", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert LineEditor(None, CHOICES).completions(line) == [
        o.replace("/", os.sep) if "notes" in o else o for o in offered
    ]


class Keys:
    """What `readline` is told."""

    __doc__ = "editline: libedit"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bound: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return {"add_history": self.lines.append, "parse_and_bind": self.bound.append}.get(
            name, lambda *_: None
        )


def test_history_is_kept_across_starts_for_the_user_alone(tmp_path: Path) -> None:
    """Each line once in a row, on one line, not too many; also where there is no readline."""
    first = LineEditor(tmp_path, CHOICES, Keys())
    first.open()
    for line in ("one", "one", " ", "two\nlines", "x" * 3000, "three"):
        first.add(line)
    keys = Keys()
    second = LineEditor(tmp_path, CHOICES, keys)
    second.open()
    assert keys.lines == ["one", "two lines", "three"]
    assert keys.bound == ["bind ^I rl_complete"]
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / HISTORY).stat().st_mode) == 0o600
    for number in range(1100):
        second.add(f"line {number}")
    assert len((tmp_path / HISTORY).read_text("utf-8").splitlines()) == 1000


def test_a_history_that_cannot_be_written_ends_no_chat(tmp_path: Path) -> None:
    """Nor does one that cannot be read."""
    (tmp_path / HISTORY).mkdir()
    editor = LineEditor(tmp_path, CHOICES, Keys())
    editor.open()
    editor.add("on")


def test_tab_and_the_arrows_work_on_a_terminal(tmp_path: Path) -> None:
    """In a real terminal, with the real readline."""
    with serving(said("Six.")) as server:
        with Terminal(tmp_path, TERM="xterm", NO_COLOR="1", **online(server)) as terminal:
            terminal.until("\n> ")
            terminal.type("/hel\t\r")
            terminal.until("/retry")
            terminal.until("\n> ")
            terminal.type("When is ebb?\r")
            terminal.until("Six.")
            terminal.until("\n> ")
        with Terminal(tmp_path, TERM="xterm", NO_COLOR="1", **online(server)) as terminal:
            terminal.until("\n> ")
            terminal.type("\x1b[A")
            terminal.until("When is ebb?")


def test_the_last_question_is_asked_again_in_its_place(cli: Cli, tmp_path: Path) -> None:
    """/retry; then /export writes the chat as its name says, and overwrites nothing."""
    lines = "/retry\n/export\nWhen is ebb?\n/retry\n/export chat.md\n/export chat.md\n"
    with serving(said("Five."), said("Six.")) as server:
        ran = cli("chat", stdin=lines, **online(server))
    assert ran.code == 0
    assert ran.out.split() == ["Five.", "Six."]
    assert ran.err.count("Nothing was asked yet.") == 1
    assert "Which file?" in ran.err
    assert "is there already" in ran.err
    chat = (tmp_path / "chat.md").read_text("utf-8")
    assert ("Six." in chat, "Five." in chat, chat.count("When is ebb?") > 0) == (True, False, True)
