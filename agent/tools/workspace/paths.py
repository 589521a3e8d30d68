"""Checks paths as a model writes them, without the disk; decodes files, writes diffs."""

from __future__ import annotations

import codecs
import difflib
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.analysis.secret_files import any_of, plain_name

Parts = tuple[str, ...]

TEMPORARY = ".searchloop-"  # what our own half-written files begin with
_DEEPEST, _LONGEST, _LONGEST_NAME = 64, 4096, 255
# Data of version control: a file written there may be run by the next command of its owner.
_CLOSED = (".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "cvs", "git~*", f"{TEMPORARY}*")
# Not looked through unless a search starts inside; nobody wrote what is in there by hand.
SKIPPED = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".cache"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".terraform"}
)


def parts_of(given: str, root: str) -> Parts:
    """Returns the parts of a path inside `root`. Raises ToolError: bad_path, outside_workspace."""
    if given.startswith(f"{root.rstrip('/')}/"):
        what = f"Paths are relative to the workspace: {given[len(root.rstrip('/')) + 1 :][:200]!r}."
        raise ToolError("bad_path", what, "Call again with that.")
    if given.startswith("/"):
        what = f"{given[:200]!r} is outside of the workspace."
        raise ToolError("outside_workspace", what, "Only files below the workspace can be used.")
    parts = tuple(part for part in given.split("/") if part not in ("", "."))
    problem = next((p for part in parts if (p := _wrong(part))), None)
    if problem is None and (len(parts) > _DEEPEST or len(given) > _LONGEST):
        problem = "it is too long"
    if problem:
        what = f"{given[:200]!r} is no path of a file here: {problem}."
        raise ToolError("bad_path", what, "Give a path below the workspace, such as src/main.py.")
    return parts


def _wrong(part: str) -> str | None:
    """Returns what is wrong with one name, in words; None when nothing is."""
    if part == "..":
        return "'..' leads upwards"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in part):
        return "it holds a control character or half a character"
    if len(part.encode()) > _LONGEST_NAME:
        return "a name in it is too long"
    return "its parts are separated by '/', not by a backslash" if "\\" in part else None


def closed(parts: Sequence[str]) -> bool:
    """Returns whether a path belongs to version control or to searchloop itself."""
    return any(any_of(_CLOSED).match(plain_name(part)) for part in parts)


def matches_glob(parts: Sequence[str], pattern: str) -> bool:
    """Returns whether a path fits a glob (`*.py`, `src/*.py`, `**`), in linear time."""
    wanted = [part for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern.strip("/"):
        wanted = ["**", *wanted]
    places = {0}  # how many parts of the pattern may be used up by now
    for part in parts:
        places |= {n + 1 for n in places if n < len(wanted) and wanted[n] == "**"}
        places = {n for n in places if n < len(wanted) and wanted[n] == "**"} | {
            n + 1 for n in places if n < len(wanted) and fnmatchcase(part, wanted[n])
        }
    return any(all(rest == "**" for rest in wanted[n:]) for n in places)


_SNIFFED = 8192
_CONTEXT = 3
_COMPARED = 4000  # lines that are compared line by line; a larger change is shown whole
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_binary(head: bytes) -> bool:
    """Returns whether a file that begins like this is no text."""
    return b"\0" in head[:_SNIFFED] and not head.startswith(_WIDE)


def decoded(data: bytes, path: str) -> str:
    """Decodes a file: UTF-8, UTF-16 with a mark, other bytes as Windows-1252 has them.

    Raises ToolError if binary.
    """
    if is_binary(data):
        what = f"{path} is not a text file ({len(data):,} bytes)."
        raise ToolError("binary_file", what, "Go on without it, or ask the user for it as text.")
    return data.decode(encoding_of(data), FOREIGN)


def encoding_of(head: bytes) -> str:
    """Returns the encoding of a text file that begins like this."""
    return "utf-16" if head.startswith(_WIDE) else "utf-8-sig"


def is_utf8(data: bytes) -> bool:
    """Returns whether the bytes of a text file are sure to be read rightly."""
    with suppress(UnicodeDecodeError):
        return bool(data.decode("utf-8")) or not data
    return data.startswith(_WIDE)


FOREIGN = "searchloop.foreign"  # how bytes are decoded that the encoding has not


def _as_windows_has_it(error: Any) -> tuple[str, int]:
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(FOREIGN, _as_windows_has_it)


def editable(data: bytes, path: str) -> str:
    """Decodes a file that can be written back byte for byte: UTF-8. Raises ToolError."""
    if is_binary(data):
        decoded(data, path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"{path} is not UTF-8 text, so it cannot be changed without damage."
        raise ToolError("not_utf8", what, "The user can convert it to UTF-8 first.") from error


def new_file_diff(path: str, text: str) -> str:
    """Returns the unified diff of a new file."""
    added = "".join(_line(f"+{line}") for line in _lines(text))
    head = f"--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(_lines(text))} @@\n{added}"


def change_diff(path: str, before: str, after: str, start: int, end: int) -> str:
    """Returns the unified diff of one change: only `before[start:end]` was replaced."""
    old, new = _lines(before), _lines(after)
    kept = max(0, before.count("\n", end) - 1)  # lines behind the change, at least
    top = max(0, before.count("\n", 0, start) - _CONTEXT)
    old = old[top : max(top, len(old) - kept + _CONTEXT)]
    new = new[top : max(top, len(new) - kept + _CONTEXT)]
    if len(old) + len(new) > _COMPARED:
        whole = (f"@@ -1,{len(old)} +1,{len(new)} @@\n", *("-" + x for x in old))
        hunks = iter((*whole, *("+" + x for x in new)))
    else:
        hunks = islice(difflib.unified_diff(old, new, n=_CONTEXT), 2, None)
    shown = (_moved(line, top) if line.startswith("@@") else _line(line) for line in hunks)
    return f"--- a/{path}\n+++ b/{path}\n{''.join(shown)}"


def _lines(text: str) -> list[str]:
    """Splits at newlines, which stay; nothing else ends a line here."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _moved(head: str, lines: int) -> str:
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + lines), head)


def _line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
