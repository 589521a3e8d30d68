"""Guesses the language of a text by its script and its function words."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from searchloop.agent.verdicts.vocabulary import NEGATIONS, STOPS

_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30fa]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("", re.compile("[a-z\u00c0-\u024f]", re.IGNORECASE)),
)
SCRIPTS = frozenset(lang for lang, _ in _SCRIPTS if lang)  # languages that their script tells
_WORD = re.compile(r"[^\W\d_]+")
_READ = 20_000  # characters: enough to tell
_SHARE, _LONG = 0.22, 25  # of the words of a text that are function words; words of a long text
_FOREIGN = 0.08  # of the words that hold a letter which their language does not write
_LETTERS = {
    "de": "äöüß",
    "es": "áéíóúüñ",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "it": "àèéìíîòóùú",
    "nl": "áèéêëïóöü",
    "pt": "àáâãçéêíóôõúü",
}  # beside a to z
_MARKS = {lang: words | NEGATIONS[lang] for lang, words in STOPS.items() if lang != "ru"}


@lru_cache(maxsize=1024)
def language(text: str) -> str:
    """Returns a two-letter code, or an empty string where the text does not tell.

    Another script than Latin tells by itself. Among Latin languages the one with the most function
    words counts, if it leads clearly.
    """
    text = text[:_READ]
    counts = {lang: len(script.findall(text)) for lang, script in _SCRIPTS}
    if counts["ja"] * 8 >= counts["zh"] and counts["ja"]:  # kanji alone would count as Chinese
        counts["ja"] += counts.pop("zh")
    best = max(counts, key=lambda lang: counts[lang])
    if best or not counts[best]:
        return best if counts[best] else ""
    for lang, count in counts.items():  # Latin names and terms stand in texts of any script
        if lang and count * 5 >= counts[""] and count:
            return lang
    words = _WORD.findall(text.casefold())
    ranked = sorted(
        ((sum(w in m for w in words), lang) for lang, m in _MARKS.items()), reverse=True
    )
    (most, lang), (second, _) = ranked[:2]
    # Romanian, Turkish or Vietnamese share some function words with the languages known here.
    enough = (_SHARE if len(words) >= _LONG else _SHARE / 2) * len(words)
    if most < max(1, enough, 1.25 * second + 0.5):
        return ""
    plain = [w for w in _WORD.findall(unicodedata.normalize("NFC", text)) if w.islower()]
    written = set(_LETTERS.get(lang, ""))
    foreign = sum(any(c > "\x7f" and c not in written for c in w) for w in plain)
    return lang if foreign <= _FOREIGN * len(plain) else ""
