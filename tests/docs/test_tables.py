"""What the documents take from the code is still so: tables, paths, names, tests of promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import searchloop
from searchloop import ErrorCode
from tests.docs.conftest import ROOT

PAGES = [*ROOT.glob("*.md"), ROOT / "bench" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(
    r"`((?:agent|bench|cli|docs|scripts|search_backend|searchloop|tests|web)/[\w./-]*)(?:::\w+)?`"
)
# What the reader of docs/guides/extending.md is to write.
TO_COME = {"agent/providers/parrot.py", "tests/recordings/parrot/"}


FRESH = """
from scripts import event_types, provider_table, reference
raise SystemExit(any([each.main(["--check"]) for each in (event_types, provider_table, reference)]))
"""


def test_what_is_made_from_the_code_is_fresh() -> None:
    """The classes of events, the table of providers and the reference say what the code says; in a
    process of its own, which has no part of another test.
    """
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", FRESH]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
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
    column = "".join(re.findall(r"\|[^|]*\|([^|]*)\|[^|]*\|", text))
    named = set(re.findall(r"`([a-z_]+)`", column))
    assert len(named) > 35
    assert named - {*ErrorCode} == {"too_many_guesses", "refused_domain"}  # of the gate, of a page


# The fakes are a module of their own: nobody needs them who writes no tests.
IMPORT = re.compile(r"^\s*(?:from|import)\s+searchloop\.(?!testing import )\S+.*$", re.M)


def test_no_page_imports_from_an_inner_module() -> None:
    """A module may move without breaking the program of anybody who followed the documents."""
    found = [f"{p.name}: {line}" for p in PAGES for line in IMPORT.findall(p.read_text("utf-8"))]
    assert found == []


def test_each_public_name_exists_and_is_typed_as_what_it_is() -> None:
    """The table that loads names and the imports that type checkers read say the same."""
    tree = ast.parse(Path(searchloop.__file__).read_text("utf-8"))
    typed = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("searchloop.")
        for alias in node.names
    }
    loaded = {name: getattr(searchloop, name) for name in [*searchloop.__all__, "__version__"]}
    assert set(typed) == set(loaded)
    for name, (module, inner) in typed.items():
        assert loaded[name] is getattr(import_module(str(module)), inner), name


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


TABLE = ROOT / "tests" / "browser" / "README.md"


def test_each_promise_names_tests_and_files_that_exist() -> None:
    """A renamed test or module takes its line along."""
    text = TABLE.read_text("utf-8")
    there = {
        name
        for path in TABLE.parent.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 50
    assert named <= there, named - there
    static = ROOT / "web" / "static"
    files = re.findall(r"`([\w.*/]+\.(?:js|css|html))`", text)
    assert all(any(static.rglob(name)) for name in files), files
    for row in text.splitlines():
        if row.startswith("|") and not row.startswith(("|---", "| promise")):
            assert row.count(" | ") == 2, row
            assert "`test_" in row.rpartition(" | ")[2], row
