"""Compares a claim's tokens with those of a few sentences, and says what keeps them apart.

The rules refuse one after the other; what none of them refuses is supported. A refusal is a denial
only where the claim is the source's own sentence but for the one difference that the rule found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from searchloop.agent.verdicts import clauses, degrees, numbers, order
from searchloop.agent.verdicts.cover import begins, enough, scattered
from searchloop.agent.verdicts.markers import marked_apart
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token, apart

FEWER = 6  # words of a short claim
SAME = 0.95  # share of the claim's content in the window, in whatever order: likewise
NEAR = 0.80  # share of the claim's tokens in the window's order: it is the source's own sentence
NEAR_LETTERS = 0.65  # the same in scripts without spaces, where one change breaks two pairs

FEW = "Too few of the claim's words stand together in the source."
NUMBER = "The source gives another number."
MISSING_NUMBER = "A number of the claim does not stand there."
NAME = "A name of the claim does not stand there."
OPPOSITE = "The source says the opposite."
DENIAL = "One of them denies what the other says."
CROSSED = "Two words of the source have changed places."
TURNED = "Names or numbers stand the other way round."
ELSEWHERE = "What the claim joins stands in two clauses of the source, each with its own words."
REPLACED = "One word of the source's sentence is replaced by another."
DEGREE = "The source says it of more or fewer, or less surely."
CONDITION = "The source says it on a condition."
# What a claim is refused for although its words stand in the source.
FAULTS = frozenset((NUMBER, OPPOSITE, DENIAL, CROSSED, TURNED, REPLACED, ELSEWHERE, DEGREE))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one window bears on a claim.

    `cover` is the share of the claim's content in the window, 0 to 1; `fault` is one sentence, or
    empty where nothing keeps them apart; `near` tells that the claim is nearly a sentence of the
    source, `denied` that it is one but for the fault, `whole` that all its content stands in order.
    """

    cover: float
    fault: str = ""
    near: bool = False
    denied: bool = False
    whole: bool = False


class Gap(NamedTuple):
    """A place where the claim goes on with other tokens than the window."""

    ours: Sequence[Token]
    theirs: Sequence[Token]

    def content(self) -> tuple[list[Token], list[Token]]:
        """Returns both sides without function words."""
        ours, theirs = ([t for t in side if t.kind != "stop"] for side in self)
        return ours, theirs

    @property
    def turns(self) -> bool:
        """Tells whether one side denies and the other does not, within a few words."""
        ours, theirs = self.content()
        odd = sum(t.kind == "not" for t in (*ours, *theirs)) % 2 == 1
        return odd and len(ours) <= 5 and len(theirs) <= 5


def compare(
    claim: Sequence[Token],
    window: Sequence[Token],
    weights: Mapping[str, float],
    page: Page,
    text: str,
) -> Comparison:
    """Compares a claim, as tokens and as text, with a window of one to three sentences.

    `weights` gives what each key of the claim's content counts. A window need not repeat what the
    page is about.
    """
    source = page.sentences_at(window[0].start, window[-1].end)
    claim = order.active(claim, window)
    if page.sentence_of(window[0].start) == page.sentence_of(window[-1].start):
        window = order.active(window, claim)
    lost = _lost([t for t in claim if t.key in weights], window)
    claim = [_rounded(t, window) for t in claim]
    absent = {t.key for t in lost}
    cover = 1 - sum(weights[key] for key in absent) / sum(weights.values())
    apart, paired = _gaps(claim, window, _aligned(claim, window))
    near, letters = paired >= _near(claim) * len(claim), _near(claim) == NEAR_LETTERS
    few = cover < enough(len(weights), letters, len(page.spans))
    if few and not near:
        return Comparison(cover, FEW)
    ours, theirs = ([t for t in side if t.kind != "stop"] for side in (claim, window))
    pairs = _aligned(ours, theirs)
    content, matched = _gaps(ours, theirs, pairs)
    same = sum((Counter(t.key for t in ours) & Counter(t.key for t in theirs)).values())
    shuffled = same >= (NEAR_LETTERS if letters else SAME) * len(ours)
    close = matched >= NEAR_LETTERS * sum(t.kind != "not" for t in ours)
    fault = (
        (MISSING_NUMBER if any(t.number for t in lost) else "")
        or (OPPOSITE if degrees.opposite(claim, window, apart) else "")
        or _denial(claim, window, (*content, *apart) if close else ())
        or (DENIAL if clauses.borrowed(ours, theirs, pairs, page) else "")
        or _crossed(content)
        or _degree(claim, window, (*apart, *content), page.lang)
        or (DEGREE if marked_apart(text, source) else "")
        or _replaced(apart, near, len(weights) <= FEWER * (1 + 2 * letters), absent & page.about)
        or (NAME if any(t.named and t.key not in page.about for t in lost) else "")
        or _order(claim, window, near or shuffled, page.lang)
        or _split(ours, theirs, pairs, page)
        or (REPLACED if _renamed(claim, window, page) else "")
        or (FEW if few or (not letters and scattered(ours, theirs)) else "")
    )
    near = near or shuffled or matched >= _near(ours) * len(ours)
    denied = near and bool(fault) and _only(apart, fault)
    fault = NUMBER if near and fault == MISSING_NUMBER else fault
    return Comparison(cover, fault, near, denied, _whole(content))


def _split(ours: Sequence[Token], theirs: Sequence[Token], pairs: clauses.Pairs, page: Page) -> str:
    """Finds what the claim joins and the source has in two clauses."""
    rules = (clauses.elsewhere, clauses.intruding)
    return ELSEWHERE if any(rule(ours, theirs, pairs, page) for rule in rules) else ""


def _renamed(claim: Sequence[Token], window: Sequence[Token], page: Page) -> bool:
    """Tells of a name in place of another in the sentence that holds most of the claim."""
    said = {t.key for t in claim}
    parts = [list(part) for _, part in groupby(window, lambda t: page.sentence_of(t.start))]
    most = max(parts, key=lambda part: len({t.key for t in part} & said))
    return clauses.renamed(claim, most, _aligned(claim, most), len(parts) == 1)


def _lost(claim: Sequence[Token], window: Sequence[Token]) -> list[Token]:
    """Returns the claim's tokens that do not stand in the window, in whatever form."""
    have = {t.key for t in window}
    begun = {begins(t.key) for t in window if t.kind == "word"}
    values = [t.number for t in window if t.number]
    shares = any(t.number and t.number.unit == "%" for t in claim)
    return [
        t
        for t in claim
        if not (_stands(t.number, values, shares) if t.number else t.key in have)
        and (t.kind != "word" or begins(t.key) not in begun)
    ]


def _stands(number: numbers.Number, values: list[numbers.Number], shares: bool) -> bool:
    """Tells whether a number is there; a bare one counts where the value has no other unit.

    `8` is no `8 %`, unless the claim has shares elsewhere, as in `8 to 9 %`.
    """
    units = {v.unit for v in values if number._replace(unit="").same(v)}
    if not number.unit and not shares and units == {"%"}:
        return False
    return bool(units) and (not number.unit or number.unit in units or units == {""})


def _rounded(token: Token, window: Sequence[Token]) -> Token:
    """Returns a number behind "about" as the source gives it."""
    number = token.number
    if number and number.slack:
        exact = [t.key for t in window if t.number and number.same(t.number)]
        return token._replace(key=exact[0]) if exact else token
    return token


def _degree(
    claim: Sequence[Token], window: Sequence[Token], apart: Sequence[Gap], lang: str
) -> str:
    """Finds `all` for `some`, `is` for `may be`, `below` for `at`, a condition left out."""
    amounts = any(degrees.other_quantity(*gap) or degrees.modified(*gap) for gap in apart)
    pairs = _aligned(claim, window)
    if amounts or degrees.bounded(claim, window) or degrees.surer(claim, window, pairs, lang):
        return DEGREE
    rules = (degrees.partial, degrees.misdated, degrees.overstated)
    parts = any(rule(claim, window) for rule in rules)
    if parts or degrees.turned(claim, window, lang):
        return DEGREE
    return CONDITION if degrees.conditional(claim, window, pairs, lang) else ""


def _whole(content: Sequence[Gap]) -> bool:
    """Tells whether all of the claim stands in order, and hardly anything is left out."""
    left_out = [t for gap in content for t in gap.theirs]
    if any(gap.ours for gap in content) or len(left_out) > 2:
        return False
    return not any(t.number or t.kind == "not" for t in left_out)


@lru_cache(maxsize=8)  # the rules ask for the same two again
def align(ours: tuple[str, ...], theirs: tuple[str, ...]) -> list[tuple[int, int]]:
    """Returns the index pairs of a longest common subsequence.

    Hyyrö's algorithm: one addition of long integers for each key of `theirs`.
    """
    masks: dict[str, int] = {}
    for i, key in enumerate(ours):
        masks[key] = masks.get(key, 0) | 1 << i
    full = (1 << len(ours)) - 1
    row, rows = full, []
    for key in theirs:
        same = row & masks.get(key, 0)
        row = ((row + same) | (row - same)) & full
        rows.append(row)
    pairs = []
    i, j = len(ours) - 1, len(theirs) - 1
    while i >= 0 and j >= 0:
        if rows[j] >> i & 1:
            i -= 1
        elif j and not rows[j - 1] >> i & 1:
            j -= 1
        else:
            pairs.append((i, j))
            i, j = i - 1, j - 1
    return pairs[::-1]


def _aligned(ours: Sequence[Token], theirs: Sequence[Token]) -> clauses.Pairs:
    return align(tuple(t.key for t in ours), tuple(t.key for t in theirs))


def _gaps(
    ours: Sequence[Token], theirs: Sequence[Token], pairs: clauses.Pairs
) -> tuple[list[Gap], int]:
    """Returns the places that differ, and how many tokens stand in order.

    What the window has before and behind the claim does not count, but for the tokens that stand
    where the claim has others.
    """
    if not pairs:
        return [Gap(ours, theirs)], 0
    (lead, first), (end, last) = pairs[0], pairs[-1]
    tail = len(ours) - 1 - end
    head = range(max(0, first - lead - 1) if lead else first, first)
    found = [Gap(ours[:lead], [theirs[n] for n in head if not _closed(theirs, n, first)])]
    for (i, j), (k, m) in pairwise(pairs):
        left_out = [theirs[n] for n in range(j + 1, m) if k > i + 1 or not _closed(theirs, n, m)]
        found.append(Gap(ours[i + 1 : k], left_out))
    tail += 3 * (tail > 0 and ours[-1].kind == "letter")  # `ならない` for `よい`
    found.append(Gap(ours[end + 1 :], theirs[last + 1 : last + 2 + tail] if tail else ()))
    return [gap for gap in found if gap.ours or gap.theirs], len(pairs)


def _closed(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Tells whether a negation and what it denies stand before a comma: `A, not B, did it`."""
    negation, before = tokens[at], tokens[at - 1]
    if negation.kind != "not" or at + 1 >= len(tokens):
        return False
    first = next((n for n in range(at + 1, end) if tokens[n].kind not in ("stop", "not")), end)
    if before.kind == "letter" and before.start + 2 > negation.end:
        first = at  # of its own run
    elif tokens[at + 1].start - negation.end == 2:
        return False  # `was not, they say, done`
    return any(apart(tokens, n) for n in range(first + 1, end + 1))


def turned_by_gap(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells whether one side denies where the other goes on: `did … expect` for `did not expect`.

    A long gap may hold a denial of its own, unless that is the first or last word left out.
    """
    for gap in _gaps(ours, theirs, _aligned(ours, theirs))[0]:
        edge = gap.theirs if len(gap.theirs) <= 4 else (gap.theirs[0], gap.theirs[-1])
        if any(t.kind == "not" for t in (*gap.ours, *edge)):
            return True
    return False


def _near(tokens: Sequence[Token]) -> float:
    return NEAR_LETTERS if sum(t.kind == "letter" for t in tokens) * 2 > len(tokens) else NEAR


def _only(apart: Sequence[Gap], fault: str) -> bool:
    """Tells whether the fault is the one difference between the claim and the source."""
    if fault == CROSSED:
        return len(apart) == 2 and all(len(g.ours) <= 3 and len(g.theirs) <= 3 for g in apart)
    if len(apart) != 1:
        return False
    ours, theirs = apart[0].content()
    if fault == MISSING_NUMBER:
        return sum(t.number is not None for t in ours) == 1 == sum(bool(t.number) for t in theirs)
    if fault == DENIAL:
        return apart[0].turns
    return fault == OPPOSITE and len(ours) == 1 == len(theirs)


def _denial(ours: Sequence[Token], theirs: Sequence[Token], apart: Sequence[Gap]) -> str:
    """Finds a word that stands denied on one side and plain on the other."""
    denied, there = _denied(ours), _denied(theirs)
    plainly, plainly_there = {t.key for t in ours} - denied, {t.key for t in theirs} - there
    letters = Counter(t.key for t in theirs if t.kind == "letter")
    there -= {key for key, n in letters.items() if n > 1}  # once plainly
    if denied & plainly_there or there & plainly or any(gap.turns for gap in apart):
        return DENIAL
    return ""


def _denied(tokens: Sequence[Token]) -> set[str]:
    """Returns the keys of the words behind a negation; of the one before it at the end.

    In scripts without spaces a negation may follow, so that both sides count.
    """
    ends = [t for t, after in pairwise(tokens) if after.start > t.end + 1]
    tokens = [t for t in tokens if t.kind != "stop" and t.word not in _STILL]
    found: set[str] = set()
    for i, token in enumerate(tokens):
        if token.kind != "not":
            continue
        behind = [t for t in tokens[i + 1 : i + 9] if t.start >= token.end][:3]
        behind = [t for t in behind if t.kind != "not"]
        if token.word and behind and behind[0].kind != "letter" and _closed(tokens, i, i + 1):
            behind = []  # `未婚，2003年`
        before = [t for t in tokens[max(0, i - 4) : i] if t.kind != "not" and _clear(t, token)]
        follows = not token.word or "ぁ" <= token.word[-1] <= "ゟ"  # a Japanese denial
        found.update(t.key for t in behind[:1])
        last = token.word in _LAST and token in ends
        if not behind or last or (before and before[-1].kind == "letter" and follows):
            found.update(t.key for t in before[-2:])
    return found


_STILL = frozenset(numbers.TABLES["still"].split())
_LAST = frozenset(("nicht", "nie", "niemals", "niet", "nooit"))  # end a clause


def _clear(token: Token, negation: Token) -> bool:
    """Tells whether a token, two letters wide in scripts without spaces, ends before a negation."""
    return token.end + (token.kind == "letter") <= negation.start


def _crossed(apart: Sequence[Gap]) -> str:
    """Finds two places whose tokens have changed places with each other."""
    swaps = [({t.key for t in g.ours}, {t.key for t in g.theirs}) for g in apart]
    swaps = [(ours - {"not"}, theirs - {"not"}) for ours, theirs in swaps]
    for place, (ours, theirs) in enumerate(swaps):
        if any(theirs & left and ours & right for left, right in swaps[place + 1 :]):
            return CROSSED
    return ""


def _order(claim: Sequence[Token], window: Sequence[Token], alike: bool, lang: str) -> str:
    """Finds what stands in another order; a date or `In Oslo` at the front may stand behind."""
    if order.swapped(claim, window) or order.reversed_(claim, window, lang):
        return TURNED
    if order.respective(claim, window):
        return TURNED
    claim, window = order.undated(claim, window)
    if order.exchanged(claim, window):
        return TURNED
    apart, _ = _gaps(claim, window, _aligned(claim, window))
    return _moved(window, apart) if alike else ""


def _moved(window: Sequence[Token], apart: Sequence[Gap]) -> str:
    """Finds names, numbers or letters that stand elsewhere in a sentence that is otherwise equal.

    A phrase of the source may move as a whole.
    """
    have, place = {t.key for t in window}, " ".join(t.key for t in window)
    loose = {t.key for gap in apart for t in gap.theirs}
    for gap in apart:
        there = {t.key for t in gap.theirs}
        moved = [t for t in gap.ours if t.key in (have if t.kind == "letter" else loose) - there]
        content, _ = gap.content()
        if len(content) > 1 and not there:
            if (
                content[0].kind != "letter"
                and not _caseless(content[0])
                and " ".join(t.key for t in gap.ours) in place
            ):
                continue
            if all(t.key in have for t in content):
                moved = content
        if any(t.capital or t.number or clauses.written(t) or _caseless(t) for t in moved):
            return TURNED
    return ""


def _caseless(token: Token) -> bool:
    """Tells whether a word is of a script that writes names like other words."""
    return token.kind == "word" and not token.word[0].islower()


def _replaced(apart: Sequence[Gap], near: bool, short: bool, known: Set[str]) -> str:
    """Finds a word, name or number in place of another: in the source's sentence, or a part of it.

    In a part it is one word; what the page is about may stand there for a pronoun.
    """
    own = [sides for gap in apart if any(map(_tells, (sides := gap.content())[0]))]
    own = [sides for sides in own if not sides[1] or not _bridges(*sides)]
    for ours, theirs in own:
        if not theirs or numbers.ABOUT.issuperset(t.word for t in (*ours, *theirs)):
            continue
        if any(_alike(a, b) for a in ours for b in theirs):
            continue
        marked = [any(t.capital or t.number for t in side) for side in (ours, theirs)]
        if near and (len(apart) == 1 or all(marked)):
            return REPLACED
        if ours[0].kind == "letter":
            one = len(theirs) <= 5 and any(map(clauses.written, theirs))
        else:
            one = len(ours) == 1 and len(theirs) <= 3 and not ours[0].number
        if short and len(own) == 1 and one and ours[0].key not in known:
            return REPLACED
    return ""


def _tells(token: Token) -> bool:
    """Tells whether a token is more than an ending in hiragana."""
    return token.kind != "letter" or not all("ぁ" <= c <= "ゟ" for c in token.key)


def _bridges(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Tells of one pair of letters where the source has more: the claim leaves something out."""
    edges = ours[0].key[0] == theirs[0].key[0] or ours[-1].key[-1] == theirs[-1].key[-1]
    edges = edges or all(t.number or len(t.key) == 1 for t in theirs)  # a date
    return ours[0].kind == "letter" and edges and len(ours) == 1 < len(theirs)


def _alike(one: Token, other: Token) -> bool:
    """Tells whether two words or pairs of letters are forms of one; scales are not."""
    if one.kind == other.kind == "letter":
        if len(one.key) == 1:
            return one.key in other.key
        return one.key[0] == other.key[0] and all("ぁ" <= t.key[-1] <= "ゟ" for t in (one, other))
    if one.key[0] in "#~" or any(numbers.scale(t.word, "") for t in (one, other)):
        return False
    same = 2 if one.key[0] >= "\uac00" else 4  # syllables, letters
    longest = max(len(one.key), len(other.key))
    if min(len(one.key), len(other.key)) >= _COMPOUND:  # `Sonntagabend`, `Sonntagmorgen`
        same = int(_OF_COMPOUND * longest)
    return len(one.key) >= same and one.key[:same] == other.key[:same]


_COMPOUND, _OF_COMPOUND = 10, 0.65  # letters of a compound, and the share that its forms have
