"""One citation model: `[n]` marks and vendors' annotations become numbered, checked citations.

The program, not the model, decides what is a citation. Native annotations arrive with spans and are
given the session's numbers. In text written with our own numbers each `[n]` outside code is looked
up: a known one becomes a citation whose quote is compared with the page as it was read, an unknown
one is removed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from agent.sources import SourceTable
from agent.types import Citation, Mark, Message, Span

_CODE = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}+(?![^\n]*`)|~~~).*?(?:^[ \t>]*(?P=fence)|\Z)|`[^`\n]+`",
    re.DOTALL | re.MULTILINE,
)  # four digits are a year
MARK = re.compile(r"\[(\d{1,4}(?:[,;] ?\d{1,4})*)\](?![(:])")
_QUOTED = re.compile('“([^”]{12,})”|"([^"]{12,})"|«([^»]{12,})»|„([^“”]{12,})[“”]')
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_SHORTEST = 12  # characters: less is no sentence that could bear a claim out
_CHECKED = 100  # places of one number: more are no answer, and each is looked at
_LAST_MARK = re.compile(r"\[\d{1,4}\]\Z")


def settle(message: Message, table: SourceTable) -> Message:
    """The message with the session's numbers, and no mark in it that leads nowhere."""
    text, citations = message.content, _numbered(message.citations, table)
    for source in message.sources:  # after the citations: numbers go by first mention in the text
        cited, day = source.state == "cited", source.published
        table.meet(source.url, source.title, source.state, number=cited, published=day)
    if not citations and len(table):
        text, spans = _marks(text, table)
        citations = tuple(_cite(n, where, text, table) for n, where in sorted(spans.items()))
    sources = () if message.tool_calls else table.touched()
    if text is message.content and citations == message.citations and sources == message.sources:
        return message
    return replace(message, content=text, citations=citations, sources=sources, encoded={})


def joined(parts: Sequence[Message]) -> Message:
    """The parts of an answer that its provider paused, as one message."""
    if len(parts) == 1:
        return parts[0]
    citations: list[Citation] = []
    length = 0
    for part in parts:
        for c in part.citations:
            citations.append(replace(c, marks=tuple(_moved(mark, length) for mark in c.marks)))
        length += len(part.content)
    text = "".join(part.content for part in parts)
    return replace(parts[-1], content=text, citations=_merged(citations), encoded={})


def _moved(mark: Mark, by: int) -> Mark:
    return replace(mark, span=(mark.span[0] + by, mark.span[1] + by)) if mark.span else mark


def _numbered(citations: Iterable[Citation], table: SourceTable) -> tuple[Citation, ...]:
    """A provider's citations with the session's numbers, checked where we have read the page."""
    found = []
    for c in citations:
        text = table.text(c.url)
        page = None if text is None else Page(text)
        marks = tuple(
            replace(mark, verified=page.holds(mark.quote)) if mark.quote and page else mark
            for mark in c.marks
        )
        found.append(replace(c, n=table.meet(c.url, c.title, "cited").n or c.n, marks=marks))
    return _merged(found)


def _merged(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """One citation a number, with all its marks; two spellings of one address are one source."""
    found: dict[int, Citation] = {}
    for c in citations:
        known = found.get(c.n)
        found[c.n] = replace(known, marks=(*known.marks, *c.marks)) if known else c
    return tuple(found.values())


def _marks(text: str, table: SourceTable) -> tuple[str, dict[int, list[Span]]]:
    """The text without marks that lead nowhere, and where the others stand in it."""
    code = [m.span() for m in _CODE.finditer(text)]
    starts = [start for start, _ in code]
    out: list[str] = []
    spans: dict[int, list[Span]] = {}
    length = last = 0
    for match in MARK.finditer(text):
        at = bisect_right(starts, match.start()) - 1
        if at >= 0 and match.start() < code[at][1]:
            continue
        known = [n for n in map(int, _NUMBER.findall(match[1])) if table.numbered(n)]
        before = text[last : match.start()]
        out.append(before if known else before.rstrip(" \t"))
        length += len(out[-1])
        last = match.end()
        for n in known:
            out.append(f"[{n}]")
            spans.setdefault(n, []).append((length, length + len(out[-1])))
            length += len(out[-1])
    out.append(text[last:])
    return "".join(out), spans


def _cite(n: int, spans: list[Span], text: str, table: SourceTable) -> Citation:
    known = table.numbered(n)
    assert known is not None
    source = table.meet(known.url, known.title, "cited")
    read = table.text(source.url)
    page = None if read is None else Page(read)
    marks = []
    for place, span in enumerate(spans):
        quote, verified = None, None
        if page is not None and place < _CHECKED:
            quote, verified = page.check(claim_before(text, span[0]))
        marks.append(Mark(span, quote, verified))
    return Citation(n, source.url, source.title, tuple(marks))


def claim_before(text: str, position: int) -> str:
    """The sentence that a mark at `position` stands behind."""
    before = text[max(0, position - 1200) : position].rstrip()
    while mark := _LAST_MARK.search(before, max(0, len(before) - 6)):
        before = before[: mark.start()].rstrip()
    parts = [p for p in _SENTENCE.split(before) if p.strip()]
    return parts[-1].strip(" \t-*>#") if parts else ""


class Page:
    """The text of a page that claims are compared with; taken apart once, however many come."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._flat = _flat(text)
        self._seen: dict[str, tuple[str | None, bool]] = {}

    def holds(self, quote: str) -> bool:
        """Whether these words stand in the page."""
        return _flat(quote).strip(" .…") in self._flat

    def check(self, claim: str) -> tuple[str | None, bool]:
        """The page's words behind a claim, and whether they bear it out.

        Literal quotations must stand in the page; without one the page's closest sentence is the
        quote, and every number and most other words of the claim must occur in it.
        """
        known = self._seen.get(claim)
        if known is None:
            known = self._seen[claim] = self._compared(claim)
        return known

    def _compared(self, claim: str) -> tuple[str | None, bool]:
        quoted = [max(groups, key=len).strip() for groups in _QUOTED.findall(claim)]
        if quoted:
            missing = next((quote for quote in quoted if not self.holds(quote)), None)
            return missing or max(quoted, key=len), missing is None
        words = set(_WORD.findall(_flat(claim)))
        best, most = "", 0
        for sentence, held in self._sentences:
            if len(found := words & held) > most:
                best, most = sentence, len(found)
        if not words or most < 0.3 * len(words):
            return None, False
        numbers = {w for w in words if any(ch.isdigit() for ch in w)}
        borne_out = most >= 0.6 * len(words) and numbers <= set(_WORD.findall(_flat(best)))
        return best[:400], borne_out

    @cached_property
    def _sentences(self) -> list[tuple[str, frozenset[str]]]:
        return [
            (sentence.strip(), frozenset(_WORD.findall(_flat(sentence))))
            for sentence in _SENTENCE.split(self._text)
            if len(sentence) >= _SHORTEST
        ]


def _flat(text: str) -> str:
    """Case, white space, Markdown and footnote marks, typographic quotes out of the comparison."""
    text = MARK.sub("", _LINK.sub(r"\1", text).translate(_PLAIN))
    return " ".join(text.casefold().split())


_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_PLAIN = str.maketrans({**dict.fromkeys("*_`#>|", ""), "’": "'", "‘": "'", "“": '"', "”": '"'})
