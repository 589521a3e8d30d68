"""Finds literal quotations in a claim and looks them up in a page."""

from __future__ import annotations

import re

from searchloop.agent.verdicts.page import Page, Words, words_of
from searchloop.agent.verdicts.text import PIECE, SPACELESS, folded, kind_of
from searchloop.analysis.language import language

# Pairs of marks. Single ones must not be apostrophes; 《 》 hold titles.
_MARKS = re.compile(
    '“([^“”]+)”|"([^"\n]+)"|«([^«»]+)»|»([^«»]+)«|„([^„“”"]+)[“”"]|”([^“”]+)”|〝([^〝〞〟]+)[〞〟]|＂([^＂]+)＂'
    "|「([^「」]+)」|『([^『』]+)』|﹁([^﹁﹂]+)﹂|‹([^‹›]+)›|›([^‹›]+)‹"
    '|[❝‟]([^❝❞‟”]+)[❞”]|❛([^❛❜]+)❜|<<([^<>]{8,})>>|,,([^,"”]{8,}(?:, [^,"”]+)*)(?:\'\'|["”])'
    "|‚([^‚‘’]{8,})[‘’]|``([^`']{8,})''"
    "|(?<!\\w)'((?:[^'\n]|(?<=\\w)'(?=\\w)){8,})'(?!\\w)"
    "|(?<!\\w)[‘’]((?:[^‘’\n]|(?<=\\w)’(?=\\w)){8,})’(?!\\w)"
)
_ELLIPSIS = re.compile(
    r"\s*(?:[\[(]\s*(?:\.{2,}|…+)\s*[\])]|\.{3,}|…+|\. \. \."
    r"|\[[^\[\]\s]{1,20}(?: [^\[\]\s]{1,20})?\])\s*"
)
_SPACELESS = re.compile(f"[{SPACELESS}]")
_REPEATS = 20  # places of a quotation's first part that are looked at
_FAR = 1500  # characters that an ellipsis may leave out
_TELLING = 8  # words that tell a language, if it is known here
_SHARED = 0.6  # of a quotation's words that stand in a page of its language
_WORDS, _LETTERS = 4, 5  # a shorter quotation is a term or a nickname


def quotations(claim: str, lang: str) -> list[str]:
    """Returns what stands between quotation marks and is long enough to be somebody's words."""
    found = []
    for groups in _MARKS.findall(claim):
        quote = max(groups, key=len).strip()
        letters = len(_SPACELESS.findall(quote))
        if (letters >= _LETTERS or len(quote.split()) >= _WORDS) and not _title(quote, lang):
            found.append(quote)
    return found


def _title(quote: str, lang: str) -> bool:
    """Tells whether words are capitalised like a song's or a book's title."""
    words = [w for w in re.findall(r"[^\W\d_][\w'’]*", quote) if kind_of(folded(w), lang) == "word"]
    capital = sum(w[0].isupper() for w in words)
    return lang != "de" and 0 < len(words) <= 10 and capital >= 0.75 * len(words)


def elided(quote: str) -> bool:
    """Tells whether a quotation leaves something out."""
    return bool(_ELLIPSIS.search(quote))


def place_of(quote: str, page: Page) -> tuple[int, int] | None:
    """Returns the range of the page that holds a quotation, word for word and in order.

    An ellipsis or a word in brackets stands for what is left out; two words for each part are the
    least, or any page would hold them.
    """
    if literal := page.words.find(words_of(quote, page.lang).joined):
        return literal
    parts = [words_of(part, page.lang) for part in _ELLIPSIS.split(quote)]
    parts = [part for part in parts if part.starts]
    if not parts or sum(len(part.starts) for part in parts) < 2 * len(parts):
        return None
    at = 0
    for _ in range(_REPEATS):
        at = page.words.joined.find(parts[0].joined, at)
        if at < 0:
            return None
        if place := _follow(parts, page.words, at):
            return place
        at += 1
    return None


def _follow(parts: list[Words], words: Words, at: int) -> tuple[int, int] | None:
    """Returns the range of parts that follow each other, the first one at offset `at`."""
    start, last = -1, -1
    for part in parts:
        found = words.find(part.joined, at)
        if found is None or (last >= 0 and found[0] - last > _FAR):
            return None
        start, last = found[0] if start < 0 else start, found[1]
        at = words.joined.find(part.joined, at) + len(part.joined) - 1
    return start, last


def same_language(quote: str, claim: str, page: Page) -> bool:
    """Tells whether a claim's quotation is surely in the page's language.

    Few words tell a language badly: there the claim around them must be told, too. Two languages
    share few words: at most a third of a sentence, names aside.
    """
    lang = language(quote)
    if lang and page.lang and lang != page.lang:
        return False
    if lang and page.lang and (len(quote.split()) >= _TELLING or language(claim) == lang):
        return True
    words = [
        piece[0]
        for piece in PIECE.finditer(quote)
        if piece[0].isalpha() and not piece[0][0].isupper()
    ]
    known = sum(words_of(word, page.lang).joined in page.words.joined for word in words)
    return known > _SHARED * len(words)
