"""Tells whether the names, numbers and phrases of a claim stand in another order in the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.text import DAY, Token, apart
from searchloop.analysis.words import table


def respective(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether the source says `respectively` of what the claim does not list in its order."""
    said, listed = ({t.key for t in side if t.kind != "stop"} for side in (ours, theirs))
    if not any(_RESPECTIVE & {t.word, t.key} for t in theirs):
        return False
    named = [t.number or t.capital or t.kind == "letter" for t in theirs if t.key not in said]
    one, other = ([t.key for t in side if t.key in said & listed] for side in (ours, theirs))
    return any(named) or one != other


_RESPECTIVE = frozenset(numbers.TABLES["respective"].split())


def exchanged(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether two names or words have each other's neighbours.

    `Open Tuesday, closed Monday` for `open Monday, closed Tuesday`, `B beat A` for `A beat B`.
    """
    one, other = _units(ours), _units(theirs)
    if _cross(*(dict(pairwise(reversed(units))) for units in (one, other))):
        return True
    passive = len({not _BY.isdisjoint({t.key for t in side}) for side in (ours, theirs)}) == 2
    turned, here = (
        {(a, b[:_VERB], c) for a, b, c in zip(units, units[1:], units[2:], strict=False)}
        for units in (other[::-1], one)
    )
    return not passive and bool(turned & here)


_VERB = 4  # letters that `beat` and `beaten` share


def swapped(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether two numbers stand behind each other's words, or the later one first."""
    one, other = (
        {t.key: before and before.key for before, t in pairwise((None, *side)) if t and t.number}
        for side in (ours, theirs)
    )
    turned = ((a, b) for a, b in one.items() if b in other and a != b)  # but `1-1` is the same
    return _cross(one, other) or any(other.get(b) == a for a, b in turned)


def _cross(one: Mapping[str, str | None], other: Mapping[str, str | None]) -> bool:
    """Tells whether two keys of both have each other's value."""
    differ = sorted(key for key in one.keys() & other.keys() if one[key] != other[key])
    return any(one[a] == other[b] and one[b] == other[a] for a, b in combinations(differ, 2))


def active(ours: Sequence[Token], theirs: Sequence[Token]) -> Sequence[Token]:
    """Returns `B was built in 1931 by A` as `A built B in 1931`, unless both sides are passive."""
    verbs = {verb.key for _, verb, _ in _passives(theirs)}
    for at, verb, by in _passives(ours):
        first, end = at, by + 2
        while first and ours[first - 1].word in _AUXILIARY | _MODALS:
            first -= 1
        modal = [t for t in ours[first:at] if t.word in _MODALS]
        while end < len(ours) and _goes_on(ours, end):
            end += 1
        if verb.key not in verbs and first:
            return (
                *ours[by + 1 : end],
                *modal,
                verb,
                *ours[:first],
                *ours[at + 1 : by],
                *ours[end:],
            )
    return ours


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    """Tells whether a token belongs to the name of who did it, with its articles and `of`."""
    token, apart = tokens[at], tokens[at].start - tokens[at - 1].end
    linked = token.kind == "stop" and at + 1 < len(tokens) and tokens[at + 1].capital
    return apart < 2 and (token.kind == "word" or linked)


def _passives(tokens: Sequence[Token]) -> Iterator[tuple[int, Token, int]]:
    """Yields the place of a verb behind an auxiliary, the verb, and the place of `by` behind it."""
    for by, token in enumerate(tokens):
        if token.word in _BY and by + 1 < len(tokens) and not tokens[by + 1].number:
            for at in range(by - 1, max(0, by - _PASSIVE), -1):
                if tokens[at].kind == "word" and tokens[at - 1].word in _AUXILIARY:
                    behind = tokens[at + 1]
                    if behind.kind != "word" or behind.capital:  # `is widely used by`
                        yield at, tokens[at], by
                    break


_PASSIVE = 10  # tokens between the verb and `by`
_AUXILIARY, _MODALS, _BY = (
    frozenset(numbers.TABLES[name].split()) for name in ("auxiliaries", "modals", "agents")
)


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
            if pivot == same and (behind - then) & there and (then - behind) & before:
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
_MORE = numbers.pattern("comparative-patterns")


def undated(
    ours: Sequence[Token], theirs: Sequence[Token]
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Returns both sides without their date or weekday, if each has one and it is the same.

    So it is with a phrase that only stands elsewhere, as in `In May Ann won` and `Ann won in May`.
    """
    ours, theirs = _unfronted(ours, theirs)
    theirs, ours = _unfronted(theirs, ours)
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


def _unfronted(
    one: Sequence[Token], other: Sequence[Token]
) -> tuple[Sequence[Token], Sequence[Token]]:
    """Returns both sides without the phrase that `one` begins with and `other` has later on."""
    if not one or one[0].kind == "letter":  # whose pairs do not come apart
        return one, other
    lengths = {j: _common(one, other[j:]) for j in range(1, len(other))}
    at = max(lengths, key=lambda j: lengths[j], default=0)
    n = lengths.get(at, 0)
    clause = n and not other[at].capital and apart(one, n) and apart(other, at)
    clause = clause and (at + n == len(other) or apart(other, at + n))
    if not 1 < n < len(one) or not (clause or one[0].word in _PREPOSITIONS):
        return one, other
    left, rest = one[n:], (*other[:at], *other[at + n :])
    there = next((j for j, t in enumerate(rest) if j and t.key == left[0].key), 0)
    if there and [t.key for t in left[1 : there + 1]] == [t.key for t in rest[:there]]:
        left = (*left[1 : there + 1], left[0], *left[there + 1 :])  # `In May won Ann`
    return left, rest


def _common(one: Sequence[Token], other: Sequence[Token]) -> int:
    """Returns how many tokens both begin with, up to the end of a clause."""
    n = 0
    while n < min(len(one), len(other)) and one[n].key == other[n].key:
        n += 1
        if apart(one, n) or apart(other, n):
            break
    return n


_PREPOSITIONS = frozenset(numbers.TABLES["prepositions"].split()) - _BY


def _dates(tokens: Sequence[Token], named: bool) -> list[tuple[int, int]]:
    """Returns the ranges that hold a year or a named day, with day and month, and what leads in."""
    found: list[tuple[int, int]] = []
    for i, token in enumerate(tokens):
        year = (
            token.number
            and token.number.unit in ("", "year")
            and numbers.is_year(token.number.value)
        )
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


def _month(tokens: Sequence[Token], at: int) -> bool:
    """Tells whether a word stands between a day and a year: `7. Juni 2019`, `9 de octubre de`."""
    day = any(
        t.number and t.number.value <= DAY and not t.number.unit
        for t in tokens[max(0, at - 3) : at]
    )
    return day and (tokens[at].kind == "word" or tokens[at].word in _OF)


_OF = ("de", "of", "di")
_DATE_LETTERS = frozenset("日に于於")
