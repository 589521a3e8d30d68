"""Text as JSON and UTF-8 can carry it.

A model, a page or a tool may hand over half a surrogate pair or a number that JSON has no word for.
One such value must not stop a run, nor reach the page, whose parser would refuse the whole event.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def well_formed(text: str) -> str:
    """The text, with surrogate pairs joined and what is left of halves replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def to_json(value: Any) -> str:
    """Compact JSON. Raises ValueError or TypeError where JSON, or UTF-8, has no way to say it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text


def plain(value: Any) -> Any:
    """The nearest thing that `to_json` takes: not-a-number becomes None, the unknown its text."""
    if isinstance(value, str):
        return well_formed(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {well_formed(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return well_formed(str(value))


def column_text(text: str | None) -> str | None:
    """A text for a column of a store: without what UTF-8 or a column cannot hold."""
    return None if text is None else well_formed(text).replace("\0", "\ufffd")


def like_pattern(text: str) -> str:
    """The pattern of SQL's LIKE (with a backslash to escape) for whatever holds this text."""
    text = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return column_text(f"%{text}%") or ""


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None when it is none."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, dict) else None
