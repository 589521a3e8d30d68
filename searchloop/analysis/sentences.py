"""Cuts a text into sentences, in whatever language, with their places in code points."""

from __future__ import annotations

import re

from searchloop.analysis.words import table

_END = re.compile(
    r"[。！？｡]+[」』”’）)*_]*"
    r"|(?P<dot>(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+)(?=\s|$)"
    r"|\n\s*\n|\n(?=\s*(?:[-*#|•]|\d+[.)]\s))|\n(?=[^\n|]{1,200}\|)"
    r"|[।؟۔]+|(?<=[\u0e00-\u0e7f])\s*\n"
)
# Behind these a full stop ends no sentence; single letters and `z.B.` are known by their shape.
_ABBREVIATIONS = table(
    """
all: adm al approx apr assn aug av bd bros bzw ca capt cf cmdr co col corp dec dept dez dr drs
dña eds eq est etc evtl feb ft geb gen ggf gov hab hon hrsg inc inkl jan jr jul jun lt ltd
maj messrs mio mlle mm mme mr mrd mrs ms mt nov núm oct okt pres prof pág rep rev sen sep
sept sgt sog sr sra srta st str tel ud uds univ usw vgl vs
"""
)["all"]
_LAST_WORD = re.compile(r"[^\s(\"'“„«\[]*\Z")
_LONGEST = 600  # characters of one sentence, half in Thai: what has no stops is cut here


def sentences(text: str) -> list[tuple[int, int]]:
    """Returns the half-open ranges of the sentences in order, without the white space between."""
    found: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        if match["dot"] and not _ends(text, start, match):
            continue
        _add(found, text, start, match.end())
        start = match.end()
    _add(found, text, start, len(text))
    return found


def _add(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    longest = _LONGEST // 2 if "ก" <= text[start : start + 1] <= "๛" else _LONGEST
    while end - start > longest:
        cut = text.rfind(" ", start + longest // 2, start + longest) + 1 or start + longest
        found.append((start, cut))
        start = cut
    if start < end:
        found.append((start, end))


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Tells a full stop that ends a sentence from one of an abbreviation, initial or ordinal."""
    if match["dot"].rstrip("\"'”’»)]*_") != ".":
        return True
    place = match.start()
    word = _LAST_WORD.search(text[max(start, place - 12) : place])
    last = word[0].casefold().strip("*_") if word else ""
    behind = text[match.end() : match.end() + 3].lstrip(" \"'“„«(*_")[:1]
    if behind.islower():
        return False
    if last in _COUNTED:
        return not behind.isdigit()
    if last in _ABBREVIATIONS or ("." in last and all(len(part) <= 2 for part in last.split("."))):
        return last in _LAST and behind.isupper()
    if len(last) == 1 and last.isalpha():  # an initial
        return False
    return not (last.isdigit() and len(last) <= 2 and _MONTH.match(text, match.end()))


_COUNTED = frozenset(
    ("no", "nos", "nr", "art", "fig", "figs", "vol", "abs", "op", "pp", "ch", "p", "s")
)
_LAST = frozenset(("etc", "inc", "ltd", "co", "corp", "al", "usw"))  # may also end a sentence
_MONTH = re.compile(
    r"\s(?:Jan(?:uar)?|Feb(?:ruar)?|März?|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|(?:Okto|Novem|Dezem)ber|Okt|Nov|Dez|Jahrh\w*|Jh)\b"
)
