"""Tells whether what stands side by side in a claim belongs together in the source."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    marks = numbers.pattern("break-patterns").pattern
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
    if rival(ours, theirs, page):
        return True
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
    return False


def _filler(token: Token) -> str:
    """Returns a number's unit or "name" for what each clause has of its own, or ""."""
    if not token.number:
        return "name" if token.capital else ""
    unit, value = token.number.unit, token.number.value
    return f"#{unit}{unit in ('', 'year') and _year(value)}"


def rival(ours: Sequence[Token], theirs: Sequence[Token], page: Page) -> bool:
    """Tells of a name or number whose own clause is about something else than the claim.

    `8 % were dizzy and 3 % coughed` does not say that 8 % coughed; `invented by A and built by B`
    does not say that B invented it.
    """
    said, begun = {t.key for t in ours}, {t.key[:5] for t in ours if len(t.key) > 4}
    places = [
        *zip((page.sentence_of(t.start) for t in theirs), _clauses(theirs, page), strict=True)
    ]
    where: dict[str, set[tuple[int, int]]] = {}
    unused: dict[tuple[int, int], list[Token]] = {}
    for token, place in zip(theirs, places, strict=True):
        where.setdefault(token.key, set()).add(place)
        if token.key not in said and token.key[:5] not in begun:
            unused.setdefault(place, []).append(token)
    single = [(t, min(where[t.key])) for t in ours if len(where.get(t.key, ())) == 1]
    for token, home in single:
        filler, left = _filler(token), [t for t in unused.get(home, ()) if not t.number]
        if not filler or not (any(map(tells, left)) or len(left) > 1):
            continue
        own = {_filler(t) for t, place in single if place == home}
        if filler == "name" and (len({place for _, place in single}) > 2 or own != {"name"}):
            continue
        for word, place in single:
            rivals = {_filler(t) for t in unused.get(place, ())}
            if place[0] == home[0] and place != home and tells(word) and filler in rivals:
                return True
    return False


def renamed(
    ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs, lone: bool = True
) -> bool:
    """Tells of a name or number where a sentence of the source has another, unknown to the claim.

    It may be of the sentence before: `Ann opposed it. Bob said no.` for `Ann said no.` Where the
    sentence is not `lone`, one word in place of another tells, too.
    """
    said, pairs = {t.key for t in ours}, [pair for pair in pairs if ours[pair[0]].kind != "stop"]
    paired = {i for i, _ in pairs}
    loose = [n for n, t in enumerate(ours) if t.kind != "stop" and n not in paired]
    few = pairs and len(loose) <= 2 * _MOST_LETTERS
    for (i, p), (k, q) in pairwise([(-1, -1), *pairs, (len(ours), len(theirs))]) if few else ():
        mine, odd = ([ours[n] for n in loose if (i < n < k) is inside] for inside in (True, False))
        beside = (*ours[max(0, i) : i + 1], *ours[k : k + 1])
        if not mine or any(_one_name(t, mine) for t in beside):
            continue
        letters = mine[0].kind == "letter"
        if len(odd) - len(_names(odd)) > letters:
            continue
        there = theirs[p + 1 : q] if k < len(ours) else _to_break(theirs, p + 1)
        there = [t for t in there if t.kind != "stop" and t.key not in said]
        plain = [t for t in mine if not letters and not t.capital]
        name = _names(mine) and mine[-1] not in plain and len(plain) <= 2
        if name and len(mine) <= (_MOST_LETTERS if letters else _MOST_WORDS):
            return bool(_names(there))
        if len(mine) == 1 and mine[0].number:
            return any(_filler(t) == _filler(mine[0]) for t in there)
        if len(mine) == 1 and not (lone or letters) and 0 < len(there) <= 2:
            return not any(t.key[:4] == mine[0].key[:4] for t in there)
    return False


_MOST_LETTERS, _MOST_WORDS = 16, 5  # of a name and a title


def _to_break(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """Returns the tokens from `at` to the next comma or the like."""
    end = next((n for n in range(at, len(tokens)) if _apart(tokens, n)), len(tokens))
    return tokens[at:end]


def _one_name(token: Token, mine: Sequence[Token]) -> bool:
    """Tells whether a token goes on with a name at the beginning or the end of `mine`."""
    before = token.named and mine[0].capital and 0 <= mine[0].start - token.end <= 1
    return before or (token.named and mine[-1].capital and 0 <= token.start - mine[-1].end <= 1)


def _names(tokens: Sequence[Token]) -> list[Token]:
    """Returns names: capitals that no sentence's beginning explains, or several, or katakana."""
    after = [b for a, b in pairwise(tokens) if a.capital and b.capital and b.start - a.end <= 1]
    kana = [t for t in tokens if t.kind == "letter" and all("ァ" <= c <= "ー" for c in t.key)]
    return [*(t for t in tokens if t.named), *after, *kana]


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
    clause = n and not other[at].capital and _apart(one, n) and _apart(other, at)
    clause = clause and (at + n == len(other) or _apart(other, at + n))
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
        if _apart(one, n) or _apart(other, n):
            break
    return n


def _apart(tokens: Sequence[Token], at: int) -> bool:
    """Tells whether punctuation stands before a token; the one of `7. Juni` is none."""
    day = 0 < at < len(tokens) and (n := tokens[at - 1].number) and n.value <= _DAY
    return 0 < at < len(tokens) and tokens[at].start - tokens[at - 1].end > 1 + bool(day)


_DAY = 31
_PREPOSITIONS = frozenset(numbers.TABLES["prepositions"].split()) - _BY


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
        t.number and t.number.value <= _DAY and not t.number.unit
        for t in tokens[max(0, at - 3) : at]
    )
    return day and (tokens[at].kind == "word" or tokens[at].word in _OF)


_OF = ("de", "of", "di")
_DATE_LETTERS = frozenset("日に于於")
