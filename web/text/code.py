"""Colours code: comments, strings, numbers and keywords.

One expression for a family of languages is right for most lines and never slow. It is no parser;
what it does not know stays plain. `code.toml` holds the families.
"""

from __future__ import annotations

import functools
import keyword
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchloop.web.text.tree import Node

LONGEST_CODE = 20_000  # characters; longer code stays plain
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_NUMBER = r"(?<![\w.])(?:0[xob][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b"
_FAMILIES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "code.toml").read_text("utf-8")
)
_LANGUAGES = {name: kind for kind, its in _FAMILIES.items() for name in its["names"].split()}
KINDS = ("com", "str", "num", "key")


def highlight(code: str, language: str | None) -> list[Node]:
    """Returns code as text and spans of the classes KINDS. Unknown languages stay plain."""
    family = _LANGUAGES.get((language or "").lower())
    if family is None or len(code) > LONGEST_CODE:
        return [code]
    nodes: list[Node] = []
    last = 0
    for match in _pattern(family).finditer(code):
        if match.start() > last:
            nodes.append(code[last : match.start()])
        nodes.append({"t": "span", "a": {"class": match.lastgroup}, "c": [match[0]]})
        last = match.end()
    if last < len(code):
        nodes.append(code[last:])
    return nodes


@functools.cache
def _pattern(family: str) -> re.Pattern[str]:
    its = _FAMILIES[family]
    words = its.get("words", "").split()
    words = [*keyword.kwlist, *words] if family == "python" else words
    strings = "|".join(filter(None, (its.get("strings"), _STRING)))
    parts = [f"(?P<com>{its['comments']})", f"(?P<str>{strings})", f"(?P<num>{_NUMBER})"]
    if words:
        parts.append(rf"(?P<key>(?<![\w.$-])(?:{'|'.join(words)})(?![\w-]))")
    return re.compile("|".join(parts), re.IGNORECASE if its.get("any_case") else re.NOFLAG)
