"""Tells whether what stands side by side in a claim belongs together in the source."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token, apart
from searchloop.analysis.words import table

Pairs = Sequence[tuple[int, int]]  # places in the claim and the window that hold the same
_ALIGNED = 0.8  # share of the claim in the window's order, or all but one word of it
_LETTERS = 0.65  # that share in scripts without spaces


def written(token: Token) -> bool:
    """Tells whether two letters are of a name or a noun rather than Japanese endings."""
    return token.kind == "letter" and not any(map(_kana, token.key))


def tells(token: Token) -> bool:
    """Tells whether a token is of a word with a meaning, not of grammar."""
    return token.kind == "word" or written(token)


def _kana(letter: str) -> bool:
    return "\u3041" <= letter <= "\u309f"


def _told(token: Token) -> bool:
    """Tells whether a token is more than grammar, be it the beginning of a Japanese verb."""
    return token.kind in ("word", "number") or (token.kind == "letter" and not _kana(token.key[0]))


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
        if all(t.kind == "letter" and _kana(t.key[-1]) for t in ours[k:]):
            break  # only the ending of the last word is left
        here = [m for m in range(p + 1, q) if clauses[m] == clauses[q]]
        crossed, rest = clauses[p] != clauses[q], [m for m in here if odd[m]]
        again = ours[i].kind != "letter" or written(ours[i])
        again = again and any(theirs[m].key == ours[i].key and any(odd[here[0] : m]) for m in here)
        if rest and again:
            return True
        left = [m for m in range(p + 1, q) if odd[m] and clauses[m] == clauses[p]]
        letters = theirs[p].kind == "letter"
        own = [_told(theirs[m]) and (letters or not theirs[m].number) for m in rest]
        there = {t.key for t, clause in zip(theirs, clauses, strict=True) if clause == clauses[q]}
        if not letters and not there.issuperset(t.key for t in ours[:i]):
            own += [theirs[m].key == theirs[p].key for m in here]  # `made A; later it made B`
        if crossed and any(own) and any(_told(theirs[m]) for m in left):
            return True  # `open on Monday and closed on Tuesday`
    return False


def intruding(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs, page: Page) -> bool:
    """Tells of a word that stands between words of one clause, but only in a later clause there.

    `X got six years and his brother two` does not say that his brother got six. So it is with a
    number and what it counts.
    """
    clauses = _clauses(theirs, page)
    first = {t.key: clause for t, clause in reversed([*zip(theirs, clauses, strict=True)])}
    held = dict(pairs)
    lone = page.sentence_of(theirs[0].start) == page.sentence_of(theirs[-1].start)
    for i, token in enumerate(ours if lone and len(pairs) >= _ALIGNED * len(ours) else ()):
        before, behind = held.get(i - 1), held.get(i + 1)
        if i not in held and before is not None and behind is not None and tells(token):
            here = clauses[before]
            if here == clauses[behind] and first.get(token.key, here) > here:
                return True
    counted, counts = _counted(ours), _counted(theirs)
    return any(
        number in counts and counts[number] != word and word in counts.values()
        for number, word in counted.items()
    )


def _counted(tokens: Sequence[Token]) -> dict[str, str]:
    """Returns {number: the word just behind it}."""
    return {
        a.key: b.key
        for a, b in pairwise(tokens)
        if a.number and tells(b) and b.key[0] != "~" and b.start - a.end <= 1
    }


def _filler(token: Token) -> str:
    """Returns a number's unit or "name" for what each clause has of its own, or ""."""
    if not token.number:
        return "name" if token.capital else ""
    unit, value = token.number.unit, token.number.value
    return f"#{unit}{unit in ('', 'year') and numbers.is_year(value)}"


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
    end = next((n for n in range(at, len(tokens)) if apart(tokens, n)), len(tokens))
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
