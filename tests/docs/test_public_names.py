"""What the documents import is public: it comes from `searchloop` itself, with its types."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import searchloop

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
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
