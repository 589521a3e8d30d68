"""Approvals at the terminal: what is shown, and what each key does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from searchloop.cli.ask import ask_approval, settled, shown
from tests.tables import each_row

REQUEST: Mapping[str, Any] = {
    "call_id": "c",
    "name": "create_file",
    "arguments": {"path": "a.md", "content": "one\ntwo\x1b[31m"},
    "effect": "write",
    "server": "disk",
    "why": "It changes something.",
    "preview": "--- /dev/null\n+++ a.md\n+one\n+two\x1b[31m",
}


def test_everything_is_shown_and_nothing_can_paint() -> None:
    """Tool, server, effect, reason, arguments and diff; no control character reaches the screen."""
    text = shown(REQUEST)
    for part in (
        "create_file",
        "disk",
        "write",
        "It changes something.",
        "path: a.md",
        "+two<U+001B>[31m",
    ):
        assert part in text
    assert "\x1b" not in text


def test_a_long_argument_with_a_diff_is_shown_once() -> None:
    """The diff shows it; the count says that it is there, and long diffs say how long."""
    diff = "\n".join(f"+line {n}" for n in range(100))
    text = shown({**REQUEST, "arguments": {"content": "x" * 900}, "preview": diff})
    assert "(900 characters, see below)" in text
    assert "40 lines more: d" in text


def test_all_of_a_diff_and_what_nobody_sees_in_it_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`d` shows every line; signs that hide or turn words stand there by their numbers."""
    hidden = "x = 1 \u202e}; if admin\u2066 //\u200b\U000e0041"
    diff = "\n".join(["+++ b", *(f"+line {n}" for n in range(100)), f"+{hidden}"])
    keys = iter(["d", "n"])
    given = {"content": hidden}
    ask_approval({**REQUEST, "arguments": given, "preview": diff}, lambda: next(keys))
    told = capsys.readouterr().err
    assert told.count("+x = 1 <U+202E>}; if admin<U+2066> //<U+200B><U+E0041>") == 1
    assert told.count("content: x = 1 <U+202E>") == 2


@pytest.mark.parametrize(
    ("typed", "decision", "arguments"),
    [
        (["y"], "once", None),
        (["A"], "always", None),
        (["n"], "deny", None),
        ([""], "deny", None),
        ([], "deny", None),  # the end of input
        (["what?", "y"], "once", None),
        (["e", '{"path": "b.md"}', "y"], "once", {"path": "b.md"}),
        (["e", "not json", "y"], "once", REQUEST["arguments"]),
        (["e", "[1]", "n"], "deny", REQUEST["arguments"]),
        (["e", "", "y"], "once", REQUEST["arguments"]),
    ],
)
def test_the_keys(
    typed: list[str], decision: str, arguments: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """y, a, n and e; whatever is unclear is asked again, silence is a no."""
    lines = iter(typed)

    def typing() -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    assert ask_approval(REQUEST, typing) == (decision, arguments)
    assert capsys.readouterr().out == ""


@each_row(
    ("typed", "decision"),
    [(["f"], "folder"), (["Folder"], "folder"), (["y"], "once"), (["a"], "always")],
)
def test_a_change_in_the_work_folder_can_allow_the_folder(
    typed: list[str], decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt names it; of any other call it is no answer, and asked about again."""
    request = {**REQUEST, "folder": "/home/someone/notes\x1b[31m"}
    assert ask_approval(request, iter(typed).__next__) == (decision, None)
    assert "[f] every change in /home/someone/notes[31m in this session" in capsys.readouterr().err
    for without in (REQUEST, {**REQUEST, "folder": ""}):
        assert ask_approval(without, iter(["f", "n"]).__next__) == ("deny", None)
        assert "[f]" not in capsys.readouterr().err


def test_without_a_terminal_nobody_is_asked() -> None:
    """The tests run without one; `auto` and `never` are taken as said."""
    assert settled(None, "json") == "never"
    assert settled("ask", "json") == "never"
    assert settled("auto", "text") == "auto"


QUESTION = {**REQUEST, "preview": None, "question": True, "why": "disk asks: Where to?\x1b[31m"}


@each_row(
    ("typed", "decided"),
    [
        (["x.md", ""], ("once", {"path": "x.md", "content": "b"})),
        (["-"], ("deny", None)),
        ([], ("deny", None)),
    ],
)
def test_a_question_is_asked_field_by_field(
    capsys: pytest.CaptureFixture[str], typed: list[str], decided: object
) -> None:
    """Enter keeps what stands there; a minus, or no input, declines."""
    lines = iter(typed)

    def line() -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    request = {**QUESTION, "arguments": {"path": "", "content": "b"}}
    assert ask_approval(request, line) == decided
    told = capsys.readouterr().err
    assert "disk asks: Where to?" in told
    assert "\x1b" not in told
