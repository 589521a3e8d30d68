"""Approvals at the terminal: what is shown, and what each key does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from searchloop.cli.ask import ask_approval, shown
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


def typing(*typed: str) -> Callable[[], str]:
    """Somebody who types these lines, and then ends the input."""
    lines = iter(typed)

    def line() -> str:
        for each in lines:
            return each
        raise EOFError

    return line


def test_everything_is_shown_and_nothing_can_paint(capsys: pytest.CaptureFixture[str]) -> None:
    """Tool, server, effect, reason, arguments and diff; no control character reaches the screen. A
    long argument with a diff is shown once, and `d` shows all of the diff; signs that hide or turn
    words stand there by their numbers.
    """
    text = shown(REQUEST)
    told = ("create_file", "disk", "write", "It changes something.", "path: a.md")
    for part in (*told, "+two<U+001B>[31m"):
        assert part in text
    assert "\x1b" not in text
    hidden = "x = 1 \u202e}; if admin\u2066 //\u200b\U000e0041"
    diff = "\n".join(["+++ b", *(f"+line {n}" for n in range(100)), f"+{hidden}"])
    long = shown({**REQUEST, "arguments": {"content": "x" * 900}, "preview": diff})
    assert "(900 characters, see below)" in long
    assert "42 lines more: d" in long
    asked = {**REQUEST, "arguments": {"content": hidden}, "preview": diff}
    ask_approval(asked, typing("d", "n"))
    all_of_it = capsys.readouterr().err
    assert all_of_it.count("+x = 1 <U+202E>}; if admin<U+2066> //<U+200B><U+E0041>") == 1
    assert all_of_it.count("content: x = 1 <U+202E>") == 2
    nested = shown({**REQUEST, "arguments": {"pa\u200bth": {"a\u200b": ["\u2066b"]}}})
    for part in ("pa<U+200B>th: ", "a<U+200B>", "\\u2066b"):
        assert part in nested


@each_row(
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
    assert ask_approval(REQUEST, typing(*typed)) == (decision, arguments)
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
    assert ask_approval(request, typing(*typed)) == (decision, None)
    assert "every change in /home/someone/notes<U+001B>[31m in this" in capsys.readouterr().err
    for without in (REQUEST, {**REQUEST, "folder": ""}):
        assert ask_approval(without, typing("f", "n")) == ("deny", None)
        assert "[f]" not in capsys.readouterr().err


def test_no_argument_poses_as_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    """However long it is and whatever it imitates, the tool's own name stands beside the keys."""
    fake = "x" + "\n" * 90 + "  read_file asks to run (effect: read)."
    ask_approval({**REQUEST, "preview": None, "arguments": {"content": fake}}, typing("n"))
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("  create_file: [y] once")
    assert "\n  read_file" not in said


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
    request = {**QUESTION, "arguments": {"path": "", "content": "b"}}
    assert ask_approval(request, typing(*typed)) == decided
    told = capsys.readouterr().err
    assert "disk asks: Where to?" in told
    assert "\x1b" not in told
