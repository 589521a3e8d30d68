"""Cuts a text into sentences and tokens, with their places in code points; tables of words."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from searchloop.agent.verdicts import dates, numbers
from searchloop.agent.verdicts.numbers import Number
from searchloop.analysis.terms import stem
from searchloop.analysis.words import DENYING_PHRASES, DENYING_WORDS, NEGATIONS, STOPS


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for one, *others in (row.split("/") for row in numbers.TABLES["opposites"].casefold().split()):
        found[one].update(others)
        for other in others:
            found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


# A word, or its beginning, and the beginnings of the words that say the reverse.
OPPOSITES: Mapping[str, frozenset[str]] = _opposites()


class Token(NamedTuple):
    """A word, a number, a negation, a function word, or one letter of a script without spaces.

    `key` is what two texts have in common: a stem, a value, two neighbouring letters.
    `word` is the whole word without case; `named` tells that it is written like a name, `capital`
    that it begins with a capital.
    """

    kind: str  # "word", "number", "not", "stop", "letter"
    key: str
    start: int
    end: int
    named: bool = False
    number: Number | None = None
    capital: bool = False
    word: str = ""


# ---- tokens ---------------------------------------------------------------------------------

SPACELESS = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0962\u0963\u200c\u200d"
PIECE = re.compile(
    r"(?P<number>\d{1,3}(?:[,.'’\u00a0\u202f\u2009 ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*)"
    rf"|(?P<run>[{SPACELESS}]+)"
    # Letter case here alone: over whole scripts it takes 12 ms to compile.
    r"|(?P<elided>(?i:[cdjlmnst]|qu|lorsqu|jusqu|puisqu|(?:d|n|s|a)ell|un)['’](?=[^\W\d_]))"
    rf"|(?P<word>[^\W\d_{SPACELESS}](?:[^\W_{SPACELESS}]|[{_MARKS}]|['’](?=[^\W\d_]))*)"
    r"|(?P<sign>°[CFcf]?|[%‰$€£¥℃℉])"
)
_BLANKED = numbers.pattern("blanked-patterns", re.IGNORECASE)


def blanked(text: str) -> str:
    """Returns the text with spaces for notes, the addresses of links, and what is struck out."""
    return _BLANKED.sub(lambda match: " " * len(match[0]), text)


_LOOKS = {0x2019: "'", 0x200C: None, 0x200D: None}


@lru_cache(maxsize=65536)
def folded(word: str) -> str:
    """Returns the word without case, width, joiners and the look of its apostrophes.

    `n'` becomes `n`.
    """
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word.translate(_LOOKS))
    return word.casefold().removesuffix("'")


@lru_cache(maxsize=65536)
def key_of(word: str, lang: str) -> str:
    """Returns what a word has in common with its other forms; `HTTPS` is not `HTTP`."""
    short = word.isupper() and 1 < len(word) < 6
    low = folded(word) if short else folded(word).removesuffix("'s")
    if "\uac00" <= low[:1] <= "\ud7a3" and len(low) > 2:
        return _PARTICLES.sub("", low)
    return low if short else stem(low, lang) or low


_PARTICLES = re.compile("(?:에서|에게|으로|까지|부터|은|는|이|가|을|를|에|의|로|와|과|도)\\Z")
_AMBIGUOUS = {  # `en` denies in Finnish, not in Spanish
    word for lang, words in STOPS.items() for word in words - NEGATIONS.get(lang, frozenset())
}
_DENIALS = frozenset().union(*NEGATIONS.values()) - _AMBIGUOUS - {"n"} | NEGATIONS["en"]


def kind_of(word: str, lang: str) -> str:
    """Returns "not", "stop" or "word" for a folded word; English where the language is unknown."""
    if lang not in NEGATIONS:  # a text too short to tell, as a rule
        return "not" if word in _DENIALS else kind_of(word, "en")
    within = DENYING_WORDS.get(lang)
    if word in NEGATIONS[lang] or (within and within.match(word)):
        return "not"
    return "stop" if word in STOPS.get(lang, ()) else "word"


def tokens(text: str, lang: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Returns the tokens of `text[start:end]` in order; places count from the text's beginning."""
    pieces = list(PIECE.finditer(text, start, len(text) if end is None else end))
    out: list[Token] = []
    skip = taken = 0
    for i, piece in enumerate(pieces):
        if i < skip or piece.lastgroup == "sign":
            continue
        if piece.lastgroup == "run":
            out += _letters(text, max(piece.start(), taken), piece.end())
            continue
        if piece.lastgroup == "number" and (date := dates.read(text, piece.start(), lang)):
            out += [_numeral(part, piece.start(), date[1]) for part in date[0]]
            skip = i + sum(each.start() < date[1] for each in pieces[i : i + 5])
            continue
        if piece.lastgroup == "number":
            number, skip, taken = _written(text, pieces, i, lang, out)
            token = _numeral(number, piece.start(), pieces[skip - 1].end())
            month = out[-1].number if out and text[piece.start() - 1] != "月" else None
            is_day = number.value <= 31 and not any(t.number for t in out[-2:-1])
            is_day = is_day and bool(month and month.unit == numbers.MONTH)
            out.insert(len(out) - is_day, token)  # `May 3` is 3 May
            continue
        word = folded(piece[0])
        amount = numbers.word_value(word, lang)
        if amount is not None:
            number, skip = _spelled(text, pieces, i, amount, lang)
            out.append(_numeral(number, piece.start(), pieces[skip - 1].end()))
            continue
        if month := _month(text, piece, word, lang):
            out.append(_numeral(month, *piece.span()))
            continue
        kind = _kind_at(text, pieces, i, word, lang, out)
        key = "not" if kind == "not" else word if kind == "stop" else key_of(piece[0], lang)
        known = numbers.UNITS.get(word) if kind == "word" else None
        if known and out and out[-1].word in _ONE and (taken := _and_half(text, pieces, i)):
            skip = i + 1 + taken
            out[-1] = _numeral(Number(1.5, known), out[-1].start, pieces[skip - 1].end())
            continue
        if known and (len(word) > 2 or (out and out[-1].number)):
            key = f"~{known}"  # however it is written
        named = kind == "word" and _named(text, piece, lang)
        capital = kind == "word" and piece[0][0].isupper()
        out.append(Token(kind, key, piece.start(), piece.end(), named, None, capital, word))
    return _joined_numbers(text, out)


def _written(
    text: str, pieces: list[re.Match[str]], i: int, lang: str, out: list[Token]
) -> tuple[Number, int, int]:
    """Reads the digits of piece i; returns (number, first piece behind it, its end in a run).

    Takes from `out` what belongs to it: `2万` before `1500`, and `EUR` before `40`.
    """
    piece = pieces[i]
    added, factor, unit, skip, taken = _behind(text, pieces, i, lang)
    currency = numbers.unit_before(text, piece.start())
    if currency and (short := _SHORT.match(text, piece.end())):
        factor, unit, skip = 1e3 if short[0] in "kK" else 1e6, "", i + 2
    plain = numbers.digits(_whole_year(text, piece), lang)
    value = (plain + added) * factor * numbers.sign(text, piece.start())
    if numbers.goes_on(text, piece.start(), value) and out and (more := out[-1].number):
        value += more.value
        out.pop()
    end = max(taken, pieces[skip - 1].end())
    kind = numbers.exactness(text, piece.start(), end)[0]
    if currency and out and out[-1].key == f"~{currency}":
        out.pop()
    unit = currency or unit
    if not unit and 0 < value < _YEARS and _SPAN.match(text, end):
        unit, taken = "year", end + 1
    return Number(value, unit, kind, numbers.step_of(piece[0], factor)), skip, taken


def _and_half(text: str, pieces: list[re.Match[str]], i: int) -> int:
    """Returns how many pieces `and a half` takes behind a unit, as in `an hour and a half`."""
    added, _, _, taken = numbers.follow(lambda k: _joined(text, pieces, i, k), 1, "")
    return taken if added else 0


_SHORT = re.compile(r"(?: ?m|k)\b", re.IGNORECASE)  # `£3m`, `$25k`
_ONE = ("a", "an", "one", "una", "une")
_YEARS, _SPAN = 200, re.compile(r"年(?!\d|[一二三四五六七八九十]{1,2}月)")  # `18年`, not `98年5月`
_RANGE = re.compile(r"\s?[-–~～]\s?| (?:to|and|or|bis|und|oder|a|y|o|à|et|ou) |至|到|から")
_MORE_OF_IT = re.compile(r"\s?[^\W\d_]+(?:,? (?:(?:and|und|y|e|et|en|i|и) )?|(?<=[\u3400-\u9fff]))")


def _joined_numbers(text: str, out: list[Token]) -> list[Token]:
    """Gives `5 to 8 %` one unit, and `7 hours 30 minutes` one value."""
    found: list[Token] = []
    for token in reversed(out):
        number = token.number
        at = next((k for k in range(1, min(4, len(found) + 1)) if found[-k].number), 0)
        behind = found[-at].number if at else None
        if number and behind and found[-at].start >= token.end:
            between = text[token.end : found[-at].start]
            if not number.unit and behind.unit and _RANGE.fullmatch(between):
                token = _numeral(number._replace(unit=behind.unit), token.start, token.end)
            elif (whole := number.with_part(behind)) and _MORE_OF_IT.fullmatch(between):
                token = _numeral(whole, token.start, found[-at].end)
                del found[-at:]
        found.append(token)
    starts = {t.start for t in found if t.number}
    spans = [numbers.exactness(text, t.start, t.end) for t in found if t.number and t.number.kind]
    said = {k for _, first, last in spans for k in range(first, last)} - starts
    return [
        t
        for before, t in pairwise((None, *found[::-1]))
        if t and t.start not in said and (t.kind != "letter" or t.end not in said)
        if not (t.key[0] == "~" and before and before.number and before.number.unit)
    ]


def _kind_at(
    text: str, pieces: list[re.Match[str]], i: int, word: str, lang: str, out: Sequence[Token]
) -> str:
    """Returns the kind of a word by what stands beside it."""
    kind, piece = kind_of(word, lang), pieces[i]
    after = _joined(text, pieces, i, 1) if kind == "not" else None
    if after and (after[0] in _NO_DENIAL):
        return "stop"
    phrases = (DENYING_PHRASES.get(lang),) if lang else DENYING_PHRASES.values()
    if any(phrase and phrase.match(text, piece.start()) for phrase in phrases):
        return "not"
    if kind == "stop" and len(piece[0]) == 1 and piece[0].isupper() and word not in "i":
        return "stop" if _FRESH.search(text[max(0, piece.start() - 4) : piece.start()]) else "word"
    before = out[-2:] if out and out[-1].word == "the" else out[-1:]  # `not the case`
    if kind == "word" and before and before[0].kind == "not" and _TRUTH.fullmatch(word):
        return "stop"  # what is not true is what follows
    return kind


_YEAR = re.compile(r"(?<!\d)(\d\d)\d\d[-–/]\Z")  # the `20` of `2018–19`


def _whole_year(text: str, piece: re.Match[str]) -> str:
    """Returns a number's digits; `19` behind `2018–` is 2019."""
    year = _YEAR.search(text, max(0, piece.start() - 6), piece.start())
    short = re.compile(r"\d\d(?![-/]?\d)").match(text, piece.start())  # no month of `2018-05-12`
    return year[1] + piece[0] if year and short and len(piece[0]) == 2 else piece[0]


_YEAR_BEHIND = re.compile(r"\.?,? \d| (?:is|was)\b")


def _month(text: str, piece: re.Match[str], word: str, lang: str) -> Number | None:
    """Returns a month where a day or a year follows, or where it is written like one."""
    month = dates.month(word, lang)
    if not month or _YEAR_BEHIND.match(text, piece.end()):
        return month
    before = text[max(0, piece.start() - 9) : piece.start()]
    like = piece[0][0].isupper() == (lang in ("en", "de", ""))
    verb = word in ("may", "march") and _FRESH.search(before)
    whole = len(word) > 3 or word in ("may", "mai")
    return month if whole and like and not verb else None


_TRUTH = re.compile("true|longer|correct|case|wahr|richtig|cierto|verdad|vrai|vero|правда|верно")
# `sin embargo`, `sans doute`, `not only`
_NO_DENIAL = frozenset(numbers.TABLES["no-denial"].split())


def _numeral(number: Number, start: int, end: int) -> Token:
    return Token("number", number.key, start, end, False, number)


_CLOSE = ("", " ", "-", " - ", "\u00a0", "\u202f", "* ", "** ")


def _joined(text: str, pieces: list[re.Match[str]], i: int, k: int) -> tuple[str, int] | None:
    """Returns the folded k-th piece behind piece i, if but a space or a hyphen stands between."""
    if i + k < len(pieces) and text[pieces[i + k - 1].end() : pieces[i + k].start()] in _CLOSE:
        return folded(pieces[i + k][0]), i + k
    return None


def _behind(
    text: str, pieces: list[re.Match[str]], i: int, lang: str
) -> tuple[float, float, str, int, int]:
    """Returns (added, factor, unit, first piece behind the number, its end in a run)."""
    if i + 1 < len(pieces) and pieces[i + 1].lastgroup == "run":
        at = pieces[i].end() + (text[pieces[i].end()] == " ")
        factor, end, unit = numbers.cjk_scale(text, at)
        return 0.5 if unit and text[end : end + 1] == "半" else 0.0, factor, unit, i + 1, end
    added, factor, unit, taken = numbers.follow(lambda k: _joined(text, pieces, i, k), 1, lang)
    return added, factor, unit, i + 1 + taken, 0


def _spelled(
    text: str, pieces: list[re.Match[str]], i: int, amount: float, lang: str
) -> tuple[Number, int]:
    """Reads a number in words from piece i on; returns it and the index behind it."""
    value, last = amount, i
    if amount >= 20 and amount % 10 == 0:
        after = _joined(text, pieces, i, 1)
        if after and after[0] in ("y", "et", "e"):
            after = _joined(text, pieces, i, 2)
        unit = numbers.word_value(after[0], lang) if after else None
        if after and unit is not None and unit < 10:
            value, last = value + unit, after[1]
    added, factor, unit_name, skip, _ = _behind(text, pieces, last, lang)
    kind = numbers.exactness(text, pieces[i].start(), pieces[skip - 1].end())[0]
    return Number((value + added) * factor, unit_name, kind, factor), skip


_FRESH = re.compile(r"(?:\A|[.!?:;。！？\n|#*•\"“„«‘(\[-])[\s*_\"“„«‘(\[]{0,9}\Z")


def _named(text: str, piece: re.Match[str], lang: str) -> bool:
    """Tells whether a word is written like a name: a capital that no sentence start explains."""
    word = piece[0]
    if (word.isupper() and len(word) > 1) or any(c.isupper() for c in word[1:]):
        return True
    if not word[0].isupper() or lang == "de":
        return False
    return not _FRESH.search(text[max(0, piece.start() - 4) : piece.start()]) and piece.start() > 0


# Denial in Chinese, Japanese and Thai, without the words that merely hold such a letter.
DENIAL = numbers.pattern("denial-patterns")


def _letters(text: str, start: int, end: int) -> list[Token]:
    """Returns the letters of a run without spaces, keyed by pairs, its denials and its numbers."""
    if start >= end:
        return []
    run = text[start:end]
    out = [Token("letter", run[k : k + 2], start + k, start + k + 1) for k in range(len(run) - 1)]
    if len(run) == 1:
        out = [Token("letter", run, start, end)]
    out += [
        Token("not", "not", start + m.start(), start + m.end(), word=m[0])
        for m in DENIAL.finditer(run)
    ]
    found = [_numeral(n, s, e) for n, s, e in numbers.cjk_numbers(text, start, end)]
    out = [t for t in out if not any(n.start <= t.end and t.start < n.end for n in found)] + found
    return sorted(out, key=lambda token: (token.start, token.kind))


def begins(stem: str, letters: int = 6) -> str:
    """Returns what the forms of a word have in common: so many letters, or two Korean syllables."""
    return stem[: 2 if "\uac00" <= stem[:1] <= "\ud7a3" else letters]
