"""Guesses the language of a text by its script and its function words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from unicodedata import normalize

from searchloop.analysis.words import ASKS, NEGATIONS, STOPS

_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30fa]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("lo", re.compile("[\u0e80-\u0eff]")),
    ("my", re.compile("[\u1000-\u109f]")),
    ("km", re.compile("[\u1780-\u17ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ta", re.compile("[\u0b80-\u0bff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("hy", re.compile("[\u0531-\u058a]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("", re.compile("[a-z\u00c0-\u024f\u1e00-\u1eff]", re.IGNORECASE)),
)
SCRIPTS = frozenset(lang for lang, _ in _SCRIPTS if lang)  # languages that their script tells
_SAME_SCRIPT = {"ru": ("ru", "uk"), "ar": ("ar", "fa")}
_LATIN = frozenset(STOPS) - SCRIPTS - {"fa", "uk"}
_WORD = re.compile(r"[^\W\d_]+")
_READ = 20_000  # characters: enough to tell
_SHARE, _LONG = 0.22, 25  # of the words of a text that are function words; words of a long text
_SPARSE = frozenset(("cs", "fi", "hu", "id", "pl", "tr"))  # these do with half as many
_FOREIGN = 0.08  # of the words that hold a letter which their language does not write
_LETTERS: Mapping[str, str] = {
    "de": "äöüß",
    "en": "",
    "es": "áéíóúüñ",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "it": "àèéìíîòóùú",
    "nl": "áèéêëïóöü",
    "pt": "àáâãçéêíóôõúü",
}  # beside a to z
_VIETNAMESE = re.compile("[đơưạ-ỹ]")


def _marks() -> dict[str, tuple[str, ...]]:
    found = defaultdict[str, list[str]](list)
    for lang, words in STOPS.items():
        for word in words.union(NEGATIONS.get(lang, ()), ASKS[lang]):
            found[word].append(lang)
    return {word: tuple(langs) for word, langs in found.items()}


_MARKS = _marks()


@lru_cache(maxsize=1024)
def language(text: str) -> str:
    """Returns a two-letter code, or an empty string where the text does not tell.

    Another script than Latin tells by itself. Among the languages of one script the one with the
    most function words counts, if it leads clearly.
    """
    text = text[:_READ]
    if text.isascii():
        return _by_words(text, _LATIN)
    letters = Counter(text).items()
    counts = {lang: sum(n for c, n in letters if script.match(c)) for lang, script in _SCRIPTS}
    if counts["ja"] * 8 >= counts["zh"] and counts["ja"]:  # kanji alone would count as Chinese
        counts["ja"] += counts.pop("zh")
    best = max(counts, key=lambda lang: counts[lang])
    if not counts[best]:
        return ""
    if not best:  # Latin names and terms stand in texts of any script
        best = next((lang for lang, n in counts.items() if lang and n and n * 5 >= counts[""]), "")
    if best in _SAME_SCRIPT:
        return _by_words(text, frozenset(_SAME_SCRIPT[best])) or best
    if best:
        return best
    vietnamese = _VIETNAMESE.findall(text.casefold())
    return "vi" if len(vietnamese) * 12 >= counts[""] else _by_words(text, _LATIN)


def _by_words(text: str, among: frozenset[str]) -> str:
    words = Counter(_WORD.findall(text.casefold()))
    total = words.total()
    found: Counter[str] = Counter()
    telling = {lang for word in words if len(word) > 1 for lang in _MARKS.get(word, ())}
    for word, times in words.items():
        for lang in _MARKS.get(word, ()):
            if lang in among:
                found[lang] += times
    # Languages without a table here share some function words with those that have one.
    enough = (_SHARE if total >= _LONG else _SHARE / 2) * total
    (lang, most), (_, second) = (*found.most_common(2), ("", 0), ("", 0))[:2]
    enough *= 0.5 if lang in _SPARSE else 1
    if most < max(1, enough, 1.25 * second + 0.5) or lang not in telling:
        return ""  # a letter may be a unit
    written = _LETTERS.get(lang)
    if written is None or text.isascii():
        return lang
    plain = [w for w in _WORD.findall(normalize("NFC", text)) if w.islower()]
    odd = (w for w in plain if not w.isascii())
    foreign = sum(any(c > "\x7f" and c not in written for c in w) for w in odd)
    return lang if foreign <= _FOREIGN * len(plain) else ""
