"""Untrusted text on a terminal: nothing in it can move the cursor, colour or link."""

from __future__ import annotations

import json
from typing import Any

_HARMFUL = dict.fromkeys(
    code
    for first, last in (
        (0x00, 0x08),  # C0 controls but for tab and newline
        (0x0B, 0x1F),
        (0x7F, 0x9F),  # DEL and C1
        (0x2028, 0x2029),  # line and paragraph separators
        (0x202A, 0x202E),  # bidirectional overrides
        (0x2066, 0x2069),
        (0xE0000, 0xE007F),  # tags
    )
    for code in range(first, last + 1)
)

_ESCAPED = {code: json.dumps(chr(code)).strip('"') for code in _HARMFUL} | {0x7F: "\\u007f"}


def safe(text: str) -> str:
    """The text without control, bidirectional and tag characters; newlines and tabs stay."""
    return text.translate(_HARMFUL)


def as_json(value: Any) -> str:
    """JSON on one line; what `safe` takes away is written as an escape, so nothing is lost."""
    text = json.dumps(value, ensure_ascii=False)
    return text.translate(_ESCAPED)


def number(count: int, thing: str) -> str:
    """`1 result`, `2 results`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def one_line(text: str, width: int = 100) -> str:
    """The text on one line, shortened."""
    flat = safe(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def size(count: int) -> str:
    """Bytes for people, in the powers of ten that disks are sold by."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, count // 1_000_000)} MB"
