"""What the documents take from the code is still so: tables and paths."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PATH = re.compile(
    r"`((?:agent|bench|cli|docs|scripts|search_backend|searchloop|tests|web)/[\w./-]*)(?:::\w+)?`"
)
# What the reader of docs/extending.md is to write.
TO_COME = {"agent/providers/parrot.py", "tests/recordings/parrot/"}


def test_the_table_of_providers_is_fresh() -> None:
    """What README.md says of the providers is what they say of themselves."""
    done = subprocess.run(
        [sys.executable, "scripts/provider_table.py", "--check"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_path_that_a_page_names_exists() -> None:
    """A reader finds what a page points at."""
    named = {(p.name, path) for p in PAGES for path in PATH.findall(p.read_text("utf-8"))}
    assert len(named) > 50
    missing = {(p, path) for p, path in named if not (ROOT / path).exists()}
    assert {path for _, path in missing} <= TO_COME, missing
