"""Cuts a report into sentences and finds the addresses that each cites. Pure; never raises.

It reads the marks of chat programs, encyclopedias and papers: links, footnotes, numbers in brackets
or raised, author and year, bare addresses. Places are code points of the text as it is given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from searchloop.agent.search.claims import BACK, FEW, blank, count_words, torn, without
from searchloop.analysis.sentences import sentences
from searchloop.auditing.references import (
    ADDRESS,
    DIGITS,
    REF,
    SUPERSCRIPTS,
    References,
    address_of,
    addresses,
)

LONGEST = 300_000  # characters of a report; what stands behind them is not audited
_NUMBERS = r"\^?\d{1,3}(?:_\d{1,3})?(?:\s?[,;、，–-]\s?\^?\d{1,3}(?:_\d{1,3})?){0,15}"
_TARGET = (
    r"\((?:<[^<>\n]{1,2000}>|(?:[^()\s]|\([^()\s]{0,200}\)){0,2000})(?:\s+\"[^\"\n]{0,300}\")?\)"
)
_LABEL = r"(?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){0,400}"
_ONE_WIDTH = str.maketrans("\r［］", " []")
_LINK = rf"\[{_LABEL}\]{_TARGET}"
_ONE_LINK = re.compile(rf"\[(?P<words>{_LABEL})\](?P<to>{_TARGET})")
_LEAD = (
    r"(?i:(?:sources?|see(?: also)?|via|from|cf\.?|quellen?|siehe|fuentes?|fonte"
    r"|来源|參考|参考|出典)"
    r"[:：]?\s*)?"
)
# A block of code; one that nothing closes goes to the end.
_FENCED = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[\s\S]*?(?:\n[ \t>]*+\1[^\n]*|\Z)", re.MULTILINE)
_NOISE = re.compile(
    r"!\[[^\]\n]{0,400}\]\([^()\s]{0,2000}\)|<!--(?:(?!<!--).){0,5000}?-->"
    r"|<su[bp]>(?!\d[\d, ]*<)|(?<!\d)</su[bp]>|<span style=\"display:none\">.{0,2000}?</span>"
    r"|</?(?:img|span|div|cite|br|p|u|b|i|em|strong)(?:\s[^<>\n]{0,500})?>"
    r"|\[cite_start\]|\[citation needed\]|:contentReference\[oaicite:\d+\]\{index=\d+\}",
    re.DOTALL | re.IGNORECASE,
)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,500}\1(?!`)")
# Headings and the heads of tables claim nothing.
_HEADS = re.compile(
    r"^[ \t]*#{1,6}[ \t][^\n]*$|^[^\n]*\n(?=[ \t]*\|?[ \t]*:?-{3,}[-:| \t]*$)", re.MULTILINE
)
_MARK = re.compile(
    rf"(?P<group>[(（\[]{_LEAD}(?:{_LINK}[\s,;、&+]*){{1,12}}[)）\]])"
    rf"|(?P<link>{_ONE_LINK.pattern})"
    rf"|(?P<named>\(?\[(?!{_NUMBERS}\])(?P<name>[^\[\]\n]{{1,200}})\]"
    r"\[(?P<label>[\w. -]{0,60})\]\)?)"
    rf"|(?<!\\)\[(?:cite:\s?|citation:|[Ss]ource )?(?P<many>{_NUMBERS}\](?:[–-]\[\d{{1,3}}\])?)"
    r"(?:: ?\d{1,4}(?:[–-]\d{1,4})?)?(?!\()"
    r"|\[\^(?P<note>[\w.-]{1,20})\^?\]"
    r"|(?P<short>\[[^\[\]\n:/]{1,60}\])(?![(\[:])"
    rf"|{REF.pattern}"
    rf"|(?<!\d)<sup>(?P<html>{_NUMBERS})</sup>"
    r"|【(?P<wide>\d{1,3})(?::\d{1,3})?(?:†(?P<file>[^】\n]{0,2000}))?】"
    rf"|(?<=[^\W\d_]|[.,;:!?。！？”\")»%（(]) {{0,2}}"
    rf"(?P<raised>※\d{{1,2}}|[{SUPERSCRIPTS}]{{1,3}}(?:[,˒‚–⁻ʼ][{SUPERSCRIPTS}]{{1,3}}){{0,9}})"
    r"|\ue200?cite(?P<turns>(?:\ue202?turn\d{1,3}[a-z]{3,12}\d{1,3})+)\ue201?"
    rf"|(?P<beside>[(（][^()（）\n]{{0,120}}?(?:{ADDRESS})[^()（）\n]{{0,80}}[)）])"
    r"|(?P<years>\([^()\n]{2,200}\b(?:1[89]|20)\d\d[a-z]?\b[^()\n]{0,60}\))"
    r"|(?P<author>[A-ZÀ-Þ][\w'’-]{1,40})(?: et al\.?| (?:and|&|und|y|et) [A-ZÀ-Þ][\w'’-]{1,40})?"
    r"(?P<aside> \((?P<year>(?:1[89]|20)\d\d[a-z]?)\))"
    rf"|(?P<bare><?(?:{ADDRESS})>?)"
)
# Numbers that some programs lose the brackets of. They count where nothing else is a mark.
_LOOSE = re.compile(
    r"(?<=\w )\((?P<round>\d{1,3}(?:, ?\d{1,3})*)\)"
    r"|(?<=[\w)”\"%]\.)(?P<lost>\d{1,3}(?:, ?\d{1,3})*)(?=[ \t]+[^\W\da-z]|[ \t]*$)",
    re.MULTILINE,
)
# The words of a link that stand for a source and say nothing.
_NAME_ONLY = re.compile(
    rf"\W*\+?[\d{SUPERSCRIPTS}]{{0,3}}\W*|(?:www\.)?[\w-]+(?:\.[\w-]+)+|source|link|here|quelle|hier|fuente|来源|出典",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\n[ \t>]*(?:\n|[-*+•][ \t]|\d{1,3}[.)][ \t]|\|)")
_LEADS = re.compile(rf"\s*[(（*_]*{_LEAD}")
_SURNAME = re.compile(r"[A-ZÀ-Þ][\w'’-]+")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d[a-z]?\b")
_ORDINAL = re.compile(r"\s*(?:[-*+•>|][ \t]+|\(?\d{1,3}[.)][ \t]+)*")
_CLOSING = tuple('”"»」』“')
_OPENS = re.compile(r"\s+[“„\"«「『A-ZÀ-Þ]")
_BY = re.compile(r"[>\s]*(?:[—–]|--)[ \t]*\w")
_NEXT_LINE = re.compile(r"[ \t]*\n[ \t]*[“„\"«「『A-ZÀ-Þ\u3040-\u9fff]")
# A link stands for a source between a sentence that has ended and the next.
_SAID = re.compile(r"(?<!\d)[^\s\d.][.!?。”\")»*_]+[ \t]*\Z|\d[.!?。”\")»*_]+[ \t]*(?<!\n\d\. )\Z")
_OPENS_OR_ENDS = re.compile(r"[ \t]+[“„\"«「『A-ZÀ-Þ\d\u3040-\u9fff]|[ \t]*(?:\n|\Z)")


class Cited(NamedTuple):
    """A source of a sentence; `url` is "" where its `mark` names no address of the report.

    `readings` are the words that it may stand for, the widest first; `place` is the mark's, empty
    behind a link that holds words. Marks with words between them are in another `group`.
    """

    url: str
    mark: str
    readings: tuple[str, ...] = ()
    place: tuple[int, int] = (0, 0)
    group: int = 0


class Sentence(NamedTuple):
    """A sentence at [`start`, `end`) with the words that it claims, and what it cites.

    `near` are the addresses that a later sentence of its paragraph cites, where it cites nothing;
    `figures` tells whether it holds a number, which needs a source.
    """

    start: int
    end: int
    claim: str
    cited: tuple[Cited, ...] = ()
    near: tuple[str, ...] = ()
    figures: bool = False


class Paired(NamedTuple):
    """The sentences of a report. `listed` are addresses that no sentence cites; `cut` tells that
    the report is longer than what is read of it."""

    text: str
    sentences: tuple[Sentence, ...]
    listed: tuple[str, ...]
    cut: bool


class _Place(NamedTuple):
    """A mark at [`start`, `end`) and its (address, label) pairs; `words`: where it holds some."""

    start: int
    end: int
    sources: tuple[tuple[str, str], ...]
    words: tuple[int, int] | None = None


def pair(text: str) -> Paired:
    """Returns the sentences of a report, each with the addresses that it cites."""
    text, cut = text[:LONGEST], len(text) > LONGEST
    given = text.translate(_ONE_WIDTH)
    quiet = _blanked(_blanked(given, _FENCED), _NOISE)
    lists = References(_blanked(quiet, _CODE))
    body = without(quiet, lists.spans)
    headless = _blanked(body, _HEADS)
    marks = list(_marks(_blanked(headless, _CODE), lists))
    said = without(headless, _syntax(marks))
    outside = without(headless, ((mark.start, mark.end) for mark in marks))
    spans = list(_after_quotations(said, _whole(said, sentences(said)), marks))
    owned, loose = _owned(marks, spans, outside)
    found = [
        _sentence(said, span, owned[n])
        for n, span in enumerate(spans)
        if owned[n] or count_words(outside[slice(*span)])
    ]
    near = list(_with_near(found, said))
    cited = {each.url for sentence in near for each in sentence.cited}
    others = [*(entry.url for entry in lists.entries), *loose]
    listed = dict.fromkeys(url for url in others if url and url not in cited)
    return Paired(text, tuple(near), tuple(listed), cut)


# ---- marks -----------------------------------------------------------------------------------


def _marks(prose: str, lists: References) -> Iterator[_Place]:
    found = [place for match in _MARK.finditer(prose) if (place := _place(match, lists))]
    if lists.entries and not any(label for place in found for _, label in place.sources):
        for match in _LOOSE.finditer(prose):
            labels = re.findall(r"\d+", match["round"] or match["lost"])
            taken = any(place.start < match.end() and match.start() < place.end for place in found)
            if not taken and all(map(lists.knows, labels)):
                found.append(_Place(*match.span(), _named(labels, match.start(), lists)))
    for place in sorted(found):
        before = prose[max(0, place.start - 80) : place.start]
        behind = _SAID.search(before) and _OPENS_OR_ENDS.match(prose, place.end)
        yield place._replace(words=None) if place.words and behind else place


def _place(match: re.Match[str], lists: References) -> _Place | None:
    """Reads one mark; None where it is none."""
    start, end = match.span()
    if match["group"] or match["beside"] or match["bare"]:
        links = map(_target, _ONE_LINK.finditer(match[0]))
        urls = links if match["group"] else addresses(match[0])
        end -= bool(match["bare"]) * (len(match[0]) - len(match[0].rstrip(".,;:!?")))
        return _Place(start, end, tuple((url, "") for url in urls if url))
    if match["link"]:
        return _link(match)
    if match[0].startswith("<ref"):
        url = next(iter(addresses(match["said"] or "")), "")
        label = (match["ref"] or match["said"] or "").strip()
        return _Place(start, end, ((url, ""),) if url else _named([label], start, lists))
    if match["named"] or match["short"]:
        return _reference(match, lists)
    if match["years"] or match["author"]:
        return _by_author(match, lists)
    if match["turns"]:
        turns = re.findall(r"turn\d+[a-z]+\d+", match["turns"])
        return _Place(start, end, tuple(("", turn) for turn in turns))
    if url := address_of(match["file"] or ""):
        return _Place(start, end, ((url, ""),))
    if raised := match["raised"] or match["html"]:
        labels = re.findall(r"\d+", raised.translate(DIGITS))
        known = all(map(lists.knows, labels))
        return _Place(start, end, _named(labels, start, lists)) if known else None
    labels = _numbers(match["many"]) if match["many"] else [match["note"] or match["wide"] or ""]
    return _Place(start, end, _named(labels, start, lists))


def _target(link: re.Match[str]) -> str:
    return address_of(link["to"][1:-1].split(' "')[0])


def _link(match: re.Match[str]) -> _Place:
    url = _target(match)
    named = url and _NAME_ONLY.fullmatch(match["words"].strip())
    held = None if named else match.span("words")
    return _Place(*match.span(), ((url, ""),) if url else (), held)


def _reference(match: re.Match[str], lists: References) -> _Place | None:
    """Reads `[words][1]`, `[words][]` and `[words]`."""
    start, end = match.span()
    words = match["name"] or match["short"][1:-1]
    label = match["label"] or words
    if not lists.knows(label):
        return None
    at = start + match[0].index(words)
    held = None if match[0][0] == "(" else (at, at + len(words))
    return _Place(start, end, _named([label], start, lists), held)


def _by_author(match: re.Match[str], lists: References) -> _Place | None:
    if match["author"]:
        url = lists.by(match["author"], match["year"])
        return None if url is None else _Place(*match.span("aside"), ((url, match["author"]),))
    sources = []
    for work in match["years"].split(";"):
        name, year = _SURNAME.search(work), _YEAR.search(work)
        url = lists.by(name[0], year[0]) if name and year else None
        if url is not None and name:
            sources.append((url, name[0]))
    return _Place(*match.span(), tuple(sources)) if sources else None


def _numbers(written: str) -> list[str]:
    """Returns the labels of `1, 3-5` or `1_2`."""
    labels: list[str] = []
    for part in re.split(r"\s?[,;、，]\s?", re.sub(r"[\^\[\]]", "", written)):
        first, _, last = re.sub(r"\s?[–-]\s?", "-", part).partition("-")
        if last.isdigit() and first.isdigit() and 0 < int(last) - int(first) < 30:
            labels += map(str, range(int(first), int(last) + 1))
        else:
            labels += filter(None, (first, last))
    return labels


def _named(labels: Iterable[str], place: int, lists: References) -> tuple[tuple[str, str], ...]:
    return tuple((lists.url(label, place), label) for label in labels)


# ---- sentences -------------------------------------------------------------------------------


def _owned(
    marks: Sequence[_Place], spans: Sequence[tuple[int, int]], outside: str
) -> tuple[list[list[_Place]], list[str]]:
    """Returns the marks of each sentence, and the addresses that belong to none."""
    owned: list[list[_Place]] = [[] for _ in spans]
    loose: list[str] = []
    starts = [start for start, _ in spans]
    if not spans:
        return [], [url for mark in marks for url, _ in mark.sources]
    for mark in marks:
        at = mark.words[0] if mark.words else mark.start
        n = max(0, bisect_right(starts, at) - 1)
        opens = n + 1 < len(spans) and "\n" in outside[spans[n][1] : mark.start]
        n += opens and "\n" not in outside[mark.end : starts[n + 1]]  # the line of the next
        n -= _credits(outside, spans, n)
        start, end = spans[n]
        if not count_words(_LEADS.sub("", outside[start:end], count=1)):
            before = outside[spans[n - 1][1] : mark.start] if n else ""
            named = _LEADS.match(outside, start)
            if not n or (_ITEM.search(before) and not (named and named[0].strip())):
                loose += (url for url, _ in mark.sources)
                continue
            n -= 1
        owned[n].append(mark)
    return owned, loose


def _credits(outside: str, spans: Sequence[tuple[int, int]], n: int) -> bool:
    """Tells a line that says whose the quotation above it is."""
    first, last = spans[n - 1]
    quoted = n and (outside[first] == ">" or outside[last - 1] in _CLOSING)
    said_by = quoted and _BY.match(outside, spans[n][0])
    return bool(said_by) and "\n\n" not in outside[last : spans[n][0]]


def _sentence(said: str, span: tuple[int, int], marks: Sequence[_Place]) -> Sentence:
    start, end = span
    claim = _tidy(said[start:end])
    figures = bool(re.search(r"\d", _ORDINAL.sub("", claim, count=1))) and count_words(claim) >= FEW
    figures = figures and claim.rstrip(" *_)")[-1:] not in ("?", "？", ":", "：")
    cited: dict[tuple[str, int], Cited] = {}
    groups: list[list[_Place]] = []
    for mark in marks:
        before = groups[-1][-1] if groups else None
        if not before or before.words or re.search(r"\w", said[before.end : mark.start]):
            groups.append([])
        groups[-1].append(mark)
    for number, group in enumerate(groups):
        last = number == len(groups) - 1
        to = end if last or group[0].words else group[0].start
        readings = [claim if to >= end else _tidy(said[start:to])]
        if number and not group[0].words:
            readings.append(_tidy(said[groups[number - 1][-1].end : to]))
        told = tuple(dict.fromkeys(r for r in readings if count_words(r) >= FEW)) or (claim,)
        for mark in group:
            place = (mark.end if mark.words else mark.start, mark.end)
            for url, label in mark.sources:
                key = (url or f"?{label}", number)
                cited.setdefault(key, Cited(url, label, told, place, number))
    return Sentence(start, end, claim, tuple(cited.values()), (), figures)


def _with_near(found: Sequence[Sentence], said: str) -> Iterator[Sentence]:
    """Gives each sentence without a source those of the next one in its paragraph."""
    for n, sentence in enumerate(found):
        if sentence.cited or not sentence.figures:
            yield sentence
            continue
        near: tuple[str, ...] = ()
        for later in found[n + 1 : n + 1 + BACK]:
            if _ITEM.search(said[sentence.end - 1 : later.start + 2]):
                break
            if near := tuple(each.url for each in later.cited if each.url):
                break
        yield sentence._replace(near=near)


def _whole(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Joins the sentences of one quotation."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if torn(text[start:end]):
            for back in range(1, min(BACK, len(out)) + 1):
                first = out[-back][0]
                if "\n\n" in text[first:start]:
                    break
                if not torn(text[first:end]):
                    start, out = first, out[:-back]
                    break
        out.append((start, end))
    return out


def _after_quotations(
    said: str, spans: Iterable[tuple[int, int]], marks: Iterable[_Place]
) -> Iterator[tuple[int, int]]:
    """Ends a sentence without a full stop behind the mark of its quotation, and behind an address
    at the end of its line."""
    ends = [mark.end for mark in marks if not mark.words and _ends_a_sentence(said, mark)]
    for start, end in spans:
        while ends and ends[0] < end:
            if (cut := ends.pop(0)) > start:
                yield start, cut
                start = cut + len(said[cut:end]) - len(said[cut:end].lstrip())
        yield start, end


def _ends_a_sentence(said: str, mark: _Place) -> bool:
    if said[max(0, mark.start - 9) : mark.start].rstrip()[-1:] in _CLOSING:
        return bool(_OPENS.match(said, mark.end))
    line = said[said.rfind("\n", 0, mark.start) + 1 : mark.start]
    address = all(url and not label for url, label in mark.sources)
    return bool(address and _NEXT_LINE.match(said, mark.end)) and count_words(line) >= FEW


def _tidy(text: str) -> str:
    return re.sub(r"\s+(?=[.,;:!?。，])", "", " ".join(text.split()))


# ---- blanks, which keep all places -------------------------------------------------------------


def _syntax(marks: Iterable[_Place]) -> Iterator[tuple[int, int]]:
    for mark in marks:
        first, last = mark.words or (mark.end, mark.end)
        yield mark.start, first
        yield last, mark.end


def _blanked(text: str, shape: re.Pattern[str]) -> str:
    return shape.sub(lambda found: blank(found[0]), text)
