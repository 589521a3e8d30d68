"""Recorded traffic of providers and search engines, as rows of tests.

Our own recordings are in `tests/recordings`. A larger set can be added: the environment variable
SEARCHLOOP_RECORDINGS names its folder, with a folder for each provider. Without it a test has fewer
rows, never a skip.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "SEARCHLOOP_RECORDINGS"
OURS = Path(__file__).parent / "recordings"
LARGE_NAMES = {"openai": "openai_responses"}  # folders that have another name in the larger set


def recordings(folder: str, pattern: str = "*.json") -> list[Path]:
    """Our own recordings of a provider, in order of their names, then those of the larger set."""
    return [*sorted((OURS / folder).glob(pattern)), *large(folder, pattern)]


def large(folder: str, pattern: str = "*.json") -> list[Path]:
    """What the larger set has of a provider; nothing unless the variable names it."""
    root = os.environ.get(VARIABLE)
    return sorted(Path(root, LARGE_NAMES.get(folder, folder)).glob(pattern)) if root else []


def exchanges(path: Path) -> list[dict[str, Any]]:
    """The requests and answers of one recording."""
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["exchanges"]
    return found


def row_id(path: Path, number: int) -> str:
    """What names one exchange in a report: `ours` tells the two sets apart."""
    return f"{'ours-' if OURS in path.parents else ''}{path.stem}-{number}"


REFUSALS: list[dict[str, Any]] = json.loads((OURS / "refusals.json").read_text("utf-8"))
"""Refusals of servers, with the providers that read them, and what they mean there."""
