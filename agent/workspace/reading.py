"""`read_file`, `list_directory` and `search_files`: what a model may see of a workspace."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.errors import ToolError
from agent.workspace.names import SKIPPED, Parts, matches_glob
from agent.workspace.tree import Entry, Tree
from agent.workspace.words import decoded, is_binary

_LINES, _CHARACTERS = 500, 24_000  # of one read_file
_LISTED, _DEEPEST = 500, 5
_LOOKED_AT, _SEARCHED, _SECONDS = 50_000, 64_000_000, 10.0
_MATCHES, _AROUND = 100, 100
_BLOCK = 4_000_000
_NAMED = 12
_PATH = {"type": "string", "description": "Path below the workspace, such as src/main.py"}

READ_FILE = {
    "type": "object",
    "properties": {
        "path": _PATH,
        "line": {"type": "integer", "minimum": 1, "description": "First line to read"},
        "lines": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "How many"},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "Characters to leave out at the start of that line, for endless lines",
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}
LIST_DIRECTORY = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "description": "Folder below the workspace; all of it if absent",
        },
        "depth": {"type": "integer", "minimum": 1, "maximum": _DEEPEST},
    },
    "additionalProperties": False,
}
SEARCH_FILES = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Text to find in a line, taken literally"},
        "glob": {"type": "string", "description": "Only these files: *.py, src/**/*.md"},
        "path": {"type": "string", "description": "Folder to search; the workspace if absent"},
        "match_case": {"type": "boolean"},
    },
    "additionalProperties": False,
}


def read_file(tree: Tree, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Some lines of a text file, and where they are. Raises ToolError."""
    found = tree.read(tree.parts(arguments["path"]))
    lines = decoded(found.data, found.path).replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    first = arguments.get("line", 1)
    if first > max(1, len(lines)):
        what = f"{found.path} has {len(lines)} lines; there is no line {first}."
        raise ToolError("no_such_line", what, "Ask for an earlier one.")
    wanted = lines[first - 1 : first - 1 + arguments.get("lines", _LINES)]
    offset = arguments.get("offset", 0)
    if offset and wanted:
        wanted[0] = wanted[0][offset:]
    text, last, cut = _fitted(wanted, first, offset)
    head = f"{found.path}, lines {first}-{last} of {len(lines)}."
    if cut is not None:
        head += f" Line {last} is longer: go on with line={last}, offset={cut}."
    elif last < len(lines):
        head += f" Go on with line={last + 1}."
    if not lines:
        head = f"{found.path} is empty."
    details = {"kind": "file", "path": found.path, "line": first, "last": last, "lines": len(lines)}
    return f"{head}\n\n{text}" if text else head, details


def _fitted(lines: list[str], first: int, offset: int) -> tuple[str, int, int | None]:
    """As many lines as fit: their text, the last one's number, where that was cut (or None)."""
    room, kept = _CHARACTERS, list[str]()
    for line in lines:
        if kept and len(line) + 1 > room:
            break
        kept.append(line[:_CHARACTERS])
        room -= len(line) + 1
    too_long = len(kept) == 1 and len(lines[0]) > _CHARACTERS
    cut = offset + _CHARACTERS if too_long else None
    return "\n".join(kept), first + max(0, len(kept) - 1), cut


def list_directory(tree: Tree, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What is in a folder, one thing a line. Raises ToolError."""
    parts = tree.parts(arguments.get("path", ""))
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
    """Lines that hold a text, or files that fit a glob. Raises ToolError."""
    text, glob = arguments.get("text", ""), arguments.get("glob", "")
    if not text and not glob:
        raise ToolError("nothing_to_find", "Neither text nor glob was given.", "Give one of them.")
    if "\n" in text:
        raise ToolError("bad_text", "text has more than one line.", "Search for one of them.")
    if len(glob) > 500 or glob.count("/") > 60:
        raise ToolError("bad_glob", "The glob is too long.", "Give a shorter one.")
    parts = tree.parts(arguments.get("path", ""))
    walk = Walk(tree, _LOOKED_AT, depth=64, skip=True)
    pattern = re.compile(re.escape(text), 0 if arguments.get("match_case") else re.IGNORECASE)
    found: list[str] = []
    files = 0
    for entry in walk.below(parts):
        fits = entry.kind == "file" and not entry.secret
        if not fits or (glob and not matches_glob(entry.parts[len(parts) :], glob)):
            continue
        hits = _hits(tree, entry, pattern, walk) if text else iter((entry.path,))
        before = len(found)
        for hit in hits:
            found.append(hit)
            if len(found) >= _MATCHES:
                walk.cut = True
                break
        files += len(found) > before
        if len(found) >= _MATCHES:
            break
    details = {"kind": "file_search", "count": len(found), "cut": walk.cut}
    return _told(found, files, walk, bool(text)), details


def _told(found: list[str], files: int, walk: Walk, lines: bool) -> str:
    what = f"{len(found)} lines in {files} files" if lines else f"{len(found)} files"
    head = f"{what}." if found else "Nothing found."
    if walk.cut:
        head += " The search was cut short there: narrow it with path or glob."
    return "\n".join([head + walk.left_out(), *found])


def _hits(tree: Tree, entry: Entry, pattern: re.Pattern[str], walk: Walk) -> Iterator[str]:
    """`path:line: text` for each line that holds the text; nothing of binary or closed files."""
    if entry.size > _SEARCHED:
        walk.skipped.add(f"{entry.path} (too large)")
        return
    try:
        with (
            tree.folder(entry.parts[:-1]) as here,
            tree.open(here, entry.parts) as descriptor,
            os.fdopen(descriptor, "rb", closefd=False) as file,
        ):
            number = 1
            while block := file.readlines(_BLOCK):
                if number == 1 and is_binary(block[0]):
                    return
                text = b"".join(block).decode("utf-8", "replace")
                yield from _lines_with(pattern, text, entry.path, number)
                number += len(block)
                if walk.late():
                    return
    except (ToolError, OSError):
        return  # a link, a hard link, gone meanwhile


def _lines_with(pattern: re.Pattern[str], text: str, path: str, number: int) -> Iterator[str]:
    seen = 0
    while match := pattern.search(text, seen):
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        number += text.count("\n", seen, match.start())
        left = max(begin, match.start() - _AROUND)
        right = min(end, match.end() + _AROUND)
        shown = text[left:right].strip()
        cut = ("…" if left > begin else "", "…" if right < end else "")
        yield f"{path}:{number}: {cut[0]}{shown}{cut[1]}"
        number += 1
        seen = end + 1


@dataclass
class Walk:
    """A walk through folders that stops after so many things or so much time, and says so."""

    tree: Tree
    most: int
    depth: int
    skip: bool = False
    cut: bool = False
    skipped: set[str] = field(default_factory=set)
    ends: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def below(self, parts: Parts) -> Iterator[Entry]:
        """What is below, a folder before what is in it. Raises ToolError for `parts` itself."""
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
        if entry.secret or (self.skip and entry.parts[-1] in SKIPPED):
            self.skipped.add(entry.path)
            return []
        try:
            return self.tree.entries(entry.parts)
        except ToolError:  # closed to us, or gone meanwhile
            self.skipped.add(entry.path)
            return []

    def left_out(self) -> str:
        """What was not looked into, as a sentence; empty when there is nothing."""
        names = sorted(self.skipped)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f" Not looked into: {', '.join(names[:_NAMED])}{more}." if names else ""

    def late(self) -> bool:
        """Whether the time is over."""
        self.cut = self.cut or time.monotonic() > self.ends
        return self.cut
