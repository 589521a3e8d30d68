"""Bytes of files as text, and changes of text as unified diffs."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Sequence

from agent.errors import ToolError

_SNIFFED = 8192
_CONTEXT = 3
_COMPARED = 4000  # lines that are compared line by line; a larger change is shown whole
_WIDE = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def is_binary(head: bytes) -> bool:
    """Whether a file that begins like this is no text."""
    return b"\0" in head[:_SNIFFED] and not head.startswith((_WIDE[0][0], _WIDE[1][0]))


def decoded(data: bytes, path: str) -> str:
    """The text of a file: UTF-8, UTF-16 with a mark, else Windows-1252. ToolError when binary."""
    if is_binary(data):
        raise ToolError(
            "binary_file",
            f"{path} is not a text file ({len(data):,} bytes).",
            "Go on without it, or ask the user for it as text.",
        )
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def editable(data: bytes, path: str) -> str:
    """The text of a file that can be written back byte for byte: UTF-8 only. Raises ToolError."""
    if is_binary(data):
        decoded(data, path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(
            "not_utf8",
            f"{path} is not UTF-8 text, so it cannot be changed without damage.",
            "The user can convert it to UTF-8 first.",
        ) from error


def new_file_diff(path: str, text: str) -> str:
    """A unified diff that makes a file."""
    lines = _lines(text)
    head = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n"
    return head + "".join(_line("+", line) for line in lines) if lines else head


def change_diff(path: str, before: str, after: str, start: int, end: int) -> str:
    """A unified diff of one change: `before[start:end]` was replaced, all else is the same."""
    old, new = _lines(before), _lines(after)
    kept = max(0, before.count("\n", end) - 1)  # lines behind the change, at least
    top = max(0, before.count("\n", 0, start) - _CONTEXT)
    old_part = old[top : max(top, len(old) - kept + _CONTEXT)]
    new_part = new[top : max(top, len(new) - kept + _CONTEXT)]
    head = f"--- a/{path}\n+++ b/{path}\n"
    if len(old_part) + len(new_part) > _COMPARED:
        shown = [_line("-", line) for line in old_part] + [_line("+", line) for line in new_part]
        return (
            f"{head}@@ -{top + 1},{len(old_part)} +{top + 1},{len(new_part)} @@\n{''.join(shown)}"
        )
    out = [head]
    matcher = difflib.SequenceMatcher(None, old_part, new_part, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        out.append(_hunk(group, old_part, new_part, top))
    return "".join(out)


def _lines(text: str) -> list[str]:
    """Lines with their newlines; nothing else ends a line here."""
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + [piece for piece in pieces[-1:] if piece]


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]],
    old: Sequence[str],
    new: Sequence[str],
    top: int,
) -> str:
    first, last = group[0], group[-1]
    olds, news = last[2] - first[1], last[4] - first[3]
    a = top + first[1] + (1 if olds else 0)
    b = top + first[3] + (1 if news else 0)
    out = [f"@@ -{a},{olds} +{b},{news} @@\n"]
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            out += [_line(" ", line) for line in old[i1:i2]]
        else:
            out += [_line("-", line) for line in old[i1:i2]]
            out += [_line("+", line) for line in new[j1:j2]]
    return "".join(out)


def _line(sign: str, line: str) -> str:
    if line.endswith("\n"):
        return sign + line
    return f"{sign}{line}\n\\ No newline at end of file\n"
