"""JSON as models write it: Python literals, trailing commas, brackets nobody closed. Pure.

A string that was never closed is not repaired: nobody knows how it would have gone on.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_decode = json.JSONDecoder(strict=False).raw_decode
_TRAILING = re.compile(r",\s*(?=[}\]])")
_WORDS = re.compile(r"\b(?:true|false|null)\b")
_PYTHON = {"true": "True", "false": "False", "null": "None"}
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_ENDS = re.compile(r"\s*(?:</|<\||<｜|```|\[/|\[END_)")
_ESCAPED = re.compile(r"\{(?:\s*,?\s*[\w-]+:<escape>.*?<escape>)+\s*\}", re.DOTALL)
_PAIR = re.compile(r"([\w-]+):<escape>(.*?)<escape>", re.DOTALL)
_LONGEST = 200_000


def escaped_at(text: str, at: int) -> tuple[dict[str, str], int] | None:
    """`{key:<escape>value<escape>, ...}` and where it ends, or None."""
    whole = _ESCAPED.match(text, at)
    return (dict(_PAIR.findall(whole[0])), whole.end()) if whole else None


def value_at(text: str, at: int) -> tuple[Any, int] | None:
    """The value that begins at `at` and where it ends, or None."""
    try:
        return _decode(text, at)
    except (ValueError, RecursionError):
        pass
    end, missing = extent(text, at)
    if end is None:
        return None
    for candidate in _repaired(text[at:end] + missing):
        try:
            return json.loads(candidate, strict=False), end
        except (ValueError, RecursionError):
            pass
        try:
            return ast.literal_eval(as_python(candidate)), end
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    return None


def loose(text: str) -> Any:
    """The value that a whole text spells, else None."""
    body = text.strip()
    read = value_at(body, 0) if body[:1] in ("{", "[") else None
    return read[0] if read and not body[read[1] :].strip(" }])\n") else None


def extent(text: str, at: int) -> tuple[int | None, str]:
    """Where brackets that open at `at` are closed, and the closers that are missing there.

    None when a string inside them is not closed or brackets do not match.
    """
    open_now: list[str] = []
    quote = ""
    place, last = at, min(len(text), at + _LONGEST)
    while place < last:
        letter = text[place]
        if quote:
            if letter == "\\":
                place += 1
            elif letter == quote:
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSING:
            open_now.append(_CLOSING[letter])
        elif letter in "}])":
            if not open_now or open_now.pop() != letter:
                return None, ""
            if not open_now:
                return place + 1, ""
        elif letter in "<`[\n \r" and _ENDS.match(text, place):
            break
        place += 1
    return (None, "") if quote else (place, "".join(reversed(open_now)))


def as_python(text: str) -> str:
    """JSON's words in Python's spelling, outside strings."""
    parts = re.split(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')", text)
    parts[::2] = [_WORDS.sub(lambda m: _PYTHON[m[0]], part) for part in parts[::2]]
    return "".join(parts)


def _repaired(text: str) -> list[str]:
    plain = _TRAILING.sub("", re.sub(r",\s*(?=[}\])]*\Z)", "", text))
    return [text, plain]
