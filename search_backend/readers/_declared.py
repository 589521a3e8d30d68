"""The declarations in a block of a style sheet, or in an inline style.

Spec: https://www.w3.org/TR/css-syntax-3/, https://www.w3.org/TR/css-variables-1/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

DEEPEST = 8
# What is longer than these is no style of a page.
LONGEST_SELECTORS, LONGEST_BLOCK, LONGEST_VALUE = 4_000, 8_000, 400
QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?"
_STRING_OR_COMMENT = re.compile(rf"({QUOTED})|/\*.*?(?:\*/|\Z)", re.DOTALL)
URL = r"url\(\s*[^\s\"')][^)]{0,4000}+\)"
COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_PART = re.compile(rf"{QUOTED}|{URL}|\\.|[;(){{}}\[\]]", re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\r\n]?|(.))", re.DOTALL)
# A letter by its number, as no sheet has it that means to be read.
_LETTER = re.compile(r"\\0{0,4}([46][1-9a-fA-F]|[57][0-9aA])(?:(?![0-9a-fA-F])|[ \t\r\n])\s?")
_NAME = re.compile(r"--[^\s:]+|-?[a-z_][\w-]*")
_IMPORTANT = re.compile(r"!\s*important\Z")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*(?:\([^()]*\)[^()]*)*))?\)", re.I)
# Property to value, lower case, in the order in which they count; `!` before the name of one that
# is important.
Declarations = dict[str, str]


def without_comments(text: str, instead: str = " ") -> str:
    """CSS text with something else in the place of each comment."""
    # What begins inside a string is no comment; then the end of that string would be in it.
    if any('"' in comment or "'" in comment for comment in COMMENT.findall(text)):
        return _STRING_OR_COMMENT.sub(lambda found: found[1] or instead, text)
    return COMMENT.sub(instead, text)


def declarations(block: str, variables: Mapping[str, str] = MappingProxyType({})) -> Declarations:
    """What a block or an inline style declares; `variables` are the page's."""
    found: Declarations = {}
    block = without_comments(block) if "/*" in block else block
    for text in _parts(block):
        name, colon, value = text.partition(":")
        name = unescape(name.strip()).lower()
        if not colon or not _NAME.fullmatch(name):
            continue
        value = " ".join(unescape(value).lower().split())
        important = value[-9:] == "important" and _IMPORTANT.search(value)
        if important:
            value = value[: important.start()].rstrip()
        if not value or "!" in value or len(value) > LONGEST_VALUE:
            continue
        if important:
            found.pop(name, None)
            found["!" + name] = value
        elif "!" + name not in found:
            found[name] = value
    if "var(" in block:
        own = {**variables, **{k.lstrip("!"): v for k, v in found.items() if "--" in k[:3]}}
        found = {name: _substituted(value, own) for name, value in found.items()}
    return found


def plain(style: Mapping[str, str]) -> Declarations:
    """The declarations by their names alone, what is important over the others."""
    if not any(name[0] == "!" for name in style):
        return dict(style)
    return {name.lstrip("!"): value for name, value in sorted(style.items(), key=_is_important)}


def _is_important(item: tuple[str, str]) -> bool:
    return item[0][0] == "!"


def _parts(block: str) -> Iterator[str]:
    """The block cut at its semicolons; one inside brackets or quotes is none."""
    if not any(sign in block for sign in "\"'\\([{"):
        yield from block.split(";")
        return
    depth = start = 0
    for found in _PART.finditer(block):
        mark = found[0]
        if mark in ("(", "[", "{"):
            depth += 1
        elif mark in (")", "]", "}"):
            if mark == "}" and not depth:  # ends the block in a sheet; here it spoils what follows
                continue
            depth = max(0, depth - 1)
        elif mark == ";" and not depth:
            yield block[start : found.start()]
            start = found.end()
    yield block[start:]


def _substituted(value: str, variables: dict[str, str]) -> str:
    for _ in range(DEEPEST):
        if "var(" not in value or len(value) > LONGEST_VALUE:
            break
        value = _VARIABLE.sub(lambda m: variables.get(m[1], (m[2] or "").strip()), value)
    return value.strip().lower()[:LONGEST_VALUE]


def with_letters(text: str) -> str:
    """CSS text in which no letter of ASCII is written as a number."""
    if "\\" not in text:
        return text
    return _LETTER.sub(lambda found: chr(int(found[1], 16)), text)


def unescape(text: str) -> str:
    """CSS text with its escapes undone."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if not escape[1]:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
