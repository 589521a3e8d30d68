"""What the documents take from the code is still so: tables and paths."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), ROOT / "bench" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(
    r"`((?:agent|bench|cli|docs|scripts|search_backend|searchloop|tests|web)/[\w./-]*)(?:::\w+)?`"
)
# What the reader of docs/guides/extending.md is to write.
TO_COME = {"agent/providers/parrot.py", "tests/recordings/parrot/"}


@each_row("script", ["provider_table", "reference"])
def test_what_is_made_from_the_code_is_fresh(script: str) -> None:
    """The table of providers and the reference say what the code says."""
    done = subprocess.run(
        [sys.executable, f"scripts/{script}.py", "--check"],
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


def test_the_readme_is_short_and_every_figure_has_its_command() -> None:
    """What, why, a picture and three ways to start; whoever wants more follows a link."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count("\n") < 120
    assert all(
        way in text for way in ("make run", "uvx --from .", "docker build", "](docs/screenshots/")
    )
    for paragraph in text.split("\n\n"):
        figures = re.findall(r"\d[\d.,]* ?(?:ms|s|MB|%)(?![\w])", paragraph)
        assert not figures or "`python -m bench" in paragraph, figures


def test_troubleshooting_names_codes_that_are_sent() -> None:
    """A code that somebody looks up is one that the program really has."""
    text = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text("utf-8")
    named = set(
        re.findall(
            r"`([a-z]+_[a-z_]+|[a-z]{4,})`", "".join(re.findall(r"\|[^|]*\|([^|]*)\|[^|]*\|", text))
        )
    )
    source = "".join(
        path.read_text("utf-8")
        for folder in ("agent", "cli", "search_backend", "searchloop", "web")
        for path in (ROOT / folder).rglob("*.py")
    )
    assert len(named) > 35
    assert [code for code in sorted(named) if f'"{code}"' not in source] == []
