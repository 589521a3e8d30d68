"""Colours code: comments, strings, numbers and keywords.

One expression for a family of languages is right for most lines and never slow. It is no parser;
what it does not know stays plain.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Mapping

from searchloop.web.text.tree import Node

LONGEST_CODE = 20_000  # characters; longer code stays plain
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_NUMBER = r"(?<![\w.])(?:0[xob][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b"
_C = r"//[^\n]*|/\*[\s\S]*?\*/"
_HASH = r"#[^\n]*"

_C_WORDS = (
    "async await break case catch class const continue default delete do else enum export extends "
    "extern false final finally for from function if implements import in instanceof interface let "
    "namespace new null of private protected public return static struct super switch this throw "
    "true try type typedef typeof undefined union using var void volatile while with yield bool "
    "char double float int long short signed unsigned string fn impl match mod mut pub ref self "
    "trait use where chan defer func go map package range select nil abstract override sealed val "
    "when object data"
)
_PYTHON_WORDS = " ".join((*keyword.kwlist, "case", "match", "self", "type"))
_SHELL_WORDS = (
    "case do done elif else esac exit export fi for function if in local return set then unset "
    "until while true false"
)
_SQL_WORDS = (
    "add all alter and as asc begin between by case check commit constraint create default delete "
    "desc distinct drop else end exists foreign from full group having if in index inner insert "
    "into is join key left like limit not null offset on or order outer primary references "
    "returning right rollback select set table then union unique update using values view when "
    "where with"
)
# family: comments, strings over several lines, keywords, keywords of any case
_FAMILIES: Mapping[str, tuple[str, str, str, bool]] = {
    "c": (_C, r"`(?:\\.|[^`\\])*`", _C_WORDS, False),
    "python": (_HASH, r"\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''", _PYTHON_WORDS, False),
    "shell": (_HASH, "", _SHELL_WORDS, False),
    "sql": (r"--[^\n]*|/\*[\s\S]*?\*/", "", _SQL_WORDS, True),
    "data": (_HASH, "", "true false null yes no on off", False),
    "markup": (r"<!--[\s\S]*?-->", "", "", False),
    "css": (r"/\*[\s\S]*?\*/", "", "important media supports import keyframes", False),
}
_NAMES: Mapping[str, str] = {
    "c": "c cc cpp cs csharp go java javascript js jsx kotlin kt php rs rust scala swift ts tsx "
    "typescript h hpp dart zig",
    "python": "python py python3 pycon",
    "shell": "bash sh shell zsh console makefile make dockerfile ruby rb perl",
    "sql": "sql sqlite postgresql postgres mysql",
    "data": "json yaml yml toml ini conf env properties",
    "markup": "html xml svg xhtml",
    "css": "css scss less",
}
_LANGUAGES = {name: family for family, names in _NAMES.items() for name in names.split()}
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
    comments, longer, words, any_case = _FAMILIES[family]
    strings = "|".join(filter(None, (longer, _STRING)))
    parts = [f"(?P<com>{comments})", f"(?P<str>{strings})", f"(?P<num>{_NUMBER})"]
    if words:
        parts.append(rf"(?P<key>(?<![\w.$-])(?:{'|'.join(words.split())})(?![\w-]))")
    return re.compile("|".join(parts), re.IGNORECASE if any_case else re.NOFLAG)
