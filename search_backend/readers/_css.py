"""Style sheets taken apart: the rules that hold on a wide screen.

Only what is needed to tell whether text can be seen; nothing that is not understood counts.

Spec: https://www.w3.org/TR/css-syntax-3/, https://www.w3.org/TR/mediaqueries-4/,
https://www.w3.org/TR/css-nesting-1/
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from search_backend.readers._declared import (
    COMMENT,
    DEEPEST,
    LONGEST_BLOCK,
    LONGEST_SELECTORS,
    QUOTED,
    URL,
    without_comments,
)
from search_backend.readers._media import holds_on_screen, is_supported

_BRACE = re.compile(rf"{QUOTED}|{URL}|\\.|[{{}}]", re.DOTALL | re.IGNORECASE)
_STRING = re.compile(
    r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'", re.DOTALL
)
_BLANK = str.maketrans("{};", "   ")
_BRACE_IN_URL = re.compile(r"url\([^()\"'{}]*+[{}]")
_CONDITION = re.compile(r"@(?:media|supports|container|(?:-[a-z]+-)?keyframes)[^{};]{0,400}\{")
_TWO_ENDS = re.compile(r"\}\s*\}")
# Stands where a comment was.
_GAP = "\0"
_BLANKS = " \t\r\n\f\0"


# A rule that holds on a screen: its list of selectors, and the text of its block.
Rule = tuple[str, str]


def rules(sheet: str) -> list[Rule]:
    """The rules of a sheet in their order, those inside conditions that hold included."""
    if "<!--" in sheet or "-->" in sheet:
        sheet = sheet.replace("<!--", " ").replace("-->", " ")
    commented = "/*" in sheet
    if commented:
        sheet = without_comments(sheet.replace(_GAP, " "), _GAP)
    simple = _plain_braces(sheet)
    found = None if simple is None else _flat_rules(simple)
    if found is None:
        found = []
        # Blanks mean the same however many they are; with one each the rest is quick.
        _rules(" ".join(sheet.split()), "", 0, found)
    if not commented:
        return found
    # A comment parts words in a block, but nothing in a selector.
    return [
        (selectors.replace(_GAP, "").strip(), block.replace(_GAP, " "))
        for selectors, block in found
    ]


def some_rules(sheet: str, signs: Callable[[str], Iterable[int]]) -> list[Rule]:
    """Only the rules, outside conditions, around the places that `signs` finds in the sheet in
    lower case: for sheets that are too large to be read with all care."""
    sheet = COMMENT.sub(" ", sheet) if "/*" in sheet else sheet
    low = sheet.lower()
    if len(low) != len(sheet):
        sheet = sheet.encode("ascii", "replace").decode()
        low = sheet.lower()
    found: dict[int, Rule] = {}
    conditional = _conditional(low)
    starts = [start for start, _ in conditional]
    for place in sorted(signs(low)):
        around = conditional[bisect_right(starts, place) - 1] if starts else (0, 0)
        if around[0] <= place < around[1]:
            continue
        begin = sheet.rfind("{", max(0, place - LONGEST_BLOCK), place + 1)
        if begin >= 0 and begin not in found:
            least = max(0, begin - LONGEST_SELECTORS)
            head = max(sheet.rfind(mark, least, begin) for mark in "{};") + 1
            end = sheet.find("}", place, begin + LONGEST_BLOCK)
            if end > 0:
                found[begin] = (sheet[head:begin].strip(), sheet[begin + 1 : end])
    return list(found.values())


def _conditional(low: str) -> list[tuple[int, int]]:
    """Where blocks with conditions begin and end."""
    found: list[tuple[int, int]] = []
    at = 0
    while start := _CONDITION.search(low, at):
        end = _TWO_ENDS.search(low, start.end())
        at = end.end() if end else len(low)
        found.append((start.start(), at))
    return found


def _plain_braces(text: str) -> str | None:
    """The sheet, its strings without signs that end something; None if a brace of it may still
    mean something else than a block's end."""
    if '"' in text or "'" in text:
        strings = "".join(_STRING.findall(text))
        if any(strings.count(quote) != text.count(quote) for quote in "\"'"):
            return None
        if any(sign in strings for sign in "{};"):
            text = _STRING.sub(lambda found: found[0].translate(_BLANK), text)
    odd = "\\{" in text or "\\}" in text or _BRACE_IN_URL.search(text.lower())
    return None if odd else text


def _flat_rules(sheet: str) -> list[Rule] | None:
    """The rules of a sheet whose braces are all that they seem; None if some lie in each other."""
    found: list[Rule] = []
    around: list[bool] = []
    prelude, *parts = sheet.split("{")
    for part in parts:
        pieces = part.split("}")
        if ";" in prelude:
            prelude = prelude.rpartition(";")[2]
        prelude = prelude.strip(_BLANKS)
        if len(pieces) == 1:
            if prelude[:1] != "@":
                return None
            around.append(all(around) and holds(prelude))
            prelude = part
            continue
        if prelude[:1] != "@" and all(around):
            found.append((prelude, pieces[0]))
        for piece in pieces[1:-1]:
            if not around or piece.strip(_BLANKS):
                return None
            around.pop()
        prelude = pieces[-1]
    return None if around else found


def _rules(text: str, outer: str, depth: int, found: list[Rule]) -> None:
    """Add those of a sheet, or of a block inside one (`outer`: the selectors around it)."""
    level = start = body = 0
    prelude = ""
    own: list[str] = []
    for mark, at in _braces(text):
        if mark == "{":
            if level == 0:
                before, _, prelude = text[start:at].rpartition(";")
                if outer:
                    own.append(before)
                body = at + 1
            level += 1
        elif level:
            level -= 1
            if level == 0:
                _add(prelude, text[body:at], outer, depth, found)
                start = at + 1
    if level:  # the end of the sheet ends what is open
        _add(prelude, text[body:], outer, depth, found)
    else:
        own.append(text[start:])
    if outer and (block := ";".join(own)).strip("; "):
        found.append((outer, block))


def _braces(text: str) -> Iterator[tuple[str, int]]:
    """Each brace that is not quoted, and where it stands."""
    return ((found[0], found.start()) for found in _BRACE.finditer(text) if found[0] in "{}")


def _add(prelude: str, body: str, outer: str, depth: int, found: list[Rule]) -> None:
    prelude = prelude.replace(_GAP, "").strip()
    if prelude[:1] == "@":
        if depth < DEEPEST and holds(prelude):
            _rules(body, outer, depth + 1, found)
    elif "{" in _STRING.sub("", body):
        if depth < DEEPEST:
            _rules(body, _nested(prelude, outer), depth + 1, found)
    elif prelude and len(prelude) <= LONGEST_SELECTORS:
        selectors = _nested(prelude, outer) if outer else prelude
        found.append((selectors, body))


def _nested(selectors: str, outer: str) -> str:
    if not outer:
        return selectors
    around = f":is({outer})"
    if "&" in selectors:
        joint = selectors.replace("&", around) if selectors.count("&") < DEEPEST else ""
    else:
        joint = f"{around} {selectors if selectors[:1] in '>+~' else f':is({selectors})'}"
    return joint if len(joint) <= LONGEST_SELECTORS else ""


def holds(prelude: str) -> bool:
    """Whether what stands in a block that begins so (`@media print`) counts."""
    prelude = " ".join(prelude[1:].replace(_GAP, " ").lower().split())
    name, _, condition = prelude.partition(" ")
    name, bracket, rest = name.partition("(")
    condition = f"({rest} {condition}" if bracket else condition
    match name:
        case "media":
            return holds_on_screen(condition.strip())
        case "supports":
            return is_supported(condition.strip())
        case "layer" | "scope" | "starting-style":
            return name != "starting-style"
    return False
