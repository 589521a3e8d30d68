"""`make run` shows what it does while it installs."""

from __future__ import annotations

import pytest

from scripts.install import show_progress

PIP = [
    "Looking in indexes: https://x.example/simple\n",
    *(
        f"Collecting name{n}==1.{n} (from -r requirements.lock (line {n}))\n"
        f"  Downloading name{n}-1.{n}-py3-none-any.whl (10 kB)\n"
        for n in range(1, 26)
    ),
    "ERROR: No matching distribution found for other==2\n",
    "Installing collected packages: name1, name2\n",
    "Successfully installed name1-1.1\n",
]
LINES = [line + "\n" for line in "".join(PIP).splitlines()]


def test_a_terminal_shows_each_package_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The line is gone in the end; what pip says is wrong is not lost."""
    others = show_progress(LINES, 25, live=True)
    out = capsys.readouterr().out
    assert "\n" not in out
    assert "searchloop: 1 of 25: name1" in out
    assert "searchloop: unpacking 25 packages" in out
    assert out.endswith("\r\x1b[K")
    assert others[0].startswith("ERROR: No matching")


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """No line for each of sixty packages, and no order for a terminal."""
    show_progress(LINES, 25, live=False)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "searchloop: 10 of 25: name10",
        "searchloop: 20 of 25: name20",
        "searchloop: unpacking 25 packages",
    ]
