"""`read_file`, `list_directory` and `search_files`: the tools that read a workspace."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.tools import object_schema, text_schema
from searchloop.agent.tools.workspace.paths import (
    FOREIGN,
    SKIPPED,
    Parts,
    decoded,
    encoding_of,
    is_binary,
    is_utf8,
    matches_glob,
)
from searchloop.agent.tools.workspace.tree import Entry, Tree

_LINES, _CHARACTERS = 500, 23_500  # of one read_file, which fits a result with its head
_LISTED = 500
_LOOKED_AT, _SEARCHED, _SECONDS = 50_000, 64_000_000, 10.0
_MATCHES, _AROUND = 100, 100
_OFTEN = 1000  # lines between two looks at the clock
_NAMED = 12
PATH = text_schema("Path below the workspace, such as src/main.py")
READ_FILE = object_schema(
    {
        "path": PATH,
        "line": {"type": "integer", "minimum": 1, "description": "First line to read"},
        "lines": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "How many"},
    },
    "path",
)
LIST_DIRECTORY = object_schema(
    {
        "path": text_schema("Folder below the workspace; all of it if absent"),
        "depth": {"type": "integer", "minimum": 1, "maximum": 5},
    }
)
SEARCH_FILES = object_schema(
    {
        "text": text_schema("Text to find in a line, taken literally"),
        "glob": text_schema("Only these files: *.py, src/**/*.md"),
        "path": text_schema("Folder to search; the workspace if absent"),
        "match_case": {"type": "boolean"},
    }
)


def read_file(tree: Tree, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns some lines of a text file, and their place as details. Raises ToolError."""
    found = tree.read(tree.parts(arguments["path"]))
    lines = decoded(found.data, found.path).replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    first = arguments.get("line", 1)
    if first > max(1, len(lines)):
        what = f"{found.path} has {len(lines)} lines; there is no line {first}."
        raise ToolError("no_such_line", what, "Ask for an earlier one.")
    wanted = _fitted(lines[first - 1 : first - 1 + arguments.get("lines", _LINES)])
    last = first + max(0, len(wanted) - 1)
    head = f"{found.path}, lines {first}-{last} of {len(lines)}."
    if last < len(lines):
        head += f" Go on with line={last + 1}."
    if not lines:
        head = f"{found.path} is empty."
    if not is_utf8(found.data):
        head += " It is not UTF-8: letters that are not English may be read wrongly."
    details = {"kind": "file", "path": found.path, "line": first, "last": last, "lines": len(lines)}
    return "\n".join([head, "", *wanted] if wanted else [head]), details


def _fitted(lines: list[str]) -> list[str]:
    """Returns the lines that fit one answer, and the first in any case."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return lines[: max(1, sum(size <= _CHARACTERS for size in sizes))]


def list_directory(tree: Tree, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Lists a folder, one entry a line. Raises ToolError."""
    parts = tree.parts(arguments.get("path", ""), "folder")
    depth = arguments.get("depth", 1)
    walk = Walk(tree, _LISTED, depth=depth)
    listed = [_described(entry, len(parts)) for entry in walk.below(parts)]
    name = "/".join(parts) or "The workspace"
    head = f"{name} holds {len(listed)} things" if listed else f"{name} is empty"
    if walk.cut:
        head = f"The first {len(listed)} things in {name}; name a folder in it for the rest"
    text = "\n".join([f"{head}.{walk.left_out()}", *listed])
    return text, {"kind": "folder", "path": "/".join(parts), "count": len(listed)}


def _described(entry: Entry, base: int) -> str:
    path = "/".join(entry.parts[base:])
    if entry.kind == "folder":
        return f"{path}/" + (" (secret, not readable)" if entry.secret else "")
    if entry.kind != "file":
        return f"{path} ({entry.kind}, not usable)"
    return f"{path} ({'secret, not readable' if entry.secret else f'{entry.size:,} bytes'})"


def search_files(tree: Tree, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Finds lines that hold a text, or files that fit a glob. Raises ToolError."""
    text, glob = arguments.get("text", ""), arguments.get("glob", "")
    if not text and not glob:
        raise ToolError("nothing_to_find", "Neither text nor glob was given.", "Give one of them.")
    if "\n" in text:
        raise ToolError("bad_text", "text has more than one line.", "Search for one of them.")
    if len(glob) > 500 or glob.count("/") > 60 or "{" in glob or ".." in glob.split("/"):
        what = f"The glob {glob[:200]!r} is long, or has braces or '..', which mean nothing here."
        raise ToolError("bad_glob", what, "Use *, ? and [] once for each ending; path is a folder.")
    parts = tree.parts(arguments.get("path", ""), "folder")
    walk = Walk(tree, _LOOKED_AT, depth=64, skip=True)
    pattern = re.compile(re.escape(text), 0 if arguments.get("match_case") else re.IGNORECASE)

    def fits(entry: Entry) -> bool:
        return (
            entry.kind == "file"
            and not entry.secret
            and (not glob or matches_glob(entry.parts[len(parts) :], glob))
        )

    hits = (
        (entry.path, hit)
        for entry in filter(fits, walk.below(parts))
        for hit in (_hits(tree, entry, pattern, walk) if text else (entry.path,))
    )
    found = list(islice(hits, _MATCHES))
    walk.cut = walk.cut or len(found) == _MATCHES
    files = len({path for path, _ in found})
    what = f"{len(found)} lines in {files} files" if text else f"{len(found)} files"
    head = f"{what}." if found else "Nothing found."
    if walk.cut:
        head += " The search was cut short there: narrow it with path or glob."
    details = {"kind": "file_search", "count": len(found), "cut": walk.cut}
    return "\n".join([head + walk.left_out(), *(hit for _, hit in found)]), details


def _hits(tree: Tree, entry: Entry, pattern: re.Pattern[str], walk: Walk) -> Iterator[str]:
    """Yields `path:line: text` for each match; nothing of binary or closed files."""
    if entry.size > _SEARCHED:
        walk.skipped.add(f"{entry.path} (too large)")
        return
    try:
        with (
            tree.folder(entry.parts[:-1]) as here,
            tree.open(here, entry.parts) as descriptor,
            os.fdopen(descriptor, "rb", closefd=False) as file,
        ):
            head = file.peek()
            if is_binary(head):
                return
            text = io.TextIOWrapper(file, encoding_of(head), FOREIGN, newline="\n")
            for number, line in enumerate(text, 1):
                if match := pattern.search(line.rstrip("\r\n")):
                    yield f"{entry.path}:{number}: {_around(match)}"
                if number % _OFTEN == 0 and walk.late():
                    return
    except (ToolError, OSError):
        return  # a link, a hard link, gone meanwhile


def _around(match: re.Match[str]) -> str:
    """Returns a match with the text of its line around it."""
    left, right = max(0, match.start() - _AROUND), match.end() + _AROUND
    cut = ("…" if left else "", "…" if right < len(match.string) else "")
    return f"{cut[0]}{match.string[left:right].strip()}{cut[1]}"


@dataclass
class Walk:
    """A walk through folders that ends after `most` entries or ten seconds; `cut` says so."""

    tree: Tree
    most: int
    depth: int
    skip: bool = False
    cut: bool = False
    skipped: set[str] = field(default_factory=set)
    ends: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def below(self, parts: Parts) -> Iterator[Entry]:
        """Walks a folder, parents first. Raises ToolError for `parts` itself."""
        waiting = list(reversed(self.tree.entries(parts)))
        count = 0
        while waiting:
            entry = waiting.pop()
            count += 1
            if count > self.most or self.late():
                self.cut = True
                return
            yield entry
            if entry.kind == "folder" and len(entry.parts) - len(parts) < self.depth:
                waiting.extend(reversed(self._inside(entry)))

    def _inside(self, entry: Entry) -> list[Entry]:
        if not entry.secret and not (self.skip and entry.parts[-1] in SKIPPED):
            with suppress(ToolError):  # closed to us, or gone meanwhile
                return self.tree.entries(entry.parts)
        self.skipped.add(entry.path)
        return []

    def left_out(self) -> str:
        """Says what was not searched, as a sentence; empty when everything was."""
        names = sorted(self.skipped)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f" Not looked into: {', '.join(names[:_NAMED])}{more}." if names else ""

    def late(self) -> bool:
        """Returns whether the time is over."""
        self.cut = self.cut or time.monotonic() > self.ends
        return self.cut
