"""Says which verdict a claim deserves from the text of its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape

from searchloop.agent.types import VerdictName
from searchloop.agent.verdicts.compare import turned_by_gap
from searchloop.agent.verdicts.numbers import pattern
from searchloop.agent.verdicts.page import Page, Words, words_of
from searchloop.agent.verdicts.score import FEW, SHORT, TOKENS, chance, closest
from searchloop.agent.verdicts.text import PIECE, SPACELESS, blanked, folded, kind_of, tokens
from searchloop.agent.verdicts.vetoes import DENIAL, FAULTS, MISSING_NUMBER, TURNED, accused, veto
from searchloop.analysis.language import language
from searchloop.analysis.sentences import sentences

TICKED, ACCUSED = ("quoted", "supported"), ("contradicted", "misquoted")
_LONGEST = 2_000  # characters of a claim that are compared
_TELLING = 8  # words that tell a language, if it is known here


# Behind `Yes,` and `The report says that` the claim begins, before `, according to the report` it
# ends, unless the page says such things.
_AROUND_CLAIM = ("lead-patterns", "tail-patterns")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a source bears on a claim.

    `passage` is the source's nearest text, at [`start`, `end`) in code points, empty where nothing
    is near; `reason` is one sentence for people; `quote` holds the claim's words in quotation marks
    that decided; `notes` say what is to be known of the source. `by` says that words alone were
    compared. `unread` is for callers that have no text.

        check("It opened in 1932.", text="It opened in 1931.").verdict
    """

    verdict: VerdictName
    passage: str = ""
    start: int = 0
    end: int = 0
    reason: str = ""
    quote: str = ""
    notes: tuple[str, ...] = ()
    by: str = "words"


def check(claim: str, page: Page) -> Verdict:
    """Compares a claim with a page; the same two always give the same verdict.

    Never raises. A claim in another language than the page is unclear; so is all that the rules
    cannot decide, and what may stand behind the part of a page that is compared.
    """
    verdict = _checked(claim, page)
    if page.cut and len(claim) <= _LONGEST and verdict.verdict in ("misquoted", "unclear"):
        reason = f"{verdict.reason} Only its first {len(page.text):,} characters were compared."
        return replace(verdict, verdict="unclear", reason=reason)
    return verdict


def check_readings(claims: Sequence[str], page: Page) -> Verdict:
    """Compares the readings of a claim; where the wider one does not hold, the narrower decides."""
    verdict = Verdict("unclear")
    for claim in claims:
        verdict = check(claim, page)
        if verdict.verdict in TICKED:
            break
    return verdict


def _checked(claim: str, page: Page) -> Verdict:
    if len(claim) > _LONGEST:
        return Verdict("unclear", reason="The claim is too long to be compared.")
    claim = blanked(unescape(claim)).strip()
    if not claim:
        return Verdict("unclear", reason="The claim is empty.")
    if not page.text.strip():
        return Verdict("unclear", reason="The source holds no text.")
    if not page.readable:
        return Verdict("unclear", reason="The source is no readable text.")
    for found in filter(None, (pattern(name).search(claim) for name in _AROUND_CLAIM)):
        if not any(said and said.casefold() in page.text.casefold() for said in found.groups()):
            claim = claim[: found.start()] + claim[found.end() :]
    return _compared(claim, language(claim), page)


def _compared(claim: str, lang: str, page: Page) -> Verdict:
    """Compares the claim as a whole; where it is several sentences, each has to hold by itself."""
    foreign, quotes = _foreign(lang, page), quotations(claim, lang or page.lang)
    whole = _quoted(claim, quotes, page, foreign) if quotes else _judged(claim, page, foreign)
    plain = claim  # a quotation stays in one piece
    for quote in quotes:
        plain = plain.replace(quote, "_" * len(quote))
    parts = [claim[start:end] for start, end in sentences(plain)]
    refused = whole.verdict in ACCUSED or whole.reason == TURNED
    if foreign or refused or len(parts) < 2:
        return whole
    each = [v for part in parts if (v := _compared(part, lang, page)).reason != SHORT]
    failed = [v for v in each if v.verdict not in TICKED]
    if failed or not each or whole.verdict in TICKED:
        return max(failed, key=lambda v: v.verdict == "contradicted", default=whole)
    return replace(each[0], reason="The source says each sentence.")


_HALF = 0.5  # of a claim, its quotation included, that stands in one place of the page


def _quoted(claim: str, quotes: list[str], page: Page, foreign: bool) -> Verdict:
    places = [place_of(quote, page) for quote in quotes]
    found = [place for place in places if place]
    if len(found) == len(quotes):
        start, end = max(found, key=lambda place: place[1] - place[0])
        verdict = replace(
            _at(page, "quoted", start, end, "The quoted words stand in the source."),
            quote=max(quotes, key=len),
        )
        # Some quotations leave out or put in a word that turns them round.
        cut = ((q, at) for q, at in zip(quotes, found, strict=True) if elided(q))
        sides = ((tokens(q, page.lang), tokens(page.clean, page.lang, *at)) for q, at in cut)
        if any(turned_by_gap(*each) for each in sides):
            return replace(verdict, verdict="unclear", reason=DENIAL)
        if not _spoken(claim, quotes, start, page):
            return replace(verdict, verdict="unclear", reason=TURNED)
        whole = closest(claim, page) if sum(map(len, quotes)) < _HALF * len(claim) else FEW
        if not isinstance(whole, str) and whole.seen.cover < _HALF:
            return replace(verdict, verdict="unclear", reason=FEW)
        if any(map(elided, quotes)):
            return verdict
        said = _judged(claim, page, foreign)
        return said if said.reason in {*FAULTS, MISSING_NUMBER} else verdict
    nearest = _judged(claim, page, foreign)
    missing = quotes[places.index(None)]
    if foreign or not same_language(missing, claim, page):
        reason = "The quoted words are in another language than the source."
        return replace(nearest, verdict="unclear", reason=reason)
    reason = "The quoted words are not in the source."
    return replace(nearest, verdict="misquoted", reason=reason, quote=missing)


def _spoken(claim: str, quotes: list[str], start: int, page: Page) -> bool:
    """Tells whether a name beside a quotation stands near it in the page, if anywhere."""
    for quote in quotes:
        claim = claim.replace(quote, " ")
    names = {t.key for t in tokens(claim, page.lang) if t.capital and page.has(t.key)}
    here = page.sentence_of(start)
    near = {t.key for k in range(max(0, here - _BEFORE), here + 1) for t in page.tokens(k)}
    return not names or bool(names & near)


_BEFORE = 2  # sentences before a quotation that may name its speaker


def _foreign(lang: str, page: Page) -> bool:
    """Tells whether claim and page differ in language, as far as they tell it."""
    return bool(lang and page.lang) and lang != page.lang


def _judged(claim: str, page: Page, foreign: bool) -> Verdict:
    found = closest(claim, page)
    if isinstance(found, str):
        return Verdict("unclear", reason=found)
    start, end = page.spans[found.first][0], page.spans[found.last][1]
    if foreign and not found.seen.near:
        return _at(page, "unclear", start, end, "The source is in another language.")
    if not found.fault:
        return _at(page, "supported", start, end, "The source says it in these sentences.")
    name: VerdictName = "contradicted" if accused(found.seen, found.fault) else "unclear"
    return _at(page, name, start, end, found.fault)


def together(claim: str, pages: Sequence[Page]) -> list[Verdict]:
    """Returns a verdict for each page where all of them together support a claim, else none.

    Every page must hold a share of the claim, and none nearly all of it. A claim with a quotation
    must stand in one page.
    """
    claim = blanked(unescape(claim)).strip()[: _LONGEST + 1]
    lang = language(claim)
    barred = len(claim) > _LONGEST or quotations(claim, lang)
    if barred or not all(p.readable and not _foreign(lang, p) for p in pages):
        return []
    found = [each for page in pages if not isinstance(each := closest(claim, page), str)]
    covers = [each.seen.cover for each in found]
    if len(found) < len(pages) or min(covers) < _SHARE:
        return []
    window = [token for each in found for token in each.seen.window][:TOKENS]
    seen = replace(found[0].seen, window=window)
    if seen.cover - max(covers) < _MORE or chance(seen) < _SURELY or veto(seen):
        return []
    reason = "The sources cited here say it together."
    ranges = [(p.spans[f.first][0], p.spans[f.last][1]) for p, f in zip(pages, found, strict=True)]
    return [_at(p, "supported", *r, reason) for p, r in zip(pages, ranges, strict=True)]


# Of the claim, what the pages together hold more than the best of them, and what each holds; and
# the chance that is asked of several, whose sentences nobody wrote side by side.
_MORE, _SHARE, _SURELY = 0.1, 0.2, 0.8


def _at(page: Page, name: VerdictName, start: int, end: int, reason: str) -> Verdict:
    return Verdict(name, page.text[start:end], start, end, reason)


# Pairs of marks. Single ones must not be apostrophes. 《 》 hold titles and 【 】 headings, unless
# what they hold is a sentence or long, or a colon introduces it.
_MARKS = pattern("quotation-patterns")
_ELLIPSIS = pattern("ellipsis-patterns")
_SPACELESS = re.compile(f"[{SPACELESS}]")
_PLACES = 20  # places of a quotation's first part that are looked at
_FAR = 1500  # characters that an ellipsis may leave out
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
    for _ in range(_PLACES):
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


_SHARED = 0.6  # of a quotation's words that stand in a page of its language


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
