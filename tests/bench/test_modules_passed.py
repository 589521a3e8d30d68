"""How many modules one question passes: what somebody has to read to follow it."""

from __future__ import annotations

import subprocess
import sys

from tests.source_tree import ROOT

# Of the project's modules, for one question with one model step. The last of them looks whether the
# chat still fits the window of its model.
MOST = 46


def test_one_question_passes_few_modules() -> None:
    """A question with one model step does not wander through the whole house."""
    command = [sys.executable, "-m", "bench.modules_passed"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    head, *names = ran.stdout.splitlines()
    assert head == f"{len(names)} modules"
    assert "  agent.loop" in names
    assert len(names) <= MOST, ran.stdout
