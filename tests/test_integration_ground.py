"""The ground that the integration tests stand on is really there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NODE = ROOT / "tests" / "node"
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


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_clone_with_nothing_beside_it_collects_every_test(tmp_path: Path, ci: str) -> None:
    """No test reads above the root of the repository, where a clone elsewhere has nothing."""
    clone = tmp_path / "empty folder, äöü" / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), clone], check=True)
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-m", ""]
    ran = subprocess.run(
        [*collect, "-p", "no:cacheprovider"],
        cwd=clone,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(clone)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert "tests/agent/providers" in ran.stdout
