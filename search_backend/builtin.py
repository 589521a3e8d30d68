"""This project's own documents, with which the library starts.

An installed package carries them inside itself; a checkout has them where they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def builtin_documents() -> Mapping[str, str]:
    """Markdown text by path, for example README.md or search-switch.md (from docs/)."""
    packed = files("search_backend") / "builtin_docs"
    if packed.is_dir():
        return dict(_documents(packed))
    checkout = Path(__file__).resolve().parent.parent
    # Next to an installed package lie other people's files, not our README.
    return dict(_documents(checkout)) if (checkout / "pyproject.toml").is_file() else {}


def _documents(root: Traversable) -> Iterator[tuple[str, str]]:
    for name in ("README.md", "CHANGELOG.md"):
        if (root / name).is_file():
            yield name, (root / name).read_text("utf-8")
    docs = root / "docs"
    if docs.is_dir():
        for entry in sorted(docs.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".md"):
                yield entry.name, entry.read_text("utf-8")
