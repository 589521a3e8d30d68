"""Citations: turns the marks of an answer into citations and checks them against the pages read.

Only a mark whose number is in the source table counts; `settle` removes every other. Codecs bring a
provider's citations into the same form with `numbered`, `sources` and `locate`. Providers count
offsets in code points or UTF-16 units, with or without the last character, or wrongly: `locate`
trusts a range that contains the cited address, tries the other readings, then looks for the link.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from searchloop.agent.search.source_numbers import SourceTable, is_tracking, merged
from searchloop.agent.types import Citation, Mark, Message, Source, Span

_CODE = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}+(?![^\n]*`)|~~~).*?(?:^[ \t>]*(?P=fence)|\Z)|`[^`\n]+`",
    re.DOTALL | re.MULTILINE,
)  # four digits are a year
MARK = re.compile(r"\[(\d{1,4}(?:[,;] ?\d{1,4})*)\](?![(:])")
_QUOTED = re.compile('“([^”]{12,})”|"([^"]{12,})"|«([^»]{12,})»|„([^“”]{12,})[“”]')
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_SHORTEST = 12  # characters; a shorter sentence supports no claim
_CHECKED = 100  # places of one number to compare with the page: a bound for the work
_LAST_MARK = re.compile(r"\[\d{1,4}\]\Z")


def settle(message: Message, table: SourceTable) -> Message:
    """Returns the message with the session's numbers, without marks of unknown numbers."""
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
    """Joins the parts of an answer that its provider paused into one message."""
    if len(parts) == 1:
        return parts[0]
    citations: list[Citation] = []
    text = ""
    for part in parts:
        for c in part.citations:
            citations.append(replace(c, marks=tuple(_moved(mark, len(text)) for mark in c.marks)))
        text += part.content
    return replace(parts[-1], content=text, citations=_merged(citations), encoded={})


def _moved(mark: Mark, by: int) -> Mark:
    return replace(mark, span=(mark.span[0] + by, mark.span[1] + by)) if mark.span else mark


def _numbered(citations: Iterable[Citation], table: SourceTable) -> tuple[Citation, ...]:
    """Gives a provider's citations the session's numbers; checks those of pages we have read."""
    found = []
    for c in citations:
        page = _page(table, c.url)
        marks = tuple(
            replace(mark, verified=page.holds(mark.quote)) if mark.quote and page else mark
            for mark in c.marks
        )
        found.append(replace(c, n=table.meet(c.url, c.title, "cited").n or c.n, marks=marks))
    return _merged(found)


def _merged(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Merges the citations of one number; two spellings of an address are one source."""
    found: dict[int, Citation] = {}
    for c in citations:
        known = found.get(c.n)
        found[c.n] = replace(known, marks=(*known.marks, *c.marks)) if known else c
    return tuple(found.values())


def _marks(text: str, table: SourceTable) -> tuple[str, dict[int, list[Span]]]:
    """Returns the text without marks of unknown numbers, and the spans of the others by number."""
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
    page = _page(table, source.url)
    marks = []
    for place, span in enumerate(spans):
        quote, verified = None, None
        if page is not None and place < _CHECKED:
            quote, verified = page.check(claim_before(text, span[0]))
        marks.append(Mark(span, quote, verified))
    return Citation(n, source.url, source.title, tuple(marks))


def _page(table: SourceTable, url: str) -> ReadPage | None:
    text = table.text(url)
    return None if text is None else ReadPage(text)


def claim_before(text: str, position: int) -> str:
    """Returns the sentence before a mark at `position`."""
    before = text[max(0, position - 1200) : position].rstrip()
    while mark := _LAST_MARK.search(before, max(0, len(before) - 6)):
        before = before[: mark.start()].rstrip()
    parts = [p for p in _SENTENCE.split(before) if p.strip()]
    return parts[-1].strip(" \t-*>#") if parts else ""


class ReadPage:
    """The text of a page, split once for all the claims that are compared with it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._flat = _flat(text)
        self._seen: dict[str, tuple[str | None, bool]] = {}

    def holds(self, quote: str) -> bool:
        """Returns whether the page holds these words."""
        return _flat(quote).strip(" .…") in self._flat

    def check(self, claim: str) -> tuple[str | None, bool]:
        """Returns the page's words behind a claim, and whether they support it.

        The page must hold literal quotations word for word. Without one, the quote is the page's
        closest sentence: it must hold every number and most other words of the claim.
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
    """Returns the text without case, extra blanks, Markdown, marks and typographic quotes."""
    text = MARK.sub("", _LINK.sub(r"\1", text).translate(_PLAIN))
    return " ".join(text.casefold().split())


_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_PLAIN = str.maketrans({**dict.fromkeys("*_`#>|", ""), "’": "'", "‘": "'", "“": '"', "”": '"'})


def sources(consulted: Iterable[Source], citations: Iterable[Citation]) -> tuple[Source, ...]:
    """Lists what was consulted, in order; each page once, under the address cited."""
    cited = (Source(c.url, c.title, "cited", c.n) for c in citations)
    found: dict[str, Source] = {}
    for source in (*consulted, *cited):
        page = without_tracking(source.url)
        known = found.get(page)
        if known is None or (known.n is not None and source.n is not None):
            found[page if known is None else f"{page} {source.n}"] = source
            continue
        url = source.url if source.n else known.url
        found[page] = replace(merged(known, source), url=url)
    return tuple(found.values())


def numbered(found: Iterable[tuple[Mark, str, str]]) -> tuple[Citation, ...]:
    """Makes citations of (mark, url, title), numbered in the order of the text.

    Pages without a place come last; marks without a place count only if a page has no other.
    """
    marks: dict[str, dict[Mark, None]] = {}
    titles: dict[str, str] = {}
    for mark, url, title in sorted(found, key=lambda f: (f[0].span is None, f[0].span or ())):
        known = marks.setdefault(url, {})
        if mark.span or (mark.quote and not known):
            known[mark] = None
        titles[url] = titles.get(url) or title
    return tuple(
        Citation(n, url, titles[url], tuple(known))
        for n, (url, known) in enumerate(marks.items(), 1)
    )


def without_tracking(url: str) -> str:
    """Returns `url` without the parameters that only tell where its reader came from."""
    page, _, rest = url.partition("?")
    query, mark, fragment = rest.partition("#")
    kept = "&".join(part for part in query.split("&") if not is_tracking(part, page))
    if kept == query:
        return url
    return f"{page}?{kept}{mark}{fragment}" if kept else f"{page}{mark}{fragment}"


def locate(text: str, start: int, end: int, url: str) -> tuple[int, int] | None:
    """Returns the half-open code-point range of the citation of `url`, or None."""
    link = url if url in text else without_tracking(url)
    if link not in text:
        start, end = max(0, start), min(end, len(text))
        return (start, end) if start < end else None
    fits = [
        (first, last)
        for first, last in _readings(text, start, end)
        if 0 <= first < last <= len(text) and link in text[first:last]
    ]
    whole = _around(
        text, text.find(link, fits[0][0]) if fits else _nearest(text, link, start), link
    )
    # A shifted range may contain the address too, but only the right one begins with its link.
    return whole if not fits or whole in fits else fits[0]


def widen(text: str, at: int) -> tuple[int, int] | None:
    """Returns the range of the sentence that ends at `at`, for a citation without a mark."""
    end = len(text[:at].rstrip())
    begin = max(
        text.rfind("\n", 0, end), *(text.rfind(stop, 0, end - 1) for stop in (". ", "! ", "? "))
    )
    begin += 1 + (text[begin + 1 : begin + 2] == " ")
    return (begin, end) if begin < end else None


def _readings(text: str, start: int, end: int) -> list[tuple[int, int]]:
    readings = [(start, end), (start, end + 1)]
    if not text.isascii() and max(text) > "\uffff":
        first, last = _code_point(text, start), _code_point(text, end)
        readings += [(first, last), (first, last + 1)]
    return readings


def _code_point(text: str, units: int) -> int:
    """Converts an offset in UTF-16 units to one in code points."""
    encoded = text.encode("utf-16-le", "surrogatepass")[: max(0, units) * 2]
    return len(encoded.decode("utf-16-le", "ignore"))


def _nearest(text: str, link: str, start: int) -> int:
    before = text.rfind(link, 0, max(0, start) + len(link))
    after = text.find(link, max(0, start))
    if before < 0 or (after >= 0 and after - start < start - before):
        return after
    return before


def _around(text: str, at: int, link: str) -> tuple[int, int]:
    """Returns the range of the whole link around the address at `at`, brackets included."""
    start, end = at, at + len(link)
    while end < len(text) and text[end] not in " \t\r\n)>]\"'":
        end += 1
    opened = text.rfind("[", 0, start) if text[start - 2 : start] == "](" else -1
    if opened >= 0 and text[end : end + 1] == ")" and "\n" not in text[opened:start]:
        start, end = opened, end + 1
        if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
            start, end = start - 1, end + 1
    return start, end
