"""Writes citation marks of other shapes as `[n]`: `**[1]**`, `[1-2]`, `［2］`, `【1】`,
`【1†source】`, `[^1]`, `¹`, `[[1]](address)`, `[[1]]`, `[1](address)`, `[1](#anchor)`,
`[Source 1]`, `[web:1]`, `[1 and 2]`, `[١]`.

Models learned many ways to cite. Each place is only proposed here; `marks.find` decides, by the
words around it, whether it is a mark, and what is none keeps the writer's own form.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container
from typing import NamedTuple

from searchloop.agent.search.marks import FREE

_MOST = 8  # numbers of one range
_N = r"(?![0０])\d{1,3}"
_AND = "(?:[,;&、，；،–—‑~〜-]|and|und|et|y|e|и|和|与|と|to|bis|до|至|到)"
_SOURCE = (
    r"(?i:sources?|r[eé]f(?:[eé]rences?|s)?|cit(?:e|ations?)|see|cf|quellen?|belege?|siehe|vgl"
    r"|voir|fuentes?|font[ei]s?|bron(?:nen)?|źródł[oa]|kaynak|источник[аи]?|来源|來源|參考|参考"
    r"|出典|资料|資料|출처|المصدر|مصدر|स्रोत|kilder?|källor|källa|lähde|zdroje?|forrás|nguồn|sumber"
    r"|джерел[оа]|πηγ(?:ή|ές)|מקור|منبع)\.?[ :#：_-]{0,2}"
)
_FOUND = "(?i:docs?|documents?|results?|web)[ :#：_-]{0,2}"  # in square brackets alone
_LIST = rf"{_N}(?:\s?{_AND}\s?{_N}){{0,7}}"
_NAMED = rf"(?i:see |cf\.? |vgl\.? |siehe )?{_SOURCE}{_N}(?:\s?{_AND}\s?(?:{_SOURCE})?{_N}){{0,7}}"
_BEHIND = r"(?:(?<=[^\W\d_]{4})|(?<=[^\W\d_][.!?。！？”»]))"
_RAISED = "[¹²³⁴⁵⁶⁷⁸⁹][⁰¹²³⁴⁵⁶⁷⁸⁹]?"
_TITLE = r"""(?: "[^"\n]{0,200}")?"""
_AT = r"(?:[^()<>\s]|\([^()\s]{0,200}\))"
SHAPE = re.compile(
    r"(?<![\w\\!\[*_])(?P<open>\*{1,3}|_{1,3})(?P<bold>\[" + _LIST + r"\]"
    rf"(?:[,; ]{{0,2}}\[{_LIST}\]){{0,7}})(?P=open)(?![\w*_])"
    rf"|{FREE}\[\[(?P<link>{_N})\]\]\({_AT}{{0,2000}}\)"
    rf"|(?:(?<=[\w.!?。”»)\]])|(?<=[\w.!?。”»)\]] ))\[\[(?P<double>{_N})\]\]"
    r"(?=[.,;!?。，)]|[ \t]*(?:\[\[|\n|\Z))"
    rf"|{FREE}\[(?P<anchor>{_N})\]\(#[^()\s]{{0,100}}\)"
    rf"|{FREE}\[(?P<linked>{_N})\]\(<?(?P<at>https?://{_AT}{{1,2000}})>?{_TITLE}\)"
    rf"|{FREE}\[\^(?P<note>{_N})\^?\](?!:)"
    rf"|{FREE}\[(?P<named>{_NAMED}|{_FOUND}{_LIST})\](?!\(|\[(?!{_SOURCE}|{_FOUND}))"
    rf"|[(（](?P<round>{_NAMED})[)）]"
    rf"|(?<![A-Za-z0-9_)\\!\[])\[(?P<list>{_LIST})\](?!\(|\[(?!\d{{1,3}}\]))"
    rf"|［(?P<wide>{_LIST})］|[【〔](?P<thick>{_LIST})[】〕]"
    rf"|(?:【|{FREE}\[)(?P<dagger>{_N})(?::\d{{1,3}})?†[^\[\]【】\n]{{0,100}}[\]】]"
    rf"|{_BEHIND} ?<sup>(?P<sup>{_LIST}(?:</sup>[, ]{{0,2}}<sup>{_LIST}){{0,7}})</sup>"
    rf"|{_BEHIND}(?P<raised>{_RAISED}(?:[,⁻– ]{{1,2}}{_RAISED}){{0,7}})(?![⁻⁰¹²³⁴⁵⁶⁷⁸⁹\w])"
)
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_PLAIN = re.compile(rf"\[{_N}\]")
_ASCII = re.compile(r"\[\d+(?:\s?[,;、，]\s?\d+)*\]", re.ASCII)  # which `marks` reads by itself
_NUMBER = re.compile(r"\d+|[–—‑~〜-]|to|bis|до|至|到")


class Shaped(NamedTuple):
    """A text whose possible marks are written `[n]`, and how it was: (start, end, as it was)."""

    text: str
    places: tuple[tuple[int, int, str], ...]

    def part(self, start: int, end: int) -> str:
        """Returns a part of the text as it was."""
        out: list[str] = []
        last = start
        first = bisect_right(self.places, (start, -1, ""))
        for begin, stop, was in self.places[first:]:
            if stop > end:
                break
            out += (self.text[last:begin], was)
            last = stop
        return "".join([*out, self.text[last:end]])


def shaped(text: str, known: Container[int], address: Callable[[int], str]) -> Shaped:
    """Writes what may be a mark of known numbers as `[n]`; a link has its number's `address`."""
    raised = _PLAIN.search(text) is None  # beside other marks, a raised number is an exponent
    out: list[str] = []
    places: list[tuple[int, int, str]] = []
    length = last = 0
    for match in SHAPE.finditer(text):
        kind = match.lastgroup or ""
        numbers = _numbers(match["linked" if kind == "at" else kind])
        if not numbers or not (kind == "dagger" or all(n in known for n in numbers)):
            continue  # a dagger is a mark, whatever its number
        if _ASCII.fullmatch(match[0]) or (kind in ("raised", "sup") and not raised):
            continue
        if kind == "at" and match["at"] != address(numbers[0]):
            continue
        if kind == "note" and f"[^{match[kind]}]:" in text:
            continue
        between = ", " if kind == "list" else "; "  # plain numbers may be data, which has commas
        out += (text[last : match.start()], f"[{between.join(map(str, numbers))}]")
        length += len(out[-2])
        places.append((length, length + len(out[-1]), match[0]))
        length += len(out[-1])
        last = match.end()
    return Shaped("".join([*out, text[last:]]), tuple(places)) if places else Shaped(text, ())


def _numbers(said: str) -> list[int]:
    """Reads `1, 2` and `1-3`; nothing of what is no rising range."""
    found: list[int] = []
    until = False
    for part in _NUMBER.findall(said.translate(_DIGITS)):
        if not part.isdigit():
            until = bool(found)
            continue
        n = int(part)
        if until and not 0 < n - found[-1] < _MOST:
            return []
        found += range(found[-1] + 1, n + 1) if until else [n]
        until = False
    return found
