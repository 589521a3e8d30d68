"""Finds the lists of sources of a report: which address each number, note or author stands for."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urldefrag, urlsplit

# A closing bracket belongs to an address that holds the opening one.
ADDRESS = (
    r"(?:(?:https?|library|zim)://|(?<![\w./@\[-])www\.)"
    r"(?:[^\s<>()\[\]{}\\\"“”«»，。；、（）【】|]|\([^\s<>()]{0,200}\)){1,2000}"
    r"|\b[Dd][Oo][Ii]:\s?10\.\d{4,9}/[^\s<>\])\"，。]{1,200}|\barXiv:\s?\d{4}\.\d{4,5}"
)
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹①②③④⑤⑥⑦⑧⑨"
DIGITS = str.maketrans(SUPERSCRIPTS, "0123456789123456789", "※Source: s")
_NUMBERED: Mapping[str, str] = json.loads(
    (Path(__file__).parent / "identifiers.json").read_text("utf-8")
)
_OWN = ("library", "zim")  # what is stored on this machine
_ADDRESS = re.compile(ADDRESS)
_HEADING = re.compile(
    r"[ \t>]*(?:#{1,6}[ \t]*)?(?:\d+\.?[ \t]+)?[*_]{0,3}(?:"
    r"(?:list of |further |primary |key )?(?:sources?|references?|citations?|footnotes?|endnotes)"
    r"(?: and notes| cited)?|notes(?: et références| and references)?|works cited"
    r"|bibliography|literature(?: cited)?"
    r"|quellen(?:verzeichnis|angaben)?|einzelnachweise|literatur(?:verzeichnis)?|nachweise"
    r"|fuentes|referencias|bibliografía|fonti|riferimenti|références|bibliographie|fontes"
    r"|参考(?:资料|文献|来源|資料)|来源|資料來源|引用(?:来源|文献)?|出典|참고 ?문헌|출처"
    r")(?:\[edit\])?[ \t]*[:：]?[*_]{0,3}[ \t]*[:：]?[ \t]*",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"[ \t>]*(?:[-*+•][ \t]+)?"
    r"(?:\[\^?(?:citation:)?(?P<square>(?![xX]\])[\w.-]{1,20}|[^\[\]\n]{1,60}(?=\]:))\^?\](?P<defines>:)?"
    rf"|(?P<sup>(?:※|[Ss]ource )\d{{1,3}}:?|[{SUPERSCRIPTS}]{{1,3}})|【(?P<wide>\d{{1,3}})】)"
    r"(?:[ \t]+|$)"
)
_NUMBER = re.compile(r"[ \t>]*(?:\((\d{1,3})\)|(\d{1,3})(?:[.):]| ?[-–])?)[ \t]+(?=\S)")
_CITES = re.compile(r"\[\^?1[],;–-]")
_BULLET = re.compile(r"[ \t>]*[-*+•–^][ \t]+")
_SAME = re.compile(r"\W*(?:ibid|ibídem|ebd\b|ebenda|同上)", re.IGNORECASE)  # as the one before
_AUTHOR = re.compile(r"[ \t>]*[^\W\d_][\w'’-]{1,40}(?:,| and | & | et al)")
_SURNAME = re.compile(r"[A-ZÀ-Þ][\w'’-]{1,40}")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d[a-z]?\b")


# A reference of an encyclopedia's own text; one with a name may be cited again.
REF = re.compile(
    r"<ref(?:[ \t]+name[ \t]?=[ \t]?[\"']?(?P<ref>[^\"'/<>\n]{1,100})[\"']?)?[ \t]*"
    r"(?:/>|>(?P<said>[^<>]{0,2000})</ref>)"
)


class Entry(NamedTuple):
    """A source of a list: its label, its address ("" where it has none), words and place."""

    label: str
    url: str
    words: str
    start: int


def address_of(written: str) -> str:
    """Returns the web address that is meant, without its fragment; "" if it is none.

    Search sites wrap the addresses that they lead to; DOI and arXiv numbers have one.
    """
    written = written.strip().strip("<>").rstrip(".,;:!?'\"”’»*_`")
    written = f"https://{written}" if written.startswith("www.") else written
    kind, _, rest = written.partition(":")
    if place := _NUMBERED.get(kind.lower()):
        return place + rest.strip()
    try:
        parts = urlsplit(written)
        if parts.scheme in _OWN:
            return written
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return ""
    except ValueError:
        return ""
    if parts.path == "/url" and re.fullmatch(r"(?:www\.)?google\.[a-z.]{2,6}", parts.hostname):
        inside = parse_qs(parts.query)
        return address_of((inside.get("q") or inside.get("url") or [""])[0])
    return urldefrag(written)[0]


def addresses(text: str) -> list[str]:
    """Returns the addresses of a text in order."""
    return [url for found in _ADDRESS.finditer(text) if (url := address_of(found[0]))]


class References:
    """The lists of sources of a text; `spans` are where they stand."""

    def __init__(self, text: str) -> None:
        self.spans: list[tuple[int, int]] = []
        self.entries: list[Entry] = []
        self._inside = self._open = False  # a list; an entry that may go on in the next line
        self._shape, self._order = "", 0
        for ref in REF.finditer(text):
            if url := next(iter(addresses(ref["said"] or "")), ""):
                self.entries.append(
                    Entry((ref["ref"] or "").strip().casefold(), url, "", ref.start())
                )
        lines = list(re.finditer(r"[^\n]*\n?", text))
        full = (line for line in reversed(lines) if line[0].strip())
        last = list(takewhile(lambda n: _NUMBER.match(n[0]) and _ADDRESS.search(n[0]), full))
        bare = last[-1].start() if last and _CITES.search(text) else len(text)
        blank = True
        for line in lines:
            words = line[0].rstrip()
            self._inside = self._inside or line.start() == bare  # a list without a heading
            if words:
                self._line(words, line.start(), blank=blank)
            blank = not words
        self._named = defaultdict[str, list[Entry]](list)
        for entry in self.entries:
            self._named[entry.label].append(entry)
        self._authors = {
            (author[0], year): entry.url
            for entry in reversed(self.entries)
            if (author := _SURNAME.search(entry.words[:40]))
            for year in _YEAR.findall(entry.words)
        }

    def knows(self, label: str) -> bool:
        """Tells whether a list has this label."""
        return label.casefold() in self._named

    def url(self, label: str, place: int) -> str:
        """Returns the address behind a label at `place`: of the next list, else of the last."""
        found = self._named.get(label.casefold(), [])
        after = bisect_right([entry.start for entry in found], place)
        return found[min(after, len(found) - 1)].url if found else ""

    def by(self, author: str, year: str) -> str | None:
        """Returns the address of the entry that begins with an author, of this year."""
        return self._authors.get((author, year))

    def _line(self, words: str, start: int, *, blank: bool) -> None:
        if _HEADING.fullmatch(words):
            self._inside, self._open, self._shape, self._order = True, False, "", 0
            self.spans.append((start, start + len(words)))
            return
        found = self._entry(words)
        if found and not (blank and self._shape == "number" and found[0] == "plain"):
            shape, label, rest = found
            self._order += 1
            self._shape = self._shape or shape
            before = self.entries[-1:] if _SAME.match(rest) else ()
            url = next(iter((*addresses(rest), *(entry.url for entry in before))), "")
            label = label or str(self._order)
            self.entries.append(Entry(label, url, rest.strip(" \t*_^↑"), start))
            self._open = True
        elif self._open and not blank and not words.startswith("#"):
            last = self.entries[-1]
            url = last.url or next(iter(addresses(words)), "")
            self.entries[-1] = last._replace(url=url, words=f"{last.words} {words.strip()}")
        else:
            self._inside = self._open = False
            return
        self.spans.append((start, start + len(words)))

    def _entry(self, words: str) -> tuple[str, str, str] | None:
        """Returns the shape of an entry, its label and its words."""
        label = _LABEL.match(words)
        listed = self._inside or self._open
        if label and (listed or label["defines"] or _ADDRESS.search(words)):
            name = label["square"] or label["wide"] or label["sup"].translate(DIGITS)
            return "number", name.casefold(), words[label.end() :]
        if not self._inside or words.startswith("#"):
            return None
        if number := _NUMBER.match(words):
            return "number", number[1] or number[2], words[number.end() :]
        if bullet := _BULLET.match(words):
            return "bullet", "", words[bullet.end() :]
        plain = _ADDRESS.search(words) or _AUTHOR.match(words)
        return ("plain", "", words) if plain and self._shape != "number" else None
