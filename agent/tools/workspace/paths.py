"""Checks paths as a model writes them, without the disk; decodes files, writes diffs."""

from __future__ import annotations

import codecs
import difflib
import os
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

WINDOWS = os.name == "nt"
TEMPORARY = ".searchloop-"  # what our own half-written files begin with
_DEEPEST, _LONGEST, _LONGEST_NAME = 64, 4096, 255
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"}
)
# Data of version control: a file written there may be run by the next command of its owner.
_CLOSED = (".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "cvs", "git~*", f"{TEMPORARY}*")
# Not looked through unless a search starts inside; nobody wrote what is in there by hand.
SKIPPED = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".cache"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".terraform"}
)


def parts_of(given: str, root: str, *, windows: bool = WINDOWS) -> Parts:
    """Returns the parts of a path inside `root`. Raises ToolError: bad_path, outside_workspace."""
    path = given.replace("\\", "/") if windows else given
    base = root.replace("\\", "/") if windows else root
    if path.startswith("/") or (windows and path[1:2] == ":"):
        raise _full_path(path, base.rstrip("/"), windows)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    problem = next((p for part in parts if (p := _wrong(part, windows))), None)
    if problem is None and (len(parts) > _DEEPEST or len(given) > _LONGEST):
        problem = "it is too long"
    if problem:
        what = f"{given[:200]!r} is no path of a file here: {problem}."
        raise ToolError("bad_path", what, "Give a path below the workspace, such as src/main.py.")
    return parts


def _full_path(path: str, base: str, windows: bool) -> ToolError:
    fold = str.casefold if windows else str
    if fold(path).startswith(fold(base) + "/"):
        what = f"Paths are relative to the workspace: {path[len(base) + 1 :][:200]!r}."
        return ToolError("bad_path", what, "Call again with that.")
    what = f"{path[:200]!r} is outside of the workspace."
    return ToolError("outside_workspace", what, "Only files below the workspace can be used.")


def _wrong(part: str, windows: bool) -> str | None:
    """Returns what is wrong with one name, in words; None when nothing is."""
    if part == "..":
        return "'..' leads upwards"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in part):
        return "it holds a control character or half a character"
    if len(part.encode()) > _LONGEST_NAME:
        return "a name in it is too long"
    if "\\" in part:
        return "its parts are separated by '/', not by a backslash"
    if windows and (set(part) & set('<>:"|?*') or part[-1] in ". "):
        return f"{part[:60]!r} cannot be the name of a file"
    if windows and part.partition(".")[0].rstrip().casefold() in _DEVICES:
        return f"{part[:60]!r} is the name of a device"
    return None


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
