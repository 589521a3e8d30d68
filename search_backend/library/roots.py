"""The roots of the library: folders, single files, opened pages, and this project's documents.

A file belongs to the innermost root around it, so that no hit comes twice. The user's own are noted
in a small file beside the index, so that they are known when that is damaged or gone.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchloop.search_backend.library.index import Index, Root, drop
from searchloop.search_backend.types import SearchBackendError

SCHEME = "library://"
DOCS, PAGES = "docs", "pages"


def named_root(connection: sqlite3.Connection, path: Path | str) -> Root:
    """Returns the root with this path or name. Raises SearchBackendError."""
    names = (str(Path(path).expanduser().resolve()), str(path))
    for root in _roots(connection, "(path = ? OR collection = ?) AND kind != 'docs'", *names):
        return root
    if str(path) == DOCS:
        what = "These are searchloop's own documents, which are always in the library."
        raise SearchBackendError("built_in", what, "Name a folder or file that you added.")
    what = f"{path} is not in the library."
    remedy = "Give a folder or file as the list of the library names it."
    raise SearchBackendError("not_found", what, remedy)


def _roots(connection: sqlite3.Connection, which: str, *values: object) -> list[Root]:
    query = f"SELECT id, collection, path, kind, digest FROM roots WHERE {which}"
    return [Root(*row) for row in connection.execute(query, values)]


def root_at(connection: sqlite3.Connection, target: Path) -> Root:
    """Returns the root at this path, made now if there is none."""
    base = target if target.is_dir() else target.parent
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", base.name).strip("-.") or "files"
    return ensure_root(connection, name, str(target), "folder" if target.is_dir() else "file")


def folders_around(connection: sqlite3.Connection, root: Root) -> list[tuple[Root, str]]:
    """Returns the folders around a root, each with the way from there to it, innermost first."""
    around = _roots(connection, "kind = 'folder' AND id != ?", root.id)
    prefix = [(one, one.path.rstrip("/") + "/") for one in around]
    inside = [(one, root.path[len(p) :]) for one, p in prefix if root.path.startswith(p)]
    return sorted(inside, key=lambda pair: len(pair[1]))


def roots_within(connection: sqlite3.Connection, folders: Sequence[str]) -> str:
    """Returns the numbers of these roots, named by path or collection, and of those inside them, as
    a list in SQL; "" if none are named. Raises SearchBackendError if none of them is there."""
    paths = [str(Path(folder).expanduser()).rstrip("/") for folder in folders]
    found = [
        str(number)
        for number, name, path in connection.execute("SELECT id, collection, path FROM roots")
        if name in folders or any(path == one or path.startswith(f"{one}/") for one in paths)
    ]
    if folders and not found:
        what = f"None of these folders is in the library: {', '.join(folders)[:300]}."
        remedy = "Add them with `searchloop library add`, or choose other folders."
        raise SearchBackendError("not_found", what, remedy)
    return ",".join(found)


def take_over(connection: sqlite3.Connection, root: Root) -> None:
    """Removes the documents of `root` from the folders around it: each belongs to the innermost."""
    for around, inside in folders_around(connection, root):
        start = inside if root.kind == "file" else f"{inside}/"
        inner, values = "root = ? AND substr(path, 1, ?) = ?", (around.id, len(start), start)
        query = f"SELECT id FROM documents WHERE {inner}"
        for (number,) in connection.execute(query, values).fetchall():
            drop(connection, number)
        connection.execute(f"DELETE FROM files WHERE {inner}", values)


def drop_documents(connection: sqlite3.Connection, root: int) -> int:
    select = "SELECT id FROM documents WHERE root = ?"
    numbers = connection.execute(select, (root,)).fetchall()
    for (number,) in numbers:
        drop(connection, number)
    return len(numbers)


def ensure_root(connection: sqlite3.Connection, name: str, path: str, kind: str) -> Root:
    for root in _roots(connection, "path = ?", path):
        return root
    taken = {row[0] for row in connection.execute("SELECT collection FROM roots")}
    if kind in ("folder", "file"):
        taken |= {DOCS, PAGES}
    unique = next(
        one for n in range(len(taken) + 1) if (one := f"{name}-{n + 1}" if n else name) not in taken
    )
    number = connection.execute(
        "INSERT INTO roots (collection, path, kind) VALUES (?, ?, ?)", (unique, path, kind)
    ).lastrowid
    assert number is not None
    return Root(number, unique, path, kind, "")


def drop_pages(connection: sqlite3.Connection, urls: list[str]) -> int:
    """Removes the opened pages at these addresses; returns their number."""
    query = """SELECT d.id FROM documents d JOIN roots r ON r.id = d.root
        WHERE r.kind = 'pages' AND d.url = ?"""
    found = [row for url in urls for row in connection.execute(query, (url,)).fetchall()]
    for (number,) in found:
        drop(connection, number)
    return len(found)


_NOTED = """SELECT r.path, coalesce(f.exclude, '') FROM roots r LEFT JOIN folders f ON f.root = r.id
    WHERE r.kind IN ('folder', 'file') ORDER BY r.id"""


def note(index: Index) -> None:
    """Writes the user's folders, and what each leaves out, into a file beside the index."""
    with index.open() as connection:
        rows = connection.execute(_NOTED).fetchall()
    known = [[path, exclude.splitlines()] for path, exclude in rows]
    if known != noted(index.path):
        with suppress(OSError):  # a full disk takes nothing away from a reading
            made = index.path.with_suffix(".new")
            made.write_text(json.dumps(known), "utf-8")
            made.chmod(0o600)
            made.replace(index.path.with_suffix(".folders.json"))


def noted(path: Path) -> list[list[Any]]:
    """Returns the folders noted beside the index at `path`; none if they cannot be read."""
    with suppress(OSError, ValueError, TypeError):
        rows = json.loads(path.with_suffix(".folders.json").read_text("utf-8"))
        return [[str(folder), [str(line) for line in exclude]] for folder, exclude in rows]
    return []
