"""Citations: turns the marks of an answer into citations and compares them with the pages read.

Only a mark whose number is in the source table counts. Codecs bring a
provider's citations into the same form with `numbered`, `sources` and `locate`. Providers count
offsets in code points or UTF-16 units, with or without the last character, or wrongly: `locate`
trusts a range that contains the cited address, tries the other readings, then looks for the link.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from searchloop.agent.search.source_numbers import SourceTable, merged
from searchloop.agent.types import Citation, Mark, Message, Source, Span
from searchloop.analysis.addresses import is_tracking

if TYPE_CHECKING:
    from searchloop.agent.search.claims import Claims
    from searchloop.agent.verdicts.check import Verdict
    from searchloop.agent.verdicts.page import Page

# Perplexity writes [1] or [1, 2], xAI [[1]](address); both count the pages of one answer.
_VENDOR_MARK = re.compile(r"\[\d+(?:[,;、，]\s?\d+)*\]|\[\[\d+\]\]\([^()\s]*\)", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)
_STRING = re.compile(r'"(?>(?:[^"\\]++|\\.)*)(?:"|\Z)')
_CHECKED = 400  # marks of one answer that are compared with pages: a bound for the work
_PASSAGE = 600  # characters of a page that a mark shows


def settle(message: Message, table: SourceTable) -> Message:
    """Returns the message with the session's numbers and a verdict for each mark.

    Marks of numbers that do not exist are removed. Verdicts that are there already stay, so that
    settling twice changes nothing.
    """
    # A provider's citations get the session's numbers.
    met = (c._replace(n=table.meet(c.url, c.title, "cited").n or c.n) for c in message.citations)
    text, citations = message.content, _merged(met)
    structured = bool(message.details.get("structured"))  # JSON, whose brackets are lists
    for source in message.sources:  # after the citations: numbers go by first mention in the text
        cited, day = source.state == "cited", source.published
        table.meet(source.url, source.title, source.state, number=cited, published=day)
    if structured:
        citations = citations or _in_strings(text, table)
    else:
        text, citations = _renumbered(text, citations)
    if not citations and len(table) and not structured:
        text, citations = _marked(text, table)
    citations = _judged(text, citations, table)
    sources = () if message.tool_calls else table.touched()
    if text is message.content and citations == message.citations and sources == message.sources:
        return message
    return replace(message, content=text, citations=citations, sources=sources, encoded={})


async def settle_aside(message: Message, table: SourceTable) -> Message:
    """Settles on a thread where there are pages to compare with, for that takes a while."""
    if table.has_texts and (message.citations or not message.tool_calls):
        return await asyncio.to_thread(settle, message, table)
    return settle(message, table)


def joined(parts: Sequence[Message]) -> Message:
    """Joins the parts of an answer that its provider paused into one message."""
    if len(parts) == 1:
        return parts[0]
    citations: list[Citation] = []
    text = ""
    for part in parts:
        at = len(text)
        for c in part.citations:
            moved = ((m, m.span and (m.span[0] + at, m.span[1] + at)) for m in c.marks)
            citations.append(c._replace(marks=tuple(m._replace(span=span) for m, span in moved)))
        text += part.content
    return replace(parts[-1], content=text, citations=_merged(citations), encoded={})


def _merged(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Merges the citations of one number; two spellings of an address are one source."""
    found: dict[int, Citation] = {}
    for c in citations:
        known = found.get(c.n)
        found[c.n] = known._replace(marks=(*known.marks, *c.marks)) if known else c
    return tuple(found.values())


def _renumbered(text: str, citations: Sequence[Citation]) -> tuple[str, tuple[Citation, ...]]:
    """Writes the session's numbers where a provider wrote marks of its own, and moves all spans.

    A mark among them whose number names no source of the provider goes.
    """
    numbers: dict[Span, list[int]] = {}
    for c in citations:
        for span in c.spans:
            if _VENDOR_MARK.fullmatch(text, *span):
                numbers.setdefault(span, []).append(c.n)
    known = {int(n) for span in numbers for n in _NUMBER.findall(text[slice(*span)])}
    if known and any(mark.verdict is None for c in citations for mark in c.marks):
        from searchloop.agent.search.marks import find

        stray = (p for p in find(text, known, max(known)) if not p.numbers)
        numbers |= {(place.start, place.end): [] for place in stray}
    out: list[str] = []
    own: dict[tuple[Span, int], Span] = {}
    moved: list[tuple[Span, Span]] = []  # where each mark was, and where it is
    last = length = 0
    for span, cited in sorted(numbers.items()):
        written = text[slice(*span)]
        same = written[1] != "[" and {int(n) for n in _NUMBER.findall(written)} == set(cited)
        if span[0] < last or same:
            continue
        before = text[last : span[0]]
        out.append(before if cited else before.rstrip(" \t"))
        begin = length = length + len(out[-1])
        for n in cited:
            out.append(f"[{n}]")
            own[span, n] = (length, length + len(out[-1]))
            length += len(out[-1])
        last = span[1]
        moved.append((span, (begin, length)))
    if not moved:
        return text, tuple(citations)
    out.append(text[last:])

    def new(mark: Mark, n: int) -> Mark:
        if not mark.span:
            return mark
        begin, end = (_place(at, side, moved) for side, at in enumerate(mark.span))
        span = own.get((mark.span, n)) or (begin, end)
        return mark._replace(span=span if span[0] < span[1] else None)  # None: inside of a mark

    renewed = (c._replace(marks=tuple(new(mark, c.n) for mark in c.marks)) for c in citations)
    return "".join(out), tuple(renewed)


def _place(at: int, side: int, moved: Sequence[tuple[Span, Span]]) -> int:
    """Returns where a begin (0) or end (1) is now; inside of a mark, it moves to the other end."""
    found = bisect_right(moved, at, key=lambda pair: pair[0][1])
    there = at + (moved[found - 1][1][1] - moved[found - 1][0][1] if found else 0)
    if found == len(moved):
        return there
    was, now = moved[found]
    return now[1 - side] if was[0] < at else min(there, now[0])


def _marked(text: str, table: SourceTable) -> tuple[str, tuple[Citation, ...]]:
    """Returns the text without marks of unknown numbers, and the citations of the others."""
    from searchloop.agent.search.mark_shapes import shaped
    from searchloop.agent.search.marks import find, links

    def address(n: int) -> str:
        source = table.numbered(n)
        return source.url if source else ""

    known = shaped(text, table.numbers, address)
    out: list[str] = []
    spans: dict[int, list[Mark]] = {}
    length = last = 0
    for place in find(known.text, table.numbers, max(table.numbers, default=0)):
        before = known.part(last, place.start)
        out.append(before if place.numbers else before.rstrip(" \t"))
        length += len(out[-1])
        last = place.end
        for n in place.numbers:
            out.append(f"[{n}]")
            spans.setdefault(n, []).append(Mark((length, length + len(out[-1]))))
            length += len(out[-1])
    out.append(known.part(last, len(known.text)))
    text = "".join(out) if last else text
    for place in links(text, table.number_at):
        spans.setdefault(place.numbers[0], []).append(Mark((place.start, place.end)))
    return text, _cited(spans, table)


def _in_strings(text: str, table: SourceTable) -> tuple[Citation, ...]:
    """Returns the citations of the marks inside the strings of a JSON text."""
    from searchloop.agent.search.marks import find

    spans: dict[int, list[Mark]] = {}
    for string in _STRING.finditer(text):
        for place in find(string[0], table.numbers, max(table.numbers, default=0)):
            span = (string.start() + place.start, string.start() + place.end)
            for n in place.numbers:
                spans.setdefault(n, []).append(Mark(span))
    return _cited(spans, table)


def _cited(spans: Mapping[int, list[Mark]], table: SourceTable) -> tuple[Citation, ...]:
    """Makes citations of marks by their numbers, all of which are known."""
    citations = []
    for n, marks in sorted(spans.items()):
        known = table.numbered(n)
        assert known is not None
        source = table.meet(known.url, known.title, "cited")
        in_order = sorted(marks, key=lambda mark: mark.span or (0, 0))
        citations.append(Citation(n, source.url, source.title, tuple(in_order)))
    return tuple(citations)


def _judged(text: str, citations: tuple[Citation, ...], table: SourceTable) -> tuple[Citation, ...]:
    """Gives each mark its verdict."""
    if not citations:
        return ()
    from searchloop.agent.verdicts.page import Page

    left = [_CHECKED]
    claims = claims_of(text, citations)
    out, pages = [], dict[int, Page]()
    for c in citations:
        read = table.text(c.url)
        page = None if read is None else pages.setdefault(c.n, Page(read))
        marks = (
            mark if mark.verdict is not None else _first(mark, page, claims, left)
            for mark in c.marks
        )
        out.append(c._replace(marks=tuple(marks)))
    new = any(mark.verdict is None for c in citations for mark in c.marks)
    return judged_together(text, out, pages, claims) if new else tuple(out)


def judged_together(
    text: str,
    citations: Sequence[Citation],
    pages: Mapping[int, Page],
    claims: Callable[[], Claims],
) -> tuple[Citation, ...]:
    """Ticks the marks of one place, as in `A and B [1][2]`, whose pages say it together."""
    from searchloop.agent.verdicts.check import together

    now = {c.n: list(c.marks) for c in citations}
    left = _TOGETHER
    for place in _places(text, citations):
        open_ = [(n, at) for n, at in place if now[n][at].verdict == "unclear" and n in pages]
        several = 1 < len({n for n, _ in open_}) == len(place) and left > 0
        spans = [now[n][at].span for n, at in place]
        if several and spans[0] and (said := claims().at(*spans[0])):
            left -= 1
            found = together(said[0], [pages[n] for n, _ in place])
            for (n, at), verdict in zip(place, found, strict=False):
                now[n][at] = _with(now[n][at], verdict, "words")
    return tuple(c._replace(marks=tuple(now[c.n])) for c in citations)


_TOGETHER = 100  # places of one answer
_BETWEEN = re.compile(r"[\s,;]*")


def _places(text: str, citations: Iterable[Citation]) -> list[list[tuple[int, int]]]:
    """Returns the marks that stand side by side, each as (citation, place in it)."""
    marks = sorted((m.span, c.n, at) for c in citations for at, m in enumerate(c.marks) if m.span)
    found: list[list[tuple[int, int]]] = []
    last: Span = (-1, -1)
    for span, n, at in marks:
        if span == last or (found and _BETWEEN.fullmatch(text, last[1], span[0])):
            found[-1].append((n, at))
        else:
            found.append([(n, at)])
        last = span
    return found


def claims_of(text: str, citations: Sequence[Citation]) -> Callable[[], Claims]:
    """Returns what cuts the claims out of an answer, when the first is wanted."""

    @cache
    def claims() -> Claims:
        from searchloop.agent.search.claims import Claims

        return Claims(text, (m.span for c in citations for m in c.marks if m.span))

    return claims


def _first(mark: Mark, page: Page | None, claims: Callable[[], Claims], left: list[int]) -> Mark:
    """Compares a mark with its page, else with the passage that its provider quoted."""
    from searchloop.agent.verdicts.check import check_readings
    from searchloop.agent.verdicts.page import Page

    if (page is None and not mark.quote) or not mark.span or left[0] <= 0:
        return mark._replace(verdict="unread" if page is None else "unclear")
    left[0] -= 1
    if page is not None:
        return compared(mark, page, claims)
    verdict = check_readings(claims().at(*mark.span), Page(mark.quote or ""))
    if verdict.verdict == "misquoted":  # the page may say it elsewhere
        verdict = replace(verdict, verdict="unclear")
    return _with(mark, verdict, "provider")


def compared(mark: Mark, page: Page, claims: Callable[[], Claims]) -> Mark:
    """Compares a mark with its page. A provider's passage that stands there counts further."""
    from searchloop.agent.verdicts.check import check_readings, place_of

    verdict = check_readings(claims().at(*mark.span) if mark.span else (), page)
    told = mark.by == "provider" and mark.verified is not None
    if told and verdict.verdict == "unclear" and place_of(mark.quote or "", page):
        return mark
    return _with(mark, verdict, "words")


def _with(mark: Mark, verdict: Verdict, by: str) -> Mark:
    passage = verdict.passage
    if len(passage) > _PASSAGE:
        passage = passage[:_PASSAGE] + "…"
    return mark._replace(
        verdict=verdict.verdict,
        quote=mark.quote or verdict.quote or None,
        passage=passage or None,
        by=by,
    )


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
        found[page] = merged(known, source)._replace(url=url)
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
