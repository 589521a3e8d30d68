"""What takes the tick from a claim although its words stand in the source.

`VETOES` is asked in order; the first that applies gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, groupby, pairwise
from math import isclose

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.compare import Comparison, Gap, align, aligned
from searchloop.agent.verdicts.page import Cell
from searchloop.agent.verdicts.text import OPPOSITES, Token
from searchloop.analysis.words import table

NUMBER = "The source gives another number."
MISSING_NUMBER = "A number of the claim does not stand there."
OPPOSITE = "The source says the opposite."
DENIAL = "One of them denies what the other says."
TURNED = "Names or numbers stand the other way round."
REPLACED = "One word of the source's sentence is replaced by another."
DEGREE = "One of them says “all”, “some” or “may”, and the other does not."
# What a claim is refused for although its words stand in the source.
FAULTS = frozenset((NUMBER, OPPOSITE, DENIAL, TURNED, REPLACED, DEGREE))


def quantity(found: Comparison) -> str:
    """A number of the claim that its sentence of the source, or the whole page, does not hold."""
    lost = [t for t in found.lost if t.number]
    if found.near and (lost or any(map(_another, found.gaps))):
        return NUMBER
    # With a unit, it is told of this sentence alone; without, the page may have it anywhere.
    gone = any((t.number and t.number.unit) or not found.page.has(t.key) for t in lost)
    return MISSING_NUMBER if gone else ""


def _another(gap: Gap) -> bool:
    """Tells of numbers where the window has others."""
    ours, theirs = ({t.key for t in side if t.number} for side in gap)
    return bool(ours and theirs) and not ours & theirs


# ---- opposites ------------------------------------------------------------------------------


def opposite(found: Comparison) -> str:
    """A word whose opposite stands in the window in its stead."""
    own, have = _reversible(found.claim), _reversible(found.window)
    places = [(own - have, have - own)]
    places += [(_reversible(one), _reversible(other)) for one, other in found.gaps if one]
    return OPPOSITE if any(_reversed(ours, theirs) for ours, theirs in places) else ""


def _said(token: Token) -> str:
    """Returns a token's word, or its two letters in scripts without spaces."""
    return token.key if token.kind == "letter" else token.word


def _reversible(tokens: Sequence[Token]) -> set[str]:
    """Returns the words, the units, and the pairs of letters."""
    return {*filter(None, map(_said, tokens))} | {t.key for t in tokens if t.key[0] == "~"}


def _reversed(ours: set[str], theirs: set[str]) -> bool:
    """Tells whether a word stands beside its opposite: of the table."""
    for one in ours:
        for reverse in _reverses(one):
            if any(len(w) <= len(reverse) + 3 and w.startswith(reverse) for w in theirs):
                return True
    return False


@lru_cache(maxsize=8192)
def _reverses(word: str) -> tuple[str, ...]:
    """Returns the beginnings of the words that say the reverse of a word."""
    lengths = range(len(word), max(1, len(word) - 4), -1)
    return tuple(each for n in lengths for each in OPPOSITES.get(word[:n], ()))


# ---- degrees --------------------------------------------------------------------------------

_DEGREES = {
    word: kind for kind, words in table(numbers.TABLES["degrees"]).items() for word in words
}
_LED = 3  # tokens between such a word and what it bears on
# A claim may leave out what makes its source say more, and add what makes it say less itself.
_MAY = ("may", "will")  # the month and the man, with a capital
_MORE, _LESS = {"all", "most", "only", "must"}, {"doubt", "some", "few", "if"}


def degree(found: Comparison) -> str:
    """A word such as `all` or `second` that the claim alone has, or `may` that it leaves out."""
    if not found.near:
        return ""
    pairs = aligned(found.claim, found.window)
    behind = _LED if found.page.lang == "ja" else -1  # `下げるかもしれない`
    one, other = ([None if t.capital and t.word in _MAY else _DEGREES.get(_said(t)) for t in side]
                  for side in (found.claim, found.window))  # fmt: skip
    sides = ((one, other, {i for i, _ in pairs}, _LESS), (other, one, {j for _, j in pairs}, _MORE))
    for kinds, beside, held, free in sides:
        for at, kind in enumerate(kinds):
            told = kind and kind not in free and kind not in beside
            if told and not held.isdisjoint(range(at - behind, at + 1 + _LED)):
                return DEGREE
    return ""


# ---- denials --------------------------------------------------------------------------------

_STILL = frozenset(numbers.TABLES["still"].split())
_LAST = frozenset(("nicht", "nie", "niemals", "niet", "nooit"))  # end a clause


def denial(found: Comparison) -> str:
    """A word that stands denied on one side and plain on the other."""
    ours, theirs = found.claim, found.window
    denied, there = _denied(ours), _denied(theirs)
    plainly, plainly_there = {t.key for t in ours} - denied, {t.key for t in theirs} - there
    turns = any(gap.turns for gap in (*found.content_gaps, *found.gaps))
    # At the end, as in `誰もいない`, it denies the whole sentence.
    turns |= found.letters and (ours[-1].kind == "not") != (theirs[-1].kind == "not")
    return DENIAL if denied & plainly_there or there & plainly or turns else ""


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
        before = [t for t in tokens[max(0, i - 4) : i] if t.kind != "not"]
        before = [t for t in before if t.end + (t.kind == "letter") <= token.start]
        follows = not token.word or "ぁ" <= token.word[-1] <= "ゟ"  # a Japanese denial
        found.update(t.key for t in behind[:1])
        last = token.word in _LAST and token in ends
        if not behind or last or (before and before[-1].kind == "letter" and follows):
            found.update(t.key for t in before[-2:])
    return found


# ---- names and numbers exchanged --------------------------------------------------------------

_BY = frozenset(numbers.TABLES["agents"].split())
_MOST = 12  # names and numbers that are tried against each other
_GAIN = 2  # words that stand in order once two are exchanged back


def exchanged(found: Comparison) -> str:
    """Two names or numbers: exchanged back, the claim follows the source better."""
    if _cells(found):
        return ""  # cells have no order
    swaps = [({t.key for t in g.ours}, {t.key for t in g.theirs}) for g in found.gaps]
    swaps = [(ours - {"not"}, theirs - {"not"}) for ours, theirs in swaps]
    for (ours, theirs), (left, right) in combinations(swaps, 2):
        if theirs & left and ours & right:
            return TURNED
        if found.letters and found.near and ours & left and theirs & right:
            return REPLACED  # throughout
    claim, window = ([t.key for t in side] for side in (found.claim, found.window))
    passive = len({not _BY.isdisjoint(side) for side in (claim, window)}) == 2
    if found.near and not passive and found.page.lang != "de" and _loose(found):
        return TURNED
    places = {key: at for at, key in reversed(list(enumerate(window)))}
    units = [unit for unit in _units(found.claim) if claim[unit[0]] in places][:_MOST]
    in_order = len(align(tuple(claim), tuple(window)))
    for (a, b), (c, d) in combinations(units, 2):
        numbered = found.claim[a].number and found.claim[c].number
        if places[claim[a]] > places[claim[c]] and (numbered or (found.near and not passive)):
            back = (*claim[:a], *claim[c:d], *claim[b:c], *claim[a:b], *claim[d:])
            gain = 1 if numbered and c - b <= 1 else _GAIN
            if len(align(back, tuple(window))) >= in_order + gain:
                return TURNED
    return ""


def _loose(found: Comparison) -> bool:
    """Tells of one name that the window has at another place, and not at its beginning."""
    for gap in found.gaps:
        elsewhere = {t.key for other in found.gaps if other is not gap for t in other.theirs}
        names = [t for t in gap.ours if t.capital and t.kind == "word"]
        if names and gap.ours[:1] != found.claim[:1] and all(t.key in elsewhere for t in names):
            return True
    return False


def _units(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Returns the ranges of names, whose words stand side by side, and of numbers."""
    found: list[tuple[int, int]] = []
    for at, token in enumerate(tokens):
        # A script may write names like other words.
        name = token.capital or (token.kind == "word" and not token.word[0].islower())
        if name and found and found[-1][1] == at and not tokens[at - 1].number:
            found[-1] = found[-1][0], at + 1
        elif name or token.number:
            found.append((at, at + 1))
    return found


# ---- one word for another -----------------------------------------------------------------------


def replaced(found: Comparison) -> str:
    """A word in place of another in the source's own sentence."""
    own = [sides for gap in found.gaps if any(map(_tells, (sides := gap.content())[0]))]
    for ours, theirs in own if found.near else ():
        if not theirs or _bridges(ours, theirs) or any(_alike(a, b) for a in ours for b in theirs):
            continue
        marked = all(any(t.capital or t.number for t in side) for side in (ours, theirs))
        if len(found.gaps) == 1 or marked:
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


_COMPOUND, _OF_COMPOUND = 10, 0.65  # letters of a compound, and the share that its forms have


def _alike(one: Token, other: Token) -> bool:
    """Tells whether two words or pairs of letters are forms of one; scales are not."""
    if one.kind == other.kind == "letter":
        if len(one.key) == 1:
            return one.key in other.key
        return one.key[0] == other.key[0] and all("ぁ" <= t.key[-1] <= "ゟ" for t in (one, other))
    same = 2 if one.key[0] >= "\uac00" else 4  # syllables, letters
    if min(len(one.key), len(other.key)) >= _COMPOUND:  # `Sonntagabend`, `Sonntagmorgen`
        same = int(_OF_COMPOUND * max(len(one.key), len(other.key)))
    return len(one.key) >= same and one.key[:same] == other.key[:same]


# ---- who says or does it ------------------------------------------------------------------------

_SUBJECT = 6  # first tokens of a sentence, or its last behind a quotation


def role(found: Comparison) -> str:
    """Finds a claim about one name whose words stand in a sentence about another name."""
    page = found.page
    parts = [[*part] for _, part in groupby(found.window, lambda t: page.sentence_of(t.start))]
    names = _names(found.claim[:_SUBJECT], page.lang)
    if found.letters or _cells(found) or not names or len(parts) < 2:
        return ""
    told = {t.key for t in found.ours if not t.capital or page.lang == "de"} - names
    says = max(parts, key=lambda part: len(told & {t.key for t in part}))
    begun = page.text[max(0, says[0].start - 1)] in '"“«„'
    other = _names(says[-_SUBJECT:] if begun else says[:_SUBJECT], page.lang)
    other -= {t.key for t in found.claim}
    return TURNED if other and names.isdisjoint(t.key for t in says) else ""


def _names(tokens: Sequence[Token], lang: str) -> set[str]:
    """Returns the keys of words that are surely names: of German ones, two in a row."""
    if lang != "de":
        return {t.key for t in tokens if t.named and t.kind == "word"}
    pairs = [(a, b) for a, b in pairwise(tokens) if a.capital and b.capital]
    return {t.key for a, b in pairs if b.start == a.end + 1 for t in (a, b)}


# ---- cells of a table ---------------------------------------------------------------------------


_LONGEST = 200  # tokens of a claim that are looked at


def column(found: Comparison) -> str:
    """Finds a value that the row has in another column than the one that the claim names."""
    keys = [t.key for t in found.claim[:_LONGEST]]
    cells = _cells(found)[1:]
    heads = [{t.key for t in cell.head if t.kind != "stop"} for cell in cells]
    held = [{t.key for t in cell.said if t.kind != "stop"}.intersection(keys) for cell in cells]
    named = [n for n, head in enumerate(heads) if head and head.issubset(keys)]
    told = [n for n in named if held[n]]

    def far(value: int, head: int) -> int:
        theirs = [j for j, key in enumerate(keys) if key in heads[head]]
        return min(abs(i - j) for i, key in enumerate(keys) if key in held[value] for j in theirs)

    if named and any(held) and not told:
        return TURNED
    return TURNED if any(far(n, n) > min(far(n, k) for k in named) for n in told) else ""


def _cells(found: Comparison) -> list[Cell]:
    """Returns the cells of the window, if it is the row of a table."""
    if not found.page.rows:
        return []
    rows = {found.page.sentence_of(t.start) for t in found.window} & found.page.rows.keys()
    return found.page.cells(min(rows)) if len(rows) == 1 else []


VETOES: dict[str, Callable[[Comparison], str]] = {
    "quantity": quantity,
    "opposite": opposite,
    "denial": denial,
    "degree": degree,
    "exchanged": exchanged,
    "replaced": replaced,
    "role": role,
    "column": column,
}


def veto(found: Comparison) -> str:
    """Returns why a claim loses its tick, as a sentence, or an empty string."""
    rules = VETOES.values() if not found.derived else (quantity, denial)
    return next(filter(None, (rule(found) for rule in rules)), "")


_WORDS = 0.8  # of a claim's words, beside one number of its measure


def _measured_otherwise(found: Comparison) -> bool:
    """Tells of one quantity that a sentence gives otherwise, and the page nowhere so."""
    page, lost = found.page, [t for t in found.lost if t.number]
    if len(lost) != 1 or not (told := lost[0].number) or not told.unit or page.gives(lost[0]):
        return False  # perhaps of something else
    said = {t.key for t in found.claim}
    given = [t for t in found.window if t.number and t.number.unit]
    if any(t.number.value == told.value and not told.beside(t.number) for t in given if t.number):
        return False  # `1,850 pounds` for £1,850
    same = [t for t in given if t.number and t.number.unit == told.unit and t.key not in said]
    words = {t.key for t in found.claim if t.key in found.weights and not t.number}
    here = {t.key for k in same for t in page.tokens(page.sentence_of(k.start))}
    near = len(same) == 1 and len(words & here) >= _WORDS * len(words)
    return near and _excludes(found, lost[0], same[0])


_SPLIT = re.compile(r"(?<!\d)\d{1,3}(?:, \d{3}(?!\d)|\. \d)")  # `3, 800 km`: spaces cut it


def _excludes(found: Comparison, one: Token, other: Token) -> bool:
    """Tells whether a number of the page excludes the claim's.

    One that spaces cut does not, nor do two of the window whose difference or share is the claim's.
    """
    cut = _SPLIT.search(found.page.text, max(0, other.start - 5), other.end + 5)
    if cut or not (one.number and other.number and one.number.differs(other.number)):
        return False
    given = [t.number.value for t in found.window if t.number and t.number.value > 0]
    share = 100 * (one.number.unit == "%")
    made = ((abs(a - b), share * a / b, share * b / a) for a, b in combinations(given[:_MOST], 2))
    return not any(isclose(one.number.value, value) for each in made for value in each)


def accused(found: Comparison, fault: str) -> bool:
    """Tells whether the fault is the one difference between the claim and the source's sentence."""
    if fault in (NUMBER, MISSING_NUMBER) and _measured_otherwise(found):
        return True
    gaps = [gap for gap in found.gaps if gap.ours]
    left_out = [t for gap in found.gaps if not gap.ours for t in gap.theirs]
    if not found.near or len(gaps or found.gaps) != 1:
        return False
    if gaps and left_out and fault != NUMBER:
        return False
    gap: Gap = (gaps or found.gaps)[0]
    ours, theirs = gap.content()
    plain = [sum(t.kind != "not" and not t.number for t in side) for side in (ours, theirs)]
    if fault == NUMBER:
        one, other = ([t for t in side if t.number] for side in (ours, theirs))
        if not len(one) == len(other) == 1 or all(plain) or not _excludes(found, *one, *other):
            return False
        return not left_out or not any(found.page.has(t.key.strip("?")) for t in ours if t.number)
    if fault == DENIAL:
        return gap.turns and (found.letters or plain[0] == plain[1])
    return fault == OPPOSITE and len(ours) == 1 == len(theirs)
