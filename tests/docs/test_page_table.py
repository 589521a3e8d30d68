"""The table of what the page promises names tests and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "browser" / "README.md"


def test_each_promise_names_tests_and_files_that_exist() -> None:
    """A renamed test or module takes its line along."""
    text = TABLE.read_text("utf-8")
    there = {
        name
        for path in TABLE.parent.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 50
    assert named <= there, named - there
    static = ROOT / "web" / "static"
    files = re.findall(r"`([\w.*/]+\.(?:js|css|html))`", text)
    assert all(any(static.rglob(name)) for name in files), files
    for row in text.splitlines():
        if row.startswith("|") and not row.startswith(("|---", "| promise")):
            assert row.count(" | ") == 2, row
            assert "`test_" in row.rpartition(" | ")[2], row
