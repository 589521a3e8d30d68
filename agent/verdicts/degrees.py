"""Tells claims that say more than their source, or the reverse: all for some, rose for fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchloop.agent.verdicts import numbers
from searchloop.agent.verdicts.cover import begins
from searchloop.agent.verdicts.text import OPPOSITES, Token, apart
from searchloop.analysis.words import table


def _kinds(name: str) -> Mapping[str, str]:
    """Returns {phrase: its kind} of a table of words; a word may join several by hyphens."""
    found = table(numbers.TABLES[name]).items()
    return {word.replace("-", " "): kind for kind, words in found for word in words}


_QUANTITIES, _BOUNDS = _kinds("quantifiers"), _kinds("bounds")
_HEDGES, _CONDITIONS = (
    {lang: frozenset(words) for lang, words in table(numbers.TABLES[name]).items()}
    for name in ("hedges", "conditions")
)
_WAYS = ("by", "to", "from")  # of which the source may have none
_ALL = {"all"}
_MODIFIERS = frozenset(numbers.TABLES["modifiers"].split())
_NAMES = ("may", "will")  # a month, a man
_SAYINGS = frozenset(numbers.TABLES["sayings"].split())
_SHARES = frozenset(numbers.TABLES["shares"].split())
Tokens = Sequence[Token]


def said(token: Token) -> str:
    """Returns a token's word, or its two letters in scripts without spaces."""
    return token.key if token.kind == "letter" else token.word


def other_quantity(ours: Tokens, theirs: Tokens) -> bool:
    """Tells whether one place speaks of all and the other of some, or of most, or of few."""
    one, other = ({_QUANTITIES.get(said(t)) for t in side} - {None} for side in (ours, theirs))
    counted = [any(t.number for t in side) for side in (ours, theirs)]
    if (one, other, *counted) in ((_ALL, set(), False, True), (set(), _ALL, True, False)):
        return True
    return bool(one and other and not one & other)


def overstated(claim: Tokens, window: Tokens) -> bool:
    """Tells of `all` or `every` in the claim where the source says only, some or most."""
    one, other = ({_QUANTITIES.get(said(t), "") for t in side} for side in (claim, window))
    return "all" in one - other and bool(other & {"only", "some", "most", "few"})


def modified(ours: Tokens, theirs: Tokens) -> bool:
    """Tells of `the largest` for `the second largest`, `the president` for `the vice president`."""
    one, other = (bool(side) and side[-1].word in _MODIFIERS for side in (ours, theirs))
    return one != other


def hedged(tokens: Tokens, lang: str, words: frozenset[str] = frozenset()) -> list[int]:
    """Returns the places of words such as "may", "perhaps" and "if", or of given words."""
    words = words or _HEDGES.get(lang, frozenset()) | _CONDITIONS.get(lang, frozenset())
    return [
        i
        for i, (t, after) in enumerate(zip(tokens, (*tokens[1:], *tokens[-1:]), strict=True))
        if (said(t) in words or f"{t.word}-{after.word}" in words)
        and not (t.capital and t.word in _NAMES)
    ]


def surer(claim: Tokens, window: Tokens, pairs: Sequence[tuple[int, int]], lang: str) -> bool:
    """Tells whether the source doubts what the claim says without a doubt."""
    held, places = {i for i, _ in pairs}, {j for _, j in pairs}
    soft = any(t.word in _SOFT for t in claim)
    if not held.issuperset(hedged(claim, lang)):
        return False  # it doubts in words of its own
    begun = {_beginning(t) for t in claim}
    for at in hedged(window, lang):
        if soft and window[at].word in _SOFT:
            continue  # `can` for `may`
        behind = [j for j in range(at + 1, len(window)) if window[j].kind != "stop"]
        behind = [j for j in behind if window[j].word not in _SAYINGS]
        if not behind and lang in ("de", "nl"):  # `verschwinden könnte`
            behind = [j for j in range(at) if window[j].kind != "stop"][-1:]
        if lang in ("ja", "ko"):
            behind = [*range(max(0, at - 4), at)]  # "may" stands at the end
        for j in behind[: 4 if window[at].kind == "letter" or lang == "ko" else 1]:
            if at not in places and (j in places or _beginning(window[j]) in begun):
                return True
    return False


def _beginning(token: Token) -> str:
    """Returns what the forms of a word share, and any other token whole."""
    return begins(token.key, 4) if token.kind == "word" else token.key


def conditional(claim: Tokens, window: Tokens, pairs: Sequence[tuple[int, int]], lang: str) -> bool:
    """Tells whether the source goes on with "unless" or "if" behind what the claim says."""
    words = _CONDITIONS.get(lang, frozenset(("if",)))
    held = {j for _, j in pairs}
    inverted = [0] if window and window[0].word in _INVERTED else []  # `Had it rained, ...`
    for at in (*inverted, *hedged(window, lang, words)):
        end = next((n for n in range(at + 1, len(window)) if apart(window, n)), len(window))
        inside = [j for j in range(at + 1, end) if window[j].kind != "stop"]
        if held.isdisjoint(inside) and not held.isdisjoint(range(end, end + 4)):
            return not hedged(claim, lang, words)  # `If ..., it will`
        told = [j for j in range(at) if window[j].kind != "stop"][-1:]
        if not held.isdisjoint(range(at + 1, at + 4) if lang == "ja" else told):
            return not hedged(claim, lang, words)
    return False


def _led(tokens: Tokens, lang: str) -> dict[int, str]:
    """Returns {place: kind} of the content behind "only", "instead of" and the like.

    A kind begins with `~` where the phrase may lead that content, too: `unlike the older X`.
    """
    found: dict[int, str] = {}
    for at, token in enumerate(tokens):
        phrases = (" ".join(map(said, tokens[at : at + n])) for n in (3, 2, 1))
        known = said(token) in _FIRST
        phrase = next((p for p in phrases if p in _TURNING), "") if known else ""
        if not phrase or lang not in _LONE.get(phrase, (lang,)):
            continue
        kind, letters = _TURNING[phrase], token.kind == "letter"
        first = at + (2 if letters else 1 + phrase.count(" "))
        places = [j for j in range(first, len(tokens)) if tokens[j].kind != "stop"]
        if letters and kind == "one-of":  # it stands behind
            places = [at - 2]
        loose = ""
        for before, j in zip((None, *places), places[:4], strict=False):
            if before is not None and not (tokens[j].capital and tokens[before].capital):
                cut = any(apart(tokens, n) for n in range(before + 1, j + 1))
                if kind not in _ASIDE or loose or cut:
                    break
                loose = "~"
            found.setdefault(j, loose + kind)
        if kind == "only" and at:  # `occurs only at`, `only occurs at`
            found.setdefault(at - 1, "~only")
    return found


def limited(tokens: Tokens, at: int, lang: str) -> bool:
    """Tells whether what begins at a place is said of a part, almost, or of something else."""
    at = next((n for n in range(at, len(tokens)) if tokens[n].kind != "stop"), at)
    words = [
        n for n in range(max(0, at - 3), at) if tokens[n].kind != "stop" or said(tokens[n]) in _OF
    ]
    part = len(words) > 1 and said(tokens[words[-1]]) in _OF and _counts(tokens, words[-2])
    few = bool(words) and _QUANTITIES.get(said(tokens[words[-1]])) == "few"
    kind = _led(tokens, lang).get(at, "some")
    return part or few or not (kind in _MILD or kind[0] == "~")


def _counts(tokens: Tokens, at: int) -> bool:
    token, before = tokens[at], tokens[at - 1] if at else None
    unit = token.number and token.number.unit
    if unit in ("", "%") or _QUANTITIES.get(said(token)) in ("few", "some", "most"):
        return True
    ordinal = before and before.kind == "word" and before.word not in numbers.ABOUT
    return token.word.rstrip("s") in _SHARES and not ordinal  # the first half is an ordinal


def partial(claim: Tokens, window: Tokens) -> bool:
    """Tells whether the source says it of a part: `14 of the 90`, `30 of which`."""
    parts, theirs = _wholes(claim), _wholes(window)
    keys = {t.key for t in claim}
    for key, part in theirs.items():
        own = parts.get(key, part if part in keys else "")
        if key in keys and own != part and not (own[:1] == part[:1] == "#"):
            return True
    return False


def _wholes(tokens: Tokens) -> dict[str, str]:
    """Returns {whole: part}, as keys: {90: 14} of `14 of the 90`."""
    found = {}
    for at in range(len(tokens) - 2):
        part = said(tokens[at + 1]) in _OF and not apart(tokens, at + 1)
        date = said(tokens[at + 1]) == "de" and tokens[at + 2].kind == "word"  # `12 de mayo`
        if part and not date and _counts(tokens, at):
            whole = next((t.key for t in tokens[at + 2 :] if t.kind != "stop"), "")
            times = tokens[at - 1].key if at and tokens[at - 1].number else ""  # `two thirds`
            found[whole] = f"{tokens[at].key} {times}".strip()
    for at, token in enumerate(tokens):  # `Of the 50 samples, 48 were`
        if said(token) in _OF and (at == 0 or apart(tokens, at)):
            whole = next((t.key for t in tokens[at + 1 :] if t.kind != "stop"), "")
            numbered = [t.key for t in tokens[at + 1 : at + _NEAR] if t.number]
            found.update((whole, key) for key in numbered[1:2] if numbered[0] == whole)
    return found


def turned(claim: Tokens, window: Tokens, lang: str) -> bool:
    """Tells of `only`, `almost`, `unlike`, `instead of` or `against` on one side alone.

    `Only members vote` says that members vote, not the reverse.
    """
    ours, theirs = _led(claim, lang), _led(window, lang)
    one, other = _kinds_by_key(claim, ours), _kinds_by_key(window, theirs)
    for key in one.keys() & other.keys():
        (mine, bare), (their, bare_there) = one[key], other[key]
        if mine.strip("~") == their.strip("~"):
            continue
        mine, their = ("" if "~" in kind else kind for kind in (mine, their))
        if "" in (mine, their) and mine + their in _TIMES:
            continue
        if mine == their or (mine, their) in _WEAKER or "some" in (mine, their):
            continue
        if key[0] == "#" and {mine, their} <= {"only", "nearly", "few", ""}:
            continue
        if "against" not in (mine, their) or (bare_there if mine else bare):
            return True  # but `against flu`, `from flu`
    return "only" in {kind for i, kind in ours.items() if claim[i].key not in other} and (
        "only" not in theirs.values()
    )


def _kinds_by_key(tokens: Tokens, led: Mapping[int, str]) -> dict[str, tuple[str, bool]]:
    """Returns {key: what leads it, whether no function word stands before it}."""
    found: dict[str, tuple[str, bool]] = {}
    for at, (before, token) in enumerate(zip((None, *tokens), tokens, strict=False)):
        if token.kind in ("word", "number", "letter"):
            bare = before is not None and before.kind != "stop"
            kind = led.get(at, "")
            if token.key not in found or not kind:
                found[token.key] = kind, bare
    return found


def misdated(claim: Tokens, window: Tokens) -> bool:
    """Tells of an amount that the source gives for another year: `3 in 2010 and 5 in 2015`."""
    step = -1 if any(t.kind == "letter" for t in claim) else 1  # Chinese: `2010年3吨`
    one, other = _yearly(claim[::step]), _yearly(window[::step])
    amounts, years = ({pair[side] for pair in other} for side in (0, 1))
    known = [pair for pair in one if pair[0] in amounts and pair[1] in years]
    return len(other) > 1 and any(pair not in other for pair in known)


def _yearly(tokens: Tokens) -> list[tuple[str, str]]:
    """Returns each year with the amount that stands before it, behind the year before."""
    found, amount = [], ""
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        year = (
            token.number
            and token.number.unit in ("", "year")
            and numbers.is_year(token.number.value)
        )
        if year and amount:
            found.append((amount, token.key))
            amount = ""
        elif not year and (token.number or token.word.rstrip("s") in _SHARES):
            joined = token.number and after and after.word.rstrip("s") in _SHARES
            amount = f"{token.key} {after.key}" if joined and after else amount or token.key
    return found


_TURNING, _LONE = _kinds("turning"), table(numbers.TABLES["lone"])
_FIRST = frozenset(phrase.split()[0] for phrase in _TURNING)
_OF = frozenset(numbers.TABLES["of"].split())
_RELATIVE = frozenset(numbers.TABLES["relative"].split())
_SOFT = frozenset(numbers.TABLES["soft"].split())
_NEAR = 8  # tokens to the part of a whole
_TIMES = ("before", "after", "during", "since")
_MILD = ("only", "not-only", "some", *_TIMES)  # a claim may leave it out
_ASIDE = ("unlike", "instead", "except")
_INVERTED = ("had", "were", "should")
_WEAKER = {("", "only"), ("", "not-only"), ("not-only", "")}


def bounded(claim: Tokens, window: Tokens) -> bool:
    """Tells whether a number of the claim is a bound that the source does not give."""
    one, other = ({t.key: _more(side, n) for n, t in enumerate(side)} for side in (claim, window))
    if any(one[key] != other[key] for key in one.keys() & other.keys() if key[0] == "#"):
        return True
    for i, token in enumerate(claim):
        counts = token.number or said(token) in _SHARES
        if counts and (bound := _bound(claim, i)):
            there = [_bound(window, j) for j, t in enumerate(window) if t.key == token.key]
            if there and bound not in there and (bound not in _WAYS or "" not in there):
                return True
    return False


def _more(tokens: Tokens, at: int) -> bool:
    """Tells whether a number says by how much something is more: `costs 150 euros more`."""
    behind = [t.word for t in tokens[at + 1 : at + 3] if t.key[0] != "~"]
    return behind[:1] != [] and behind[0] in _RELATIVE


def _bound(tokens: Tokens, at: int) -> str:
    words = [said(t) for t in tokens[max(0, at - 3) : at]]
    phrases = [" ".join(words[-n:]) for n in (3, 2, 1)]
    if at + 1 < len(tokens) and tokens[at + 1].kind == "letter":
        phrases += [said(t) for t in tokens[at + 1 : at + 3] if said(t) in ("以上", "以下", "未満")]
    return next((_BOUNDS[phrase] for phrase in phrases if phrase in _BOUNDS), "")


def opposite(claim: Tokens, window: Tokens, apart: Sequence[tuple[Tokens, Tokens]]) -> bool:
    """Tells of a word whose opposite stands in the window in its stead."""
    own, have = _reversible(claim), _reversible(window)
    places = [(own - have, have - own)]
    places += [(_reversible(one), _reversible(other)) for one, other in apart if one]
    for gap in apart:  # `fell by` for `fell to`, `will be` for `was`
        ours, theirs = ({said(t) for t in side[-_CLOSE:]} for side in gap)
        if any(one in theirs and other in ours for one, other in _CONTRASTS):
            return True
    return any(_reverse(one, other) for own, have in places for one in own for other in have)


def _reversible(tokens: Tokens) -> set[str]:
    """Returns the words, and the pairs of letters that may have an opposite."""
    found = {said(t) for t in tokens}
    letters = {t.key for t in tokens if t.kind == "letter"}
    return found - {key for key in letters if key not in OPPOSITES and key[1:] not in OPPOSITES}


def _reverse(one: str, other: str) -> bool:
    """Tells whether two words begin like opposites of the table, or one is the other with `un-`."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.removesuffix(short) in _PREFIXES:
        return True
    if len(one) == len(other) == 2 and one[0] == other[0] and other[1] in OPPOSITES.get(one[1], ()):
        return True  # `撞前` for `撞后`
    for length in range(len(one), max(1, len(one) - 4), -1):
        for reverse in OPPOSITES.get(one[:length], ()):
            if other.startswith(reverse) and len(other) - len(reverse) <= 3:
                return True
    return False


_CLOSE = 3  # tokens before what both sides have
_CONTRASTS = {
    pair
    for one, _, other in (p.partition("/") for p in numbers.TABLES["contrasts"].split())
    for pair in ((one, other), (other, one))
}
_PREFIXES = frozenset(["un", "in", "im", "ir", "il", "dis", "non", "des", "dés"])
