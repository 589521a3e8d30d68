"""Editors and type checkers resolve what the project and its documents import, without settings."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import pyright
from tests.docs.test_examples import BLOCKS
from tests.source_tree import ROOT

pytestmark = pytest.mark.integration

# One of each package and floor, and of what stands beside them.
FILES = (
    *("agent/loop.py", "agent/run/runner.py", "agent/providers/openai/__init__.py"),
    *("search_backend/api/app.py", "search_backend/fetch/fetch.py"),
    *("search_backend/library/__init__.py", "searchloop/library.py"),
    *("searchloop/compose/__init__.py", "searchloop/render/markdown.py", "web/app.py"),
    *("web/api/__init__.py", "cli/ask.py", "cli/serve.py", "tests/searchloop/test_faces.py"),
    *("bench/claims.py", "scripts/reference.py"),
)
UNRESOLVED = {"reportMissingImports", "reportMissingModuleSource", "reportAttributeAccessIssue"}


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, str]:
    """Every example in Python of the README and docs/ as a file of its own: name -> place.

    Those of docs/programs ask with packages of other makers, which are not all here, and read what
    only our answers hold; tests/docs/test_program_pages.py runs them.
    """
    ours = (block for block in BLOCKS if not block.place.startswith("docs/programs/"))
    found = [block for block in ours if block.language in ("python", "py")]
    assert len(found) > 20
    for number, block in enumerate(found):
        (tmp_path / f"example_{number}.py").write_text(block.code, "utf-8")
    return {f"example_{number}.py": block.place for number, block in enumerate(found)}


def test_an_editor_resolves_every_import(examples: dict[str, str], tmp_path: Path) -> None:
    """Names of one module are found by one way only, which is the installed one; and whoever copies
    an example of the documents sees no red line."""
    copied = map(tmp_path.joinpath, examples)
    found = pyright.errors(ROOT, [*map(ROOT.joinpath, FILES), *copied])
    wrong = {Path(e["file"]).name: e for e in found}
    assert [e for e in found if e.get("rule") in UNRESOLVED] == []
    assert [(examples[name], wrong[name]["message"]) for name in examples.keys() & wrong] == []


def test_mypy_takes_the_documents_examples(examples: dict[str, str], tmp_path: Path) -> None:
    """Strictly: what is copied passes in a project that asks for as much."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file="]
    done = subprocess.run(
        [*mypy, "--cache-dir", str(tmp_path / "cache"), *examples],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = Counter(line.partition(":")[0] for line in done.stdout.splitlines() if "error:" in line)
    assert {examples[name]: n for name, n in wrong.items()} == {}, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
