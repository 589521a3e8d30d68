"""Tells whether what stands side by side in a claim belongs together in the source."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token
from searchloop.analysis.words import table

Pairs = Sequence[tuple[int, int]]  # places in the claim and the window that hold the same
_ALIGNED = 0.8  # share of the claim in the window's order, or all but one word of it


def written(token: Token) -> bool:
    """Tells whether two letters are of a name or a noun rather than Japanese endings."""
    return token.kind == "letter" and not any("\u3041" <= c <= "\u309f" for c in token.key)


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


_SUBJECT = re.compile("[^ ][がは]|[由被]")


@lru_cache
def _breaks(lang: str) -> re.Pattern[str]:
    """Returns what stands between two clauses: punctuation, a line's end, `and`."""
    words = "|".join(table(numbers.TABLES["conjunctions"]).get(lang, ()))
    marks = r"[;；。，、：()（）|\n—–!?！？]|(?:[,:]|(?<!\d)\.)(?=\s)(?!\s(?:1\d|20)\d\d\b)"
    return re.compile(rf"{marks}|\s(?:{words})(?=\s)" if words else marks, re.IGNORECASE)


def elsewhere(ours: Sequence[Token], theirs: Sequence[Token], pairs: Pairs, page: Page) -> bool:
    """Tells of words that are neighbours in the claim, but belong to two clauses of the source.

    `X costs $9; Y costs $12` does not say that X costs $12. The later clause has a subject of its
    own before the second word, or each of the clauses its own number.
    """
    start = theirs[0].start
    text = page.clean[start : theirs[-1].end]
    breaks = [start + m.start() for m in _breaks(page.lang).finditer(text)]
    clauses = [bisect(breaks, t.start) for t in theirs]
    said = {t.key for t in ours}
    odd = [t.kind != "not" and t.key not in said for t in theirs]
    if not pairs:
        return False
    (lead, first), (end, last) = pairs[0], pairs[-1]
    for at, beside, loose in ((first, first - 1, ours[:lead]), (last, last + 1, ours[end + 1 :])):
        lent = {t.key for t, n in zip(theirs, clauses, strict=True) if n != clauses[at]}
        if (
            1 == len(loose) == len(ours) - len(pairs)
            and (loose[0].capital or loose[0].number)
            and loose[0].key in lent
            and 0 <= beside < len(theirs)
            and odd[beside]
            and clauses[beside] == clauses[at]
        ):
            return True
    for (i, p), (k, q) in (
        pairwise(pairs) if len(pairs) >= min(_ALIGNED * len(ours), len(ours) - 1) else ()
    ):
        if k != i + 1 or q == p + 1:
            continue
        here = [m for m in range(p + 1, q) if clauses[m] == clauses[q]]
        own = [theirs[m].key for m in here if odd[m]]
        again = ours[i].kind != "letter" or written(ours[i])
        again = again and any(theirs[m].key == ours[i].key and any(odd[here[0] : m]) for m in here)
        if own and (again or (clauses[p] != clauses[q] and _SUBJECT.search(" ".join(own)))):
            return True
        counted = ours[i].number or (i and ours[i - 1].number)
        if counted and any(theirs[m].number and odd[m] for m in here):
            return True
        if ours[k].number and clauses[p] != clauses[q]:
            rival = any(
                n == clauses[p] and odd[m] and theirs[m].number for m, n in enumerate(clauses)
            )
            mixed = any(
                n == clauses[q] and odd[m] and not theirs[m].number for m, n in enumerate(clauses)
            )
            if rival and (mixed or k + 1 >= len(ours)):
                return True
    return False
