"""Reads quantities: a number's value with sign and scale, its unit, and how exact it is.

In digits, words and CJK numerals. `Number.held_by` and `Number.differs` compare two of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import takewhile
from typing import NamedTuple

from searchloop.analysis.words import table

# {name: lines} of `tables.txt`.
_WHOLE = files(__package__).joinpath("tables.txt").read_text("utf-8")
TABLES: dict[str, str] = dict(part.split("\n", 1) for part in _WHOLE.split("== ")[1:])


@lru_cache
def pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    """Returns a pattern of `tables.txt`, which stands there on several lines."""
    return re.compile("".join(TABLES[name].splitlines()), flags)


def _units() -> tuple[dict[str, str], dict[str, tuple[str, float]]]:
    """Returns {word: unit} and {unit: (dimension, size)} of rows such as `km=length*1000: km`."""
    words: dict[str, str] = {}
    sizes: dict[str, tuple[str, float]] = {}
    for row, names in table(TABLES["units"]).items():
        unit, _, measure = row.partition("=")
        dimension, _, size = (measure or f"{unit}*1").partition("*")
        sizes[unit] = dimension, float(size)
        words.update(dict.fromkeys(names, unit))
    return words, sizes


UNITS, _SIZES = _units()
MONTH, CLOCK = "calendar", "clock"  # units of a month's number, and of minutes since midnight
_EXACT = 1e-9
_CONVERTED = 0.01  # share of a value that a conversion may round away
_LOOSE = 0.03  # share that "about" may, at the most
_NEARLY = 0.95  # and "nearly"
_FAR = 1.5  # a bound that is further off tells nothing
_SURELY = 0.1  # share beyond which no rounding explains a difference


class Number(NamedTuple):
    """A value with its scale and sign applied, and its unit's short name or an empty string.

    `kind` is "about", "nearly", "more" (more than, at least), "less", "half" (either half of a day)
    or empty; `step` is what one more in the last written digit would add.
    """

    value: float
    unit: str
    kind: str = ""
    step: float = 1.0

    @property
    def key(self) -> str:
        """What equal numbers have in common, in whatever unit; months and times only theirs."""
        return f"#{self.value:.9g}{ {MONTH: '月', CLOCK: '時'}.get(self.unit, '') }"

    def held_by(self, other: Number) -> bool:
        """Tells whether a source that gives `other` says this."""
        bare = not self.unit and other.unit == "%"
        measured = None if bare else self.beside(other)
        if measured is None:
            return False
        mine, given, slack = measured
        if abs(mine - given) <= slack:
            return other.kind in ("", "about", "nearly", self.kind) or self.kind == "about"
        if other.kind in ("more", "less") or mine * given <= 0:
            return False
        share = given / mine
        return {
            "about": abs(share - 1) <= min(_LOOSE, self.zeros() / 2 / abs(self.value)),
            "nearly": _NEARLY <= share < 1,
            "more": 1 < share <= _FAR,
            "less": 1 / _FAR <= share < 1,
            "half": False,
            "": self._rounds(other) and round(abs(self.value / self.zeros())) >= 10,
        }[self.kind]

    def differs(self, other: Number) -> bool:
        """Tells whether the two exclude each other: other values of one thing in one measure."""
        measured = self.beside(other) if bool(self.unit) == bool(other.unit) else None
        if measured is None or self.held_by(other):
            return False
        mine, given, slack = measured
        if other.kind in ("more", "less"):
            if {self.kind, other.kind} == {"more", "less"} and abs(mine - given) <= slack:
                return True  # `at least 55` for `up to 55`
            beyond = given - mine if other.kind == "more" else mine - given
            return self.kind != other.kind and beyond > _SURELY * abs(mine)
        if self.kind in ("more", "less"):
            return mine > given if self.kind == "more" else mine < given
        if not self.unit and mine and given and not math.log10(abs(mine / given)) % 3:
            return False  # perhaps a thousand or a million in a word that is not known here
        loose = self.kind or other.kind or self.unit != other.unit
        return abs(mine - given) > _SURELY * abs(mine) if loose else not self._rounds(other)

    def with_part(self, part: Number) -> Number | None:
        """Returns the sum of `7 hours` and `30 minutes`; None where they are no such parts."""
        if not self.unit or not part.unit or self.unit == part.unit:
            return None
        (mine, size), (given, other_size) = _SIZES[self.unit], _SIZES[part.unit]
        if mine != given or mine not in ("time", "months", "length", "mass") or size <= other_size:
            return None
        return self._replace(value=self.value + part.value * other_size / size, step=part.step)

    def beside(self, other: Number) -> tuple[float, float, float] | None:
        """Returns both values in one measure, and by how much they may differ; None if in none."""
        if self.unit != other.unit and {MONTH, CLOCK} & {self.unit, other.unit}:
            return None
        if "half" in (self.kind, other.kind):  # of a day, that is not told
            return self.value % 720, other.value % 720, 0
        if self.unit == other.unit or not self.unit or not other.unit:
            return self.value, other.value, _EXACT * max(1.0, abs(self.value))
        (mine, size), (given, other_size) = _SIZES[self.unit], _SIZES[other.unit]
        if mine != given:
            return None
        one, two = self.value * size, other.value * other_size
        if "fahrenheit" in (self.unit, other.unit):
            one, two = one - 160 / 9 * (size != 1), two - 160 / 9 * (other_size != 1)
        rounded = max(self.step * size, other.step * other_size) / 2
        return one, two, max(_EXACT * abs(one), min(rounded, _CONVERTED * abs(one)))

    def zeros(self) -> float:
        """Returns the place value of the last digit that is not 0: 10,000 of 710,000."""
        if self.step < 1 or not self.value:
            return self.step
        written = f"{abs(self.value):.12g}"
        zeros = len(written) - len(written.rstrip("0")) if "." not in written else 0
        return float(10**zeros)

    def _rounds(self, other: Number) -> bool:
        """Tells whether this is the other one with fewer digits; a year is never rounded."""
        step = self.zeros()
        year = is_year(self.value) and not self.unit
        fewer = step > other.zeros() and self.unit == other.unit
        return fewer and not year and abs(self.value - other.value) <= step / 2


_SCALES = {word: float(value) for value, words in table(TABLES["scales"]).items() for word in words}
_LONG_SCALE = {"billion", "billions", "billionen", "billones"}  # 10**12 outside English
_CJK_SCALES = dict(zip("十百千万萬亿億兆", (1e1, 1e2, 1e3, 1e4, 1e4, 1e8, 1e8, 1e12), strict=True))
_CJK_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_MINUS = pattern("minus-patterns", re.IGNORECASE)
_HALF = (("and", "a", "half"), ("y", "medio"), ("y", "media"), ("et", "demi"), ("et", "demie"))
_ROUNDINGS, _BEHIND = (table(TABLES[name]) for name in ("roundings", "roundings-behind"))
ABOUT = frozenset(w for k in ("about", "nearly") for each in _ROUNDINGS[k] for w in each.split("-"))
_NOT_MORE = re.compile(r"(?:\b(?:no|not|nicht|pas)|不)\s?\Z", re.IGNORECASE)


def _either(words: list[str]) -> str:
    shapes = (re.escape(word).replace(r"\-", "[ -]") for word in words)
    return "|".join(sorted(shapes, key=len, reverse=True))


def _kinds(rows: Mapping[str, list[str]]) -> str:
    return "|".join(f"(?P<{kind}>{_either(words)})" for kind, words in rows.items())


_KIND = re.compile(
    rf"(?:\b|(?<=[\u3040-\u9fff]))(?:{_kinds(_ROUNDINGS)})"
    r"\W{0,2}(?:(?:the|a|an|die|los|las|les) )?\W?\Z",
    re.IGNORECASE,
)
_KIND_BEHIND = re.compile(rf"[^\s\d。、，]{{0,2}}?(?:{_kinds(_BEHIND)})")


def exactness(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Returns how exact the words around a number at [start, end) make it, and their range."""
    found = _KIND.search(text, max(0, start - 24), start) or _KIND_BEHIND.match(text, end)
    if not found:
        return "", start, end
    kind = found.lastgroup or ""
    if kind in ("more", "less") and _NOT_MORE.search(text, 0, found.start()):
        kind = "less" if kind == "more" else "more"
    return kind, min(start, found.start()), max(end, found.end())


_NUMBER_WORDS = {
    lang: {word: float(value) for word, _, value in (item.partition("=") for item in items)}
    for lang, items in table(TABLES["numerals"]).items()
}
_GROUPED = re.compile(
    r"(?P<whole>[1-9]\d{0,2}([,.'’\u00a0\u202f\u2009 ])\d{3}(?:\2\d{3})*)(?:[.,](?P<rest>\d+))?\Z"
)
_ENGLISH = re.compile(r"\d+\.\d+\Z")
_CJK_RUN = re.compile("[〇零一二三四五六七八九十百千万萬亿億兆两兩]+")
_CJK_COUNTED = pattern("counter-patterns")
_CJK_PLAIN = re.compile("[第统統之进進同专專唯万单單每另]\\Z")
_CJK_UNIT = re.compile(_either([unit for unit in UNITS if ord(unit[0]) >= 0x0E00]))


@lru_cache(maxsize=8192)
def digits(text: str, lang: str = "") -> float:
    """Reads digits with separators: `81,365`, `81 365`, `1.234.567,8`, `3,5`.

    One group of three behind one full stop is a fraction in English and thousands elsewhere; behind
    one comma it is thousands, since translated texts keep the original's digits.
    """
    grouped = _GROUPED.match(text)
    if grouped and not (lang == "en" and _ENGLISH.match(text)):
        text = re.sub(r"\D", "", grouped["whole"]) + f".{grouped['rest'] or 0}"
    else:
        text = text.replace(",", ".")
        if text.count(".") > 1:  # a version or a date
            text = text.replace(".", "")
    return float(re.sub(r"[^\d.]", "", text)[:300])


def step_of(text: str, factor: float) -> float:
    """Returns what one more in the last digit of a written number would add."""
    fraction = re.search(r"[.,](\d{1,2}|\d{4,})\Z", text)
    return float(factor * 10.0 ** -(len(fraction[1]) if fraction else 0))


def sign(text: str, start: int) -> int:
    """Returns -1 where a minus stands directly before a number and is no dash or hyphen."""
    if _MINUS.search(text, max(0, start - 10), start):
        return -1
    before = text[max(0, start - 4) : start]
    if UNITS.get(before[-1:]) in CURRENCIES:
        before = before[:-1]
    if before[-1:] not in ("-", "−", "–", "－"):
        return 1
    wide = before[-2:-1] > "\u2e80" and not before[-3:-2].isdigit()  # `是-5`, but `2005年-2010年`
    return -1 if wide or not before[-2:-1].isalnum() else 1


_BEFORE = re.compile(r"([^\w\s]|\b[A-Z]{3})\s?\Z")


def unit_before(text: str, start: int) -> str:
    """Returns the currency whose sign or code stands before a number, or % behind `百分之`."""
    if text[max(0, start - 3) : start] == "百分之":
        return "%"
    found = _BEFORE.search(text, max(0, start - 5), start)
    unit = UNITS.get(found[1].casefold(), "") if found else ""
    return unit if unit in CURRENCIES else ""


CURRENCIES = frozenset(("usd", "eur", "gbp", "jpy", "inr", "krw", "rub", "cny"))
_HUNDRED = re.compile("(?P<count>.*?)(?P<by>hundert|tausend)(?P<rest>.*)")
_UND = re.compile("(?P<one>.+)und(?P<ten>.+)")


def word_value(word: str, lang: str) -> float | None:
    """Returns the value of a number word; English is understood where the language is unknown."""
    words = _NUMBER_WORDS.get(lang or "en", {})
    return _german(word) if lang == "de" and word not in words else words.get(word)


@lru_cache(maxsize=8192)
def _german(word: str) -> float | None:
    """Reads a German compound: `dreiundzwanzig`, `zweitausend`."""
    words = _NUMBER_WORDS["de"]
    if word in words or len(word) > 40:
        return words.get(word)
    if word.endswith("einhalb"):
        whole = _german(word.removesuffix("einhalb"))
        return None if whole is None else whole + 0.5
    if found := _HUNDRED.fullmatch(word):
        by = 100 if found["by"] == "hundert" else 1000
        count, rest = (_german(part) if part else 0.0 for part in (found["count"], found["rest"]))
        return None if count is None or rest is None else (count or 1) * by + rest
    found = _UND.fullmatch(word)
    one, ten = (words.get(found[part]) for part in ("one", "ten")) if found else (None, None)
    return one + ten if one is not None and ten is not None and one < 10 <= ten else None


def scale(word: str, lang: str) -> float:
    """Returns what a word such as `million` multiplies by, or 0."""
    if word in _LONG_SCALE and lang not in ("en", ""):
        return 1e12
    return 1e6 if word == "mil" and lang == "en" else _SCALES.get(word, 0)


Rest = Callable[[int], tuple[str, int] | None]


def follow(rest: Rest, at: int, lang: str) -> tuple[float, float, str, int]:
    """Reads "and a half", scale words and a unit behind a number.

    `rest(k)` returns the k-th word behind it with its index, or None if something is between.
    Returns (what is added, factor, unit, words read before the unit).
    """
    added, factor, taken = 0.0, 1.0, at
    for half in _HALF:
        if all((word := rest(at + k)) and word[0] == each for k, each in enumerate(half)):
            added, taken = 0.5, at + len(half)
    while (found := rest(taken)) and (by := scale(found[0], lang)) and taken < at + 5:
        factor, taken = factor * by, taken + 1
    found = rest(taken)
    if found and found[0] in ("de", "of") and taken > at:
        taken += 1
    behind = takewhile(bool, (rest(taken + k) for k in range(3)))
    words = [word[0] for word in behind if word]
    units = (UNITS.get("-".join(words[:length])) for length in (3, 2, 1) if len(words) >= length)
    unit = next(filter(None, units), "")
    return added, factor, unit, taken - at


_SPAN = 200  # more years are a date


def cjk_scale(text: str, at: int) -> tuple[float, int, str]:
    """Reads `万`, `亿`, ... and a unit behind digits; returns (factor, end, unit)."""
    factor = 1.0
    whole = _CJK_UNIT.match(text, at)  # `千米` is one unit
    while not (whole and len(whole[0]) > 1) and (by := _CJK_SCALES.get(text[at : at + 1], 0.0)):
        factor, at = factor * by, at + 1
        whole = _CJK_UNIT.match(text, at)
    unit = whole or _CJK_UNIT.match(text, at + (text[at : at + 1] in ("个", "個", " ")))
    return factor, unit.end() if unit else at, UNITS[unit[0]] if unit else ""


_SHARES = {
    word: Number(float(value), unit, "about")
    for row, words in table(TABLES["shares"]).items()
    for value, _, unit in [row.partition("=")]
    for word in words
}
_SHARE = re.compile(rf"\b(?:{_either(list(_SHARES))})\b|{'|'.join(k for k in _SHARES if k > '一')}")


def shares(text: str, lang: str) -> Iterator[tuple[Number, int, int]]:
    """Yields the shares and multiples that a text says in words: `two-thirds`, `one in nine`."""
    low = text.casefold()
    for found in _SHARE.finditer(low):
        share = _SHARES[found[0].replace(" ", "-")]
        kind = exactness(text, *found.span())[0]
        yield share._replace(kind=kind or "about"), found.start(), found.end()
    for found in pattern("shares-counted").finditer(low):
        by, said = found.lastgroup or "", found[found.lastgroup or 0]
        count = float(said) if said.isdecimal() else word_value(said, lang)
        if count and count > 1:
            value = {"times": count, "part": 100 / count, "tenths": 10 * count}[by]
            kind = exactness(text, found.start(), found.end())[0] or "about"
            yield Number(value, "times" if by == "times" else "%", kind), found.start(), found.end()


_MEASURE = re.compile(r"[^\W\d_]+|[%‰$€£¥]")


@lru_cache
def measure(heads: str) -> tuple[float, str]:
    """Returns the first scale and unit that heads of a table name: `£ million`, `(万人次)`."""
    words = _MEASURE.findall(heads.casefold())
    scales = (scale(word, "en") or _CJK_SCALES.get(word[0], 0) for word in words)
    units = (UNITS.get(word, "") for word in words)
    return next((by for by in scales if by >= 1000), 1.0), next(filter(None, units), "")


def goes_on(text: str, start: int, value: float) -> bool:
    """Tells whether digits go on with the number before them, as in `38億4000万`."""
    return 0 < value < _CJK_SCALES.get(text[start - 1 : start], 0.0) if start else False


def cjk_numbers(text: str, start: int, end: int) -> Iterator[tuple[Number, int, int]]:
    """Yields the numbers written in CJK numerals: several numerals, or one before a counter."""
    for run in _CJK_RUN.finditer(text, start, end):
        counted = _CJK_COUNTED.match(text, run.end())
        unit = _CJK_UNIT.match(text, run.end())
        share = text[max(0, run.start() - 3) : run.start()] == "百分之"
        before = max(0, run.start() - 1)
        ordinal = text[before : run.start()] == "第"
        plain = run[0] in "百千万萬亿億兆" or _CJK_PLAIN.search(text, before, run.start())
        single = len(run[0]) == 1 and plain and not share and not (ordinal and counted)
        if (counted or unit or share or len(run[0]) > 2) and not single:
            value = _cjk_value(run[0]) * sign(text, run.start())
            name = "%" if share else UNITS[unit[0]] if unit else ""
            if not name and value < _SPAN and text[run.end() : run.end() + 1] == "年":
                name, unit = "year", counted
            end = unit.end() if unit and not share else run.end()
            half = 0.5 if name and text[end : end + 1] == "半" else 0.0
            kind = exactness(text, run.start() - 3 * share, end)[0]
            yield Number(value + half, name, kind), run.start() - 3 * share, end


def _cjk_value(text: str) -> float:
    if not any(c in _CJK_SCALES for c in text):
        return float("".join(str(_CJK_DIGITS[c]) for c in text))
    total = section = digit = 0.0
    for c in text:
        by = _CJK_SCALES.get(c, 0.0)
        if not by:
            digit = digit * 10 + _CJK_DIGITS[c]
        elif by < 1e4:
            section, digit = section + (digit or 1) * by, 0
        else:
            total, section, digit = (total + section + digit or 1) * by, 0, 0
    return total + section + digit


def is_year(value: float) -> bool:
    """Tells whether a number may be a year."""
    return 1000 <= value <= 2100 and value == int(value)
