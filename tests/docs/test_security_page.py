"""Each promise of the security page and of the guarantees names tests that are really there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["security.md", "guarantees.md"])
def test_the_tests_behind_the_promises_exist(page: str) -> None:
    """A promise whose test was renamed or removed is no promise."""
    text = (ROOT / "docs" / "about" / page).read_text("utf-8")
    named = NAMED.findall(text)
    assert len(named) > 15
    missing = []
    for file, test in named:
        path = ROOT / file
        source = path.read_text("utf-8") if path.is_file() else ""
        if not source or (test and not re.search(rf"\b{test}\b", source)):
            missing.append(f"{file}::{test}")
    assert not missing
