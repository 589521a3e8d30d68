"""Tells whether what stands side by side in a claim belongs together in the source."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token
from searchloop.analysis.words import table

Pairs = Sequence[tuple[int, int]]  # places in the claim and the window that hold the same
_ALIGNED = 0.8  # share of the claim in the window's order, or all but one word of it
_LETTERS = 0.65  # that share in scripts without spaces


def written(token: Token) -> bool:
    """Tells whether two letters are of a name or a noun rather than Japanese endings."""
    return token.kind == "letter" and not any("\u3041" <= c <= "\u309f" for c in token.key)


def tells(token: Token) -> bool:
    """Tells whether a token is of a word with a meaning, not of grammar."""
    return token.kind == "word" or written(token)


def borrowed(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs, page: Page) -> bool:
    """Tells of a negation in the claim that the window has at most in a sentence of other words."""
    found = {i: page.sentence_of(theirs[j].start) for i, j in pairs}
    for i, token in enumerate(ours):
        if token.kind == "not" and i not in found:
            first = max((j + 1 for k, j in pairs if k < i), default=0)
            last = min((j for k, j in pairs if k > i), default=len(theirs))
            if not any(t.kind == "not" for t in theirs[first:last]):
                return True
        beside = [found.get(k) for k in (i - 1, i + 1) if 0 <= k < len(ours)]
        known = [number for number in beside if number is not None]
        if token.kind == "not" and known and i in found and found[i] not in known:
            return True
    return False


@lru_cache
def _breaks(lang: str) -> re.Pattern[str]:
    """Returns what stands between two clauses: punctuation, a line's end, `and`."""
    words = "|".join(table(numbers.TABLES["conjunctions"]).get(lang, ()))
    marks = r"[;；。，、：()（）|\n—–!?！？]|(?:[,:]|(?<!\d)\.)(?=\s)(?!\s(?:1\d|20)\d\d\b)"
    return re.compile(rf"{marks}|\s(?:{words})(?=\s)" if words else marks, re.IGNORECASE)


def _clauses(tokens: Sequence[Token], page: Page) -> list[int]:
    """Returns for each token the number of its clause."""
    start = min(t.start for t in tokens)
    text = page.clean[start : max(t.end for t in tokens)]
    breaks = [start + m.start() for m in _breaks(page.lang).finditer(text)]
    return [bisect(breaks, t.start) for t in tokens]


def elsewhere(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs, page: Page) -> bool:
    """Tells of words that are neighbours in the claim, but belong to two clauses of the source.

    `X costs $9; Y costs $12` does not say that X costs $12. The later clause has a subject of its
    own before the second word, or each of the clauses its own number.
    """
    clauses = _clauses(theirs, page)
    said = {t.key for t in ours}
    odd = [t.kind != "not" and t.key not in said for t in theirs]
    if not pairs or lent(ours, theirs, page):
        return bool(pairs)
    share = _LETTERS if sum(t.kind == "letter" for t in ours) * 2 > len(ours) else _ALIGNED
    for (i, p), (k, q) in (
        pairwise(pairs) if len(pairs) >= min(share * len(ours), len(ours) - 1) else ()
    ):
        if k - i > 1 + (ours[i].kind == "letter") or q == p + 1:
            continue
        if all(t.kind == "letter" and not written(t) for t in ours[k:]):
            break  # only the ending of the last word is left
        here = [m for m in range(p + 1, q) if clauses[m] == clauses[q]]
        crossed, rest = clauses[p] != clauses[q], [m for m in here if odd[m]]
        again = ours[i].kind != "letter" or written(ours[i])
        again = again and any(theirs[m].key == ours[i].key and any(odd[here[0] : m]) for m in here)
        if rest and again:
            return True
        left = [m for m in range(p + 1, q) if odd[m] and clauses[m] == clauses[p]]
        if crossed and all(any(tells(theirs[m]) for m in side) for side in (left, rest)):
            return True  # `open on Monday and closed on Tuesday`
        before = [ours[a] for a, b in pairs if crossed and clauses[b] == clauses[p]]
        units = {n.unit for t in (*before, *ours[max(0, i - 1) : i + 1]) if (n := t.number)}
        if any(n.unit in units for m in rest if (n := theirs[m].number)):
            return True
        if ours[k].number and crossed:
            odd_there = [m for m, n in enumerate(clauses) if n == clauses[p] and odd[m]]
            mixed = any(
                n == clauses[q] and odd[m] and not theirs[m].number for m, n in enumerate(clauses)
            )
            if any(theirs[m].number for m in odd_there) and (mixed or k + 1 >= len(ours)):
                return True
    return False


def _filler(token: Token) -> str:
    """Returns whether a token is a name or a number, of which each clause has its own."""
    return "number" if token.number else "name" if token.capital else ""


def lent(ours: Sequence[Token], theirs: Sequence[Token], page: Page) -> bool:
    """Tells of a clause that gives the claim its name or number alone, in place of another's.

    `Invented by A and built by B` does not say that B invented it.
    """
    said = {t.key for t in ours}
    begun = {t.key[:5] for t in ours if len(t.key) > 4}
    clauses = _clauses(theirs, page)
    where: dict[str, set[int]] = {}
    for token, clause in zip(theirs, clauses, strict=True):
        where.setdefault(token.key, set()).add(clause)
    given: dict[int, list[Token]] = {}
    unused: dict[int, list[Token]] = {}
    for token, clause in zip(theirs, clauses, strict=True):
        if token.key not in said and token.key[:5] not in begun:
            unused.setdefault(clause, []).append(token)
        elif len(where.get(token.key, ())) == 1:
            given.setdefault(clause, []).append(token)
    if len(given) != 2:
        return False
    for there, tokens in given.items():
        kinds = {_filler(t) for t in tokens}
        if len(kinds) != 1 or "" in kinds or there not in unused:
            continue
        for here, others in given.items():
            rivals = {_filler(t) for t in unused.get(here, ())}
            apart = page.sentence_of(tokens[0].start) != page.sentence_of(others[0].start)
            if here == there or apart:
                continue
            if kinds <= rivals:
                return True
    return False


def exchanged(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether two names or words have each other's neighbours.

    `Open Tuesday, closed Monday` for `open Monday, closed Tuesday`, `B beat A` for `A beat B`.
    """
    one, other = _units(ours), _units(theirs)
    if _cross(*(dict(pairwise(reversed(units))) for units in (one, other))):
        return True
    passive = len({not _BY.isdisjoint({t.key for t in side}) for side in (ours, theirs)}) == 2
    turned = {(c, b, a) for a, b, c in zip(other, other[1:], other[2:], strict=False)}
    return not passive and bool(turned & {*zip(one, one[1:], one[2:], strict=False)})


def swapped(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether two numbers stand behind each other's words, or the later one first."""
    one, other = (
        {t.key: before and before.key for before, t in pairwise((None, *side)) if t and t.number}
        for side in (ours, theirs)
    )
    return _cross(one, other) or any(other.get(b) == a for a, b in one.items() if b in other)


def _cross(one: Mapping[str, str | None], other: Mapping[str, str | None]) -> bool:
    """Tells whether two keys of both have each other's value."""
    differ = sorted(key for key in one.keys() & other.keys() if one[key] != other[key])
    return any(one[a] == other[b] and one[b] == other[a] for a, b in combinations(differ, 2))


def active(ours: Sequence[Token], theirs: Sequence[Token]) -> Sequence[Token]:
    """Returns `B was built by A` as `A built B`, unless the other side is passive, too."""
    verbs = {t.key for t, by in pairwise(theirs) if by.word in _BY}
    for at in range(2, len(ours) - 1):
        verb, by, agent = ours[at - 1 : at + 2]
        if by.word not in _BY or verb.key in verbs or verb.kind != "word" or agent.number:
            continue
        first = at - 1
        while first and ours[first - 1].word in _AUXILIARY:
            first -= 1
        end = at + 2
        while (
            end < len(ours) and ours[end].kind == "word" and ours[end].start - ours[end - 1].end < 2
        ):
            end += 1
        if 0 < first < at - 1:
            return (*ours[at + 1 : end], verb, *ours[:first], *ours[end:])
    return ours


_AUXILIARY = frozenset(numbers.TABLES["auxiliaries"].split())
_BY = frozenset(["by", "von", "durch", "par", "por", "da", "door"])


def _units(tokens: Sequence[Token]) -> list[str]:
    """Returns the keys of words that occur once, of the capitalised ones in a row together."""
    found: list[str] = []
    last: Token | None = None
    for token in (t for t in tokens if t.kind in ("word", "number")):
        if last and last.capital and token.capital and token.start - last.end <= 1:
            found[-1] += f" {token.key}"
        else:
            found.append(token.key)
        last = token
    times = Counter(found)
    return [key for key in found if times[key] == 1]


def reversed_(ours: Sequence[Token], theirs: Sequence[Token], lang: str) -> bool:
    """Tells whether what stands behind `than` stands before it in the source, and vice versa."""
    for pivot, before, behind in _compared(ours, lang):
        for same, there, then in _compared(theirs, lang):
            if pivot == same and behind & there and then & before and not behind & then:
                return True
    return False


def _compared(tokens: Sequence[Token], lang: str) -> list[tuple[str, set[str], set[str]]]:
    """Returns each `than` or `before`, and what stands before and just behind it."""
    found = []
    for i, token in enumerate(tokens):
        than = token.word in _THAN.get(lang, ()) and (
            lang not in _AMBIGUOUS
            or any(_MORE.fullmatch(t.word) for t in tokens[max(0, i - 5) : i])
        )
        if than or token.word in _PIVOTS:
            behind = [t.key for t in tokens[i + 1 : i + 5] if t.kind == "word"][:2]
            before = {t.key for t in tokens[max(0, i - 14) : i] if t.kind == "word"}
            found.append((token.word, before, set(behind)))
    return found


_THAN = table(numbers.TABLES["than"])
_PIVOTS = frozenset(numbers.TABLES["pivots"].split())
_AMBIGUOUS = frozenset(("de", "es", "fr", "it", "nl", "pt"))  # their `than` is `that` or `of`, too
_MORE = re.compile(
    "m[aá]s|menos|mayor|menor|mejor|peor|plus|moins|meilleure?s?|pires?|più|meno|migliore?|mais|maior"
    "|melhor|pior|mehr|weniger|meer|minder|[^ ]{2,}er|[^ ]{3,}e[rn]en?"
)


def undated(
    ours: Sequence[Token], theirs: Sequence[Token]
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Returns both sides without their date or weekday, if each has one and it is the same."""
    for named in (True, False):
        one, other = _dates(ours, named), _dates(theirs, named)
        if len(one) == len(other) == 1:
            [(i, k)], [(j, m)] = one, other
            date, same = (
                [t.key for t in side if t.kind in ("number", "word")]
                for side in (ours[i:k], theirs[j:m])
            )
            if date == same:
                ours, theirs = (*ours[:i], *ours[k:]), (*theirs[:j], *theirs[m:])
    return ours, theirs


def _dates(tokens: Sequence[Token], named: bool) -> list[tuple[int, int]]:
    """Returns the ranges that hold a year or a named day, with day and month, and what leads in."""
    found: list[tuple[int, int]] = []
    for i, token in enumerate(tokens):
        year = token.number and token.number.unit in ("", "year") and _year(token.number.value)
        if not (token.word in _DAYS if named else year):
            continue
        start, end = i, i + 1
        while start and (tokens[start - 1].number or _month(tokens, start - 1)):
            start -= 1
        while end < len(tokens) and (tokens[end].number or tokens[end].key in _DATE_LETTERS):
            end += 1
        start -= start > 0 and tokens[start - 1].kind == "stop"
        found.append((start, end))
    return found


_DAYS = frozenset(numbers.TABLES["days"].split())


def _year(value: float) -> bool:
    return 1000 <= value <= 2100 and value == int(value)


def _month(tokens: Sequence[Token], at: int) -> bool:
    """Tells whether a word stands between a day and a year: `7. Juni 2019`, `9 de octubre de`."""
    day = any(
        t.number and t.number.value <= 31 and not t.number.unit for t in tokens[max(0, at - 3) : at]
    )
    return day and tokens[at].kind in ("word", "stop")


_DATE_LETTERS = frozenset("日に于於")
