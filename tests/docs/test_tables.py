"""Tables in the documents that are made from the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
