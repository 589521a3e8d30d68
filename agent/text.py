"""Text that JSON, UTF-8 and a model can take.

A model, a page or a tool may return half a surrogate pair or a number that JSON cannot write; one
such value must not stop a run. `neutral` sanitizes untrusted text: it removes invisible characters
and replaces the bracket of marks that models take for a turn or a tool call.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from searchloop.analysis.characters import visible


def well_formed(text: str) -> str:
    """Joins surrogate pairs and replaces single surrogates by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def to_json(value: Any) -> str:
    """Returns compact JSON. Raises ValueError or TypeError for what JSON or UTF-8 cannot hold."""
    text = _encoded(value)
    text.encode()
    return text


def plain(value: Any) -> Any:
    """Returns the nearest value that `to_json` takes: NaN becomes None, other objects text."""
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
    """Replaces what a text column of a store cannot hold by U+FFFD."""
    return None if text is None else well_formed(text).replace("\0", "\ufffd")


def column_values(values: Sequence[Any]) -> list[Any]:
    """Returns values of a statement with every text as a column can hold it."""
    return [column_text(value) if isinstance(value, str) else value for value in values]


def object_in(text: str) -> dict[str, Any] | None:
    """Parses a JSON object; returns None for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_shallow(value: Any, most: int) -> bool:
    """Tells whether lists and objects of JSON are nested at most this deep; does not recurse."""
    level = [value]
    for _ in range(most):
        inner = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [child for each in inner if isinstance(each, list) for child in each]
        if not level:
            return True
    return False


_ROLES = "system|user|assistant|human|tool|developer|function|model|ipython|observation"
_CALLS = (
    "tools?_?(?:call|result|response|output|use)s?|available_tools|function_?(?:call|result|calls|"
    "response)s?|invoke|parameter|think(?:ing)?|system-reminder|start_of_turn|end_of_turn|"
    "start_of_image|bos|eos|s|im_start|im_end|antml:[a-z_]+"
)
_MARK = re.compile(
    r"<(?=[|\uff5c][^<>\n]{1,60}[|\uff5c]>)"  # <|im_start|>, also with fullwidth bars
    rf"|<(?=/?(?:{_CALLS}|{_ROLES})(?:\s[^<>\n]{{0,200}})?/?>)"  # <tool_call>, </s>, <system>
    r"|<(?=<?/?SYS>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])"
    r"|^(?=(?:#{1,6} ?)?(?:system|user|human|assistant) ?:)",  # a line that begins like a turn
    re.IGNORECASE | re.MULTILINE,
)
_INSTEAD = {"<": "‹", "[": "⟦", "": "› "}


def neutral(text: str) -> str:
    """Returns the text without invisible characters and with look-alike control marks defused."""
    if not text.isascii() or not text.isprintable():
        text = visible(text)
    return _MARK.sub(lambda found: _INSTEAD[found[0]], text)


_JOINERS = "\u200c\u200d"  # invisible, but words and emoji are made with them


def one_line(text: str, most: int = 60) -> str:
    """Puts a text on one line of at most `most` characters, cut between words where there are."""
    shown = (c if c.isprintable() or c in _JOINERS else " " for c in visible(text))
    line = " ".join("".join(shown).split())
    if len(line) <= most:
        return line
    head = line[: most - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) > most // 2 else head).rstrip(f" ,;:–-{_JOINERS}") + "…"


def tokens(text: str) -> int:
    """Estimates a quarter of the bytes, half of the digits; callers check it by the real count."""
    data = text.encode("utf-8", "replace")
    return (2 * len(data) - len(data.translate(None, b"0123456789"))) // 4 + 4
