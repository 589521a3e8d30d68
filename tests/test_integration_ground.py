"""The ground that the integration tests stand on is really there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

NODE = Path(__file__).resolve().parent / "node"
pytestmark = pytest.mark.integration


def test_node_packages_are_the_pinned_ones() -> None:
    """`npm ci` has brought what tests/node/package.json names, in those versions."""
    wanted = json.loads((NODE / "package.json").read_text("utf-8"))["dependencies"]
    for name, version in wanted.items():
        found = json.loads((NODE / "node_modules" / name / "package.json").read_text("utf-8"))
        assert found["version"] == version


def test_postgresql_is_installed() -> None:
    """The store's tests start a real server of their own."""
    assert shutil.which("pg_ctlcluster")
