"""`make run` shows what it does while it installs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.install import LOCKS, ROOT, lines_of, shares, show_progress
from tests.tables import each_row

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
    assert "searchloop: unpacking packages" in out
    assert out.endswith("\r\x1b[K")
    assert others[0].startswith("ERROR: No matching")


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """No line for each of sixty packages, and no order for a terminal."""
    show_progress(LINES, 25, live=False)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "searchloop: 10 of 25: name10",
        "searchloop: 20 of 25: name20",
        "searchloop: unpacking packages",
    ]


@each_row("name", LOCKS.values())
def test_a_lock_is_shared_out_whole(name: str) -> None:
    """Each package is in one share, with all its hashes; the shares are of one length."""
    lock = (ROOT / name).read_text("utf-8")
    wanted = sorted(line for line in lock.splitlines() if not line.startswith("#"))
    for count in (1, 2, 3, 500):
        parts = shares(lock, count)
        assert sorted("".join(map("".join, parts)).splitlines()) == wanted
        assert {len(part) for part in parts} <= {len(parts[-1]), len(parts[-1]) + 1}
        assert all("==" in each and " --hash=sha256:" in each for part in parts for each in part)


def test_lines_of_several_processes_come_whole_until_the_last_has_ended() -> None:
    """Whichever is quicker, and whichever fails."""
    ends = {"a": 0, "b": 3, "c": 0}
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-Sc",
                f"[print('{name}' * 90) for _ in range({n}00)]; raise SystemExit({code})",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n, (name, code) in enumerate(ends.items())
    ]
    said: list[list[str]] = [[] for _ in started]
    lines = list(lines_of(started, said))
    assert sorted(lines) == ["b" * 90 + "\n"] * 100 + ["c" * 90 + "\n"] * 200
    assert [len(own) for own in said] == [0, 100, 200]
    assert [process.wait() for process in started] == list(ends.values())
    for process in started:
        assert process.stdout
        process.stdout.close()
