"""Reads numbers: their value with sign and scale, their unit, in digits, words and CJK numerals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from searchloop.analysis.words import table

# {name: lines} of `tables.txt`.
TABLES = {
    name: lines
    for name, _, lines in (
        section.partition("\n")
        for section in files(__package__).joinpath("tables.txt").read_text("utf-8").split("== ")[1:]
    )
}


@lru_cache
def pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    """Returns a pattern of `tables.txt`, which stands there on several lines."""
    return re.compile("".join(TABLES[name].splitlines()), flags)


class Number(NamedTuple):
    """A value with its scale and sign applied, and its unit's short name or an empty string.

    `slack` is how far a rounded value may be off; 0 where no word such as "about" rounds it.
    """

    value: float
    unit: str
    slack: float = 0.0

    def same(self, other: Number) -> bool:
        """Tells whether the values are equal and no two units contradict each other."""
        slack = 0.0 if other.slack else self.slack
        close = abs(self.value - other.value) <= max(1e-9 * max(1.0, abs(self.value)), slack)
        return close and (not self.unit or not other.unit or self.unit == other.unit)


UNITS = {word: unit for unit, words in table(TABLES["units"]).items() for word in words}
_SCALES = {word: float(value) for value, words in table(TABLES["scales"]).items() for word in words}
_LONG_SCALE = {"billion", "billions", "billionen", "billones", "bilhões"}  # 10**12 outside English
_THAI_SCALES = {"พันล้าน": 1e9, "ล้าน": 1e6, "แสน": 1e5, "หมื่น": 1e4, "พัน": 1e3}
_CJK_SCALES = dict(zip("十百千万萬亿億兆", (1e1, 1e2, 1e3, 1e4, 1e4, 1e8, 1e8, 1e12), strict=True))
_CJK_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CURRENCY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "￥": "jpy", "₹": "inr", "₩": "krw"}
_MINUS = pattern("minus-patterns", re.IGNORECASE)
_SQUARE = frozenset(("square", "sq", "carrés", "carré", "cuadrados", "quadrati", "квадратных"))
_CUBIC = frozenset(["cubic", "cubes", "cube", "cúbicos", "cubi", "кубических"])
_POINTS = pattern("points-patterns")
_OF = frozenset(("de", "d", "of", "di"))
ABOUT = frozenset(word for words in table(TABLES["about"])["about"] for word in words.split("-"))
_ABOUT = "|".join(table(TABLES["about"])["about"]).replace("-", " ")
_ABOUT_END = re.compile(rf"(?:\b|(?<=[\u3040-\u9fff]))(?:{_ABOUT})\W{{0,2}}\Z", re.IGNORECASE)
_ROUNDED = 0.02  # share of a value by which rounding may change it


_NUMBER_WORDS = {
    lang: {word: int(value) for word, _, value in (item.partition("=") for item in items)}
    for lang, items in table(TABLES["numerals"]).items()
}
_GROUPED = re.compile(r"\d{1,3}(?:([,.'’\u00a0\u202f\u2009 ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?\Z")
_CJK_RUN = re.compile("[〇零一二三四五六七八九十百千万萬亿億兆两兩]+")
_CJK_COUNTED = pattern("counter-patterns")
_CJK_PLAIN = re.compile("[第统統之进進同专專唯万单單每另]\\Z")
_CJK_UNIT = re.compile(
    "|".join(sorted((re.escape(u) for u in UNITS if ord(u[0]) >= 0x0E00), key=len, reverse=True))
)


HANGUL_UNIT = re.compile(
    "|".join(
        sorted(
            (u for u in {*UNITS, *_SCALES} if "\uac00" <= u[0] <= "\ud7a3" and len(u) > 1),
            key=len,
            reverse=True,
        )
    )
)


@lru_cache(maxsize=8192)
def digits(text: str, lang: str = "") -> float:
    """Reads digits with separators: `81,365`, `81 365`, `1.234.567,8`, `3,5`.

    One group of three behind one full stop is a fraction in English and thousands elsewhere; behind
    one comma it is thousands, since translated texts keep the original's digits.
    """
    grouped = _GROUPED.match(text)
    if grouped and text[0] != "0" and not (
        lang == "en" and grouped[1] == "." and text.count(".") == 1 and "," not in text
    ):  # fmt: skip
        whole, _, rest = text.partition({",": ".", ".": ","}.get(grouped[1], "."))
        if grouped[1] not in ",." and "," in text:
            whole, _, rest = text.partition(",")
        text = re.sub(r"\D", "", whole) + (f".{rest}" if rest else "")
    else:
        text = text.replace(",", ".")
        if text.count(".") > 1:  # a version or a date
            text = text.replace(".", "")
    return float(re.sub(r"[^\d.]", "", text)[:300])


def slack(text: str, start: int, value: float, factor: float) -> float:
    """Returns how far the value at `start` may be off: behind "about" half of its last digit."""
    if not _ABOUT_END.search(text, max(0, start - 20), start):
        return 0.0
    written = f"{abs(value):.12g}"
    _, point, fraction = written.partition(".")
    zeros = -len(fraction) if point else len(written) - len(written.rstrip("0"))
    year = factor == 1 and 1000 <= value <= 2100
    return 0.0 if year else min(0.5 * 10.0**zeros * factor, _ROUNDED * abs(value) * factor)


def sign(text: str, start: int) -> int:
    """Returns -1 where a minus stands directly before a number and is no dash or hyphen."""
    if _MINUS.search(text, max(0, start - 10), start):
        return -1
    before = text[max(0, start - 4) : start]
    if before[-1:] in _CURRENCY:
        before = before[:-1]
    if before[-1:] not in ("-", "−", "–", "－"):
        return 1
    wide = before[-2:-1] > "\u2e80" and not before[-3:-2].isdigit()  # `是-5`, but `2005年-2010年`
    return -1 if wide or not before[-2:-1].isalnum() else 1


def minus_before(text: str, start: int, end: int) -> int:
    """Returns where a word such as `零下` begins that a number follows, or 0."""
    found = _MINUS.search(text, start, end) if text[end : end + 1].isdigit() else None
    return found.start() if found else 0


def unit_before(text: str, start: int) -> str:
    """Returns the currency whose sign stands before a number, or % behind `百分之`."""
    if text[max(0, start - 3) : start] == "百分之":
        return "%"
    return _CURRENCY.get(text[start - 1 : start].strip(), "") if start else ""


def word_value(word: str, lang: str) -> int | None:
    """Returns the value of a number word; English is understood where the language is unknown."""
    return _NUMBER_WORDS.get(lang or "en", {}).get(word)


def scale(word: str, lang: str) -> float:
    """Returns what a word such as `million` multiplies by, or 0."""
    if word in _LONG_SCALE and lang not in ("en", ""):
        return 1e12
    if word == "mil" and lang not in ("es", "pt"):
        return 0
    return _SCALES.get(word, 0)


def follow(
    rest: Callable[[int], tuple[str, int] | None], at: int, lang: str
) -> tuple[float, str, int]:
    """Reads scale words and a unit behind a number.

    `rest(k)` returns the k-th word behind it with its index, or None if something is between.
    Returns (factor, unit, words read for the scale).
    """
    factor, taken = 1.0, at
    if (found := rest(at)) and found[0] == "de" and (behind := rest(at + 1)):
        taken += scale(behind[0], lang) > 0  # `66 de milioane`
    while (found := rest(taken)) and (by := scale(found[0], lang)) and taken < at + 2:
        factor, taken = factor * by, taken + 1
    found = rest(taken)
    if found and found[0] in _OF and taken > at:
        found, taken = rest(taken + 1), taken + 1
        return factor, UNITS.get(found[0], "") if found else "", taken - 1 - at
    unit = UNITS.get(found[0], "") if found else ""
    behind = rest(taken + 1) if found else None
    pair = (found[0], behind[0]) if found and behind else ("", "")
    if _POINTS.fullmatch(" ".join(pair)):
        unit = "pp"
    elif both := UNITS.get("-".join(pair)):  # `degrees Celsius`
        unit = both
    elif power := "2" * (not _SQUARE.isdisjoint(pair)) or "3" * (not _CUBIC.isdisjoint(pair)):
        unit = (unit or UNITS.get(pair[1], "")) + power
    elif pair == ("km", "h") or pair == ("kilometres", "per"):
        unit = "kmh"
    if found and found[0] in ("per", "pour", "por", "per-cent"):
        behind = rest(taken + 1)
        unit = "%" if behind and behind[0] in ("cent", "ciento", "cento") else ""
        unit = "permille" if behind and behind[0] in ("mil", "mille") else unit
    return factor, unit, taken - at


_IN_MONTH = re.compile(r"月\d{1,2}\Z")


def cjk_scale(text: str, at: int) -> tuple[float, int, str]:
    """Reads `万`, `亿`, ... and a unit behind digits; returns (factor, end, unit)."""
    factor = 1.0
    whole = _CJK_UNIT.match(text, at)  # `千米` is one unit
    while not (whole and len(whole[0]) > 1) and (by := _CJK_SCALES.get(text[at : at + 1], 0.0)):
        factor, at = factor * by, at + 1
        whole = _CJK_UNIT.match(text, at)
    for word, by in _THAI_SCALES.items():
        if text.startswith(word, at):
            factor, at = factor * by, at + len(word)
            break
    if text[at : at + 1] == "日" and not _IN_MONTH.search(text, max(0, at - 4), at):
        return factor, at + 1, "day"
    unit = _CJK_UNIT.match(text, at + (text[at : at + 1] in ("个", "個", " ")))
    return factor, unit.end() if unit else at, UNITS[unit[0]] if unit else ""


def goes_on(text: str, start: int, value: float) -> bool:
    """Tells whether digits go on with the number before them, as in `38億4000万`."""
    return 0 < value < _CJK_SCALES.get(text[start - 1 : start], 0.0) if start else False


def cjk_numbers(text: str, start: int, end: int) -> Iterator[tuple[Number, int, int]]:
    """Yields the numbers written in CJK numerals: several numerals, or one before a counter."""
    for run in _CJK_RUN.finditer(text, start, end):
        counted = _CJK_COUNTED.match(text, run.end())
        unit = _CJK_UNIT.match(text, run.end())
        share = text[max(0, run.start() - 3) : run.start()] == "百分之"
        ordinal = text[max(0, run.start() - 1) : run.start()] == "第"
        single = (
            not share
            and not (ordinal and counted)
            and len(run[0]) == 1
            and (
                _CJK_PLAIN.search(text[max(0, run.start() - 1) : run.start()])
                or run[0] in "百千万萬亿億兆"
            )
        )
        if (counted or unit or share or len(run[0]) > 2) and not single:
            value = _cjk_value(run[0])
            name = "%" if share else UNITS[unit[0]] if unit else ""
            yield Number(value, name), run.start() - 3 * share, run.end()


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
