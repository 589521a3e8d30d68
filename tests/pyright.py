"""pyright as an editor runs it: told which Python to use, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.source_tree import ROOT

PROGRAM = ROOT / "tests" / "node" / "node_modules" / ".bin" / "pyright"


def errors(folder: Path, files: Iterable[Path], python: str = sys.executable) -> list[Any]:
    """What it finds in these files: {file, rule, message, range} each. `make node` brings it."""
    assert PROGRAM.exists(), "make node"
    paths = [str(path) for path in files]
    command = [str(PROGRAM), "--outputjson", "--pythonpath", python, *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == len(paths), done.stderr
    return [each for each in told["generalDiagnostics"] if each["severity"] == "error"]
