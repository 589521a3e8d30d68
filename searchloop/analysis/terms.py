"""Turns text into the terms that a full-text search compares.

Words are folded (NFKC, case, Latin and Greek diacritics) and stemmed by the Snowball rules of their
language. Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces, Korean glues endings to
words: their terms are single letters and each two neighbours. Numbers and identifiers
(`snake_case`, `camelCase`, `1,000`, `3.11`, `a@b.c`) stay whole and are found by their parts, too.
A term is made of letters, digits and PUNCTUATION. https://snowballstem.org/
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, pairwise, zip_longest

import Stemmer

from searchloop.analysis.language import language
from searchloop.analysis.words import ASKING_PHRASES, ASKS, NEGATIONS, STOPS

_PAIRED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3\u3099\u309a"
)
_CLUSTERED = "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
# Marks that Python does not count as letters; they are part of the word before them.
_MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983"
    "\u09bc-\u09d7\u0a01-\u0a4d\u0a70\u0a71\u0a81-\u0acd\u0b01-\u0b57\u0b82-\u0bd7\u0c00-\u0c56"
    "\u0c81-\u0cd6\u0d00-\u0d57\u0d82-\u0df3\u0f18-\u0fbc\u200c\u200d\ufe00-\ufe0f"
)
_W = rf"[\w{_MARKS}{_CLUSTERED}\u3099\u309a]"
_CHUNK = re.compile(
    rf"{_W}+(?:(?:[-.'’@&·\u2010\u2011]|(?<=\d)(?:,|[\u00a0\u202f\u2009](?=\d{{3}}(?!\d)))(?=\d))"
    rf"{_W}+)*(?:\+\+|#(?!\w))?"
)
_JOINING = re.compile("[\u00a0\u202f\u2009]")
_RUN = re.compile(rf"(?P<pairs>[{_PAIRED}]+)|[{_CLUSTERED}]+")
# A letter with what is written above, below and behind it; some vowels stand before their letter.
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?[^\u0e40-\u0e44\u0ec0-\u0ec4]"
    "[\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3]*|."
)
PUNCTUATION = "_.@&,+#"
_NO_TERM = re.compile(rf"[^\w{_MARKS}{_CLUSTERED}_.@&,+#'’·\u2010\u2011-]")  # of `⑴`, `㏂`
_LONGEST_QUERY = 4_000  # characters
_GROUPS = r"\d{1,3}(?:([,.'’\u00a0\u202f\u2009])\d{3})+|\d{1,2}(?:(,)\d{2})+,\d{3}"  # 12,34,567
_GROUPED = re.compile(_GROUPS)
_AMOUNT = re.compile(rf"({_GROUPS})(?!\2|\3)[.,](\d+)")  # 1,250.50
_ACRONYM = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")  # U.S.A
_DECIMAL = re.compile(r"\d+[.,]\d+")
_PARTS = re.compile(rf"(?:(?!_)[^\W\d]|[{_MARKS}])+|\d+")
_HUMPS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KANA = frozenset(map(chr, range(0x3041, 0x3097)))
_ELIDED = re.compile(
    r"(?:[cdjlmnst]|qu|lorsqu|jusqu|puisqu|un|(?:d|n|s|a|qu|su|b|qu)ell?|all?)[’']"
)
_JOINERS = dict.fromkeys(map(ord, "-'’·\u2010\u2011"))
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200c\u200d"), None)
_LIKE = str.maketrans(
    {"ł": "l", "đ": "d", "ø": "o", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "ё": "е"}
)
_ARABIC = str.maketrans("أإآٱىیېۀکھة", "اااايييهكهه", "\u0640")
_VOCALS = re.compile("[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_VIETNAMESE = re.compile("[ơưạ-ỹ]")
_STRESS = re.compile("[\u0300\u0301]")
_HEBREW_PREFIXES = frozenset("והבלכמש")
_LONGEST = 64  # letters of a word: what is longer is data
_MOST_PIECES = 1 << 14
_NAMES = """
ar:arabic cs:czech da:danish de:german el:greek en:english es:spanish fa:persian
fi:finnish fr:french hi:hindi hu:hungarian hy:armenian id:indonesian it:italian nl:dutch
no:norwegian pl:polish pt:portuguese ro:romanian ru:russian sv:swedish ta:tamil tr:turkish
"""
_STEMMERS = dict(name.split(":") for name in _NAMES.split())
# The languages of a script, the likeliest first; all others are written in Latin letters.
_OF_SCRIPT = (
    (0x370, 0x3FF, ("el",)),
    (0x400, 0x52F, ("ru", "uk")),
    (0x531, 0x58A, ("hy",)),
    (0x590, 0x5FF, ("he",)),
    (0x600, 0x6FF, ("ar", "fa")),
    (0x900, 0x97F, ("hi",)),
    (0xB80, 0xBFF, ("ta",)),
    (0x1F00, 0x1FFF, ("el",)),
    (0xFB50, 0xFEFF, ("ar", "fa")),
)
_NOT_LATIN = frozenset(lang for *_, langs in _OF_SCRIPT for lang in langs) | {
    *("ja", "zh", "ko", "th", "lo", "my", "km")
}
# Here accents are left out before the stem is taken, not after.
_BARE_FIRST = frozenset(("ar", "el", "fa", "he", "hi", "ru", "uk"))
_ASKING = re.compile("|".join(map(re.escape, ASKING_PHRASES)))


# A word of a query: the terms that stand for it, the likeliest first.
Wanted = tuple[str, ...]


def terms(text: str, lang: str | None = None) -> list[str]:
    """Returns the terms of a text in order; `lang` is its language if that is known."""
    lang = language(text) if lang is None else lang
    # Only these blanks join what they part, as the digits of a number.
    pieces = [text] if _JOINING.search(text) else text.split()
    return list(chain.from_iterable(map(_pieces(lang).__getitem__, pieces)))


def words(text: str) -> list[str]:
    """Returns the words of a text as they are written; a run without spaces is one word."""
    return _CHUNK.findall(text)


def places(text: str, lang: str | None = None) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yields (start, end, terms) of each word, and of each term in a run without spaces."""
    lang = language(text) if lang is None else lang
    for chunk in _CHUNK.finditer(text):
        begin = chunk.start()
        for start, end, kind in (
            ((0, len(chunk[0]), ""),) if chunk[0].isascii() else _split(chunk[0])
        ):
            piece = chunk[0][start:end]
            letters = _letters(piece, kind) if kind else []
            if sum(map(len, letters)) != end - start:  # a word, half-width letters, loose marks
                yield begin + start, begin + end, _terms_of(piece, lang)
                continue
            first = begin + start
            for one, other in zip_longest(letters, letters[1:], fillvalue=""):
                yield first, first + len(one), (one,)
                if other:
                    yield first, first + len(one + other), (one + other,)
                first += len(one)


def wanted(query: str, langs: Iterable[str] = (), *, every: bool = False) -> list[Wanted]:
    """Returns the words of a query, each once: all with `every`, else without function words.

    A query of nothing but function words keeps them. `langs` are the languages of the indexed
    texts: a query may be too short to tell its own.
    """
    query = query[:_LONGEST_QUERY]
    own = language(query)
    langs = tuple(dict.fromkeys((own, *sorted(langs), "en")))
    stops = frozenset() if every else stop_words(own or "en")
    text = query if every else _ASKING.sub(" ", query)
    found = list(dict.fromkeys(_wanted(text, own, langs, stops)))
    return found if found or every else wanted(query, langs, every=True)


def _wanted(
    query: str, own: str, langs: tuple[str, ...], stops: frozenset[str]
) -> Iterator[Wanted]:
    shouted = query.isupper()
    for chunk in _CHUNK.findall(query):
        for start, end, kind in _split(chunk):
            piece = chunk[start:end]
            if kind:
                grams = _grams(_letters(piece, kind))
                # A letter of hiragana alone is mostly grammar.
                yield from ((g,) for g in grams if len(grams) == 1 or g not in _KANA)
                continue
            # `IT` and `WHO` are no function words.
            if folded(piece) in stops and (shouted or len(piece) < 2 or not piece.isupper()):
                continue
            # Syllables that differ in their tones only are many: an exact one is taken as meant.
            read = [_word(piece, lang) for lang in (langs[:1] if own == "vi" else langs)]
            for n, forms in enumerate(read[0]):
                others = (form for one in read[1:] if len(one) == len(read[0]) for form in one[n])
                yield forms[:1] if own == "vi" else tuple(dict.fromkeys((*forms, *others)))


@lru_cache(maxsize=64)
def stop_words(lang: str) -> frozenset[str]:
    """Returns the folded words of a language that tell nothing about what a text is about."""
    found = (table.get(lang, frozenset()) for table in (STOPS, ASKS, NEGATIONS))
    return frozenset(map(folded, frozenset().union(*found)))


def folded(word: str) -> str:
    """Returns a word without case, width, accents and other marks."""
    word = unicodedata.normalize("NFKC", word.translate(_UNSEEN)).casefold()
    return word if word.isascii() else _plain(word)


def _plain(word: str) -> str:
    """Removes from a word without case what its readers may leave out."""
    if word[0] < "\u0590":
        accents = _ACCENTS if word[0] < "\u0400" else _STRESS  # `й` is no `и` with an accent
        bare = accents.sub("", unicodedata.normalize("NFD", word.translate(_LIKE)))
        return unicodedata.normalize("NFC", bare)
    return _VOCALS.sub("", word).translate(_ARABIC)


def _split(chunk: str) -> Iterator[tuple[int, int, str]]:
    """Yields (start, end, kind) of the pieces of a chunk; `kind` is "" for a word."""
    end = 0
    for run in () if chunk.isascii() else _RUN.finditer(chunk):
        if end < run.start():
            yield end, run.start(), ""
        yield *run.span(), "pairs" if run["pairs"] else "clusters"
        end = run.end()
    if end < len(chunk):
        yield end, len(chunk), ""


class _Pieces(dict[str, tuple[str, ...]]):
    """The terms of pieces of text in a language; those of words are kept."""

    def __init__(self, lang: str) -> None:
        self._lang = lang

    def __missing__(self, piece: str) -> tuple[str, ...]:
        every = (_terms_of(chunk, self._lang) for chunk in _CHUNK.findall(piece))
        found = tuple(chain.from_iterable(every))
        if len(self) >= _MOST_PIECES:
            self.clear()
        if len(piece) <= _LONGEST:
            self[piece] = found
        return found


_pieces = lru_cache(maxsize=32)(_Pieces)


@lru_cache(maxsize=1 << 16)
def _terms_of(chunk: str, lang: str) -> tuple[str, ...]:
    found: list[str] = []
    for start, end, kind in _split(chunk):
        piece = chunk[start:end]
        forms = _grams(_letters(piece, kind)) if kind else chain.from_iterable(_word(piece, lang))
        found += dict.fromkeys(forms) if not kind else forms
    return tuple(found)


def _letters(run: str, kind: str) -> list[str]:
    run = unicodedata.normalize("NFKC", run)
    return list(run) if kind == "pairs" else _CLUSTER.findall(run)


def _grams(letters: list[str]) -> list[str]:
    """Returns each letter, and each two neighbours."""
    return letters + [one + other for one, other in pairwise(letters)]


def _word(word: str, lang: str) -> tuple[tuple[str, ...], ...]:
    """Returns the forms of a word, number or identifier, then those of its parts."""
    plain = unicodedata.normalize("NFKC", word.translate(_UNSEEN)).strip("-.'’@&·_\u2010\u2011")
    plain = plain[:_LONGEST]
    if not plain.isascii():
        plain = "".join(str(unicodedata.digit(c, c)) if c.isdigit() else c for c in plain)
        plain = _NO_TERM.sub("_", plain)
    if (elided := _ELIDED.match(plain.casefold())) and len(plain) > elided.end():
        plain = plain[elided.end() :]
    if lang == "tr":  # an apostrophe stands between a name and its endings
        plain = re.split("['’]", plain)[0] or plain
    if plain[-2:].casefold() in ("'s", "’s"):
        plain = plain[:-2]
    if not plain:
        return ()
    if _GROUPED.fullmatch(plain):
        return (("".join(filter(str.isdigit, plain)),),)
    if amount := _AMOUNT.fullmatch(plain):
        whole = "".join(filter(str.isdigit, amount[1]))
        return ((f"{whole}.{amount[4]}", folded(plain)), (whole,), (amount[4],))
    parts = _PARTS.findall(_HUMPS.sub("_", plain))
    if parts == [plain]:
        return (_forms(plain, lang),)
    if _ACRONYM.fullmatch(plain):
        return ((folded(plain.replace(".", "")),),)
    whole = plain.replace(",", ".") if _DECIMAL.fullmatch(plain) else plain.translate(_JOINERS)
    forms = _forms(whole, lang) if whole.isalpha() else (folded(whole),)
    smaller = (part for part in parts if len(part) > 1 or part.isdigit())
    return (forms, *(_forms(part, lang) for part in smaller))


def stem(word: str, lang: str) -> str:
    """Returns what the forms of a word have in common."""
    return _forms(word, lang)[0]


def _forms(word: str, lang: str) -> tuple[str, ...]:
    """Returns the stem of one word, and the word as those write it who leave out its accents."""
    low = word.casefold()
    lang = "vi" if _VIETNAMESE.search(low) else _language_of(word[0], lang)
    if lang == "tr" and "I" in word:
        low = word.replace("I", "ı").casefold()
    bare = low if low.isascii() else _plain(low)
    if lang == "vi":
        return (low, bare) if bare != low else (low,)
    if lang == "he" and len(bare) > 3 and bare[0] in _HEBREW_PREFIXES:
        return (bare, bare[1:])
    if lang == "ar":  # a final teh marbuta may be written without its dots; `and the ...`
        bare = re.sub("ه\\Z", "ة", bare)
        bare = bare[1:] if bare.startswith("وال") and len(bare) > 5 else bare
    stem = _stem(bare if lang in _BARE_FIRST else low, lang)
    stem = stem if stem.isascii() else _plain(stem)
    return (stem, bare) if bare != low and stem != bare and lang not in _BARE_FIRST else (stem,)


@lru_cache(maxsize=1 << 16)
def _stem(word: str, lang: str) -> str:
    if lang not in _STEMMERS or word.isdigit():
        return word
    # A stemmer is not made for two threads, and made at once.
    return str(Stemmer.Stemmer(_STEMMERS[lang], 0).stemWord(word))


def _language_of(letter: str, lang: str) -> str:
    """Returns the language whose rules a word follows: `lang` if it is written in its script."""
    if letter >= "\u0370":
        for first, last, langs in _OF_SCRIPT:
            if first <= ord(letter) <= last:
                return lang if lang in langs else langs[0]
        return lang if letter < "\u2000" and lang not in _NOT_LATIN else ""
    return "en" if not lang or lang in _NOT_LATIN else lang
