"""Says which verdict a claim deserves from the text of its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from searchloop.agent.types import VerdictName
from searchloop.agent.verdicts.compare import ENOUGH, FAULTS, TURNED, Comparison, compare
from searchloop.agent.verdicts.page import Page, words_of
from searchloop.agent.verdicts.quotes import elided, place_of, quotations, same_language
from searchloop.agent.verdicts.text import blanked, sentences, tokens
from searchloop.analysis.language import SCRIPTS, language

_LONGEST = 2_000  # characters of a claim that are compared
_TOKENS = 300  # and tokens, of a claim and of a window
_WINDOWS = 16  # compared word by word
_TELLING = 8  # words that tell a language, if it is known here
_REPEATS = 5  # places of one wording that are looked at
_MOST = 0.95  # share of a claim that a quotation fills, where nothing else needs to be compared
_SHAPES = ((0, 0), (-1, 0), (0, 1), (-2, 0), (-1, 1), (0, 2))  # around a sentence that is near


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a source bears on a claim.

    `passage` is the source's nearest text, at [`start`, `end`) in code points, empty where nothing
    is near; `reason` is one sentence for people; `quote` holds the claim's words in quotation marks
    that decided. `unread` is for callers that have no text.

        check("It opened in 1932.", text="It opened in 1931.").verdict
    """

    verdict: VerdictName
    passage: str = ""
    start: int = 0
    end: int = 0
    reason: str = ""
    quote: str = ""


def check(claim: str, page: Page) -> Verdict:
    """Compares a claim with a page; the same two always give the same verdict.

    Never raises. A claim in another language than the page is unclear; so is all that the rules
    cannot decide.
    """
    claim = blanked(claim[:_LONGEST]).strip()
    if not claim:
        return Verdict("unclear", reason="The claim is empty.")
    if not page.text.strip():
        return Verdict("unclear", reason="The source holds no text.")
    if not page.readable:
        return Verdict("unclear", reason="The source is no readable text.")
    lang = language(claim)
    foreign = _foreign(claim, lang, page)
    quotes = quotations(claim, lang or page.lang)
    if quotes:
        return _quoted(claim, quotes, page, foreign)
    return _verbatim(claim, page) or _compared(claim, page, foreign)


def _quoted(claim: str, quotes: list[str], page: Page, foreign: bool) -> Verdict:
    places = [place_of(quote, page) for quote in quotes]
    found = [place for place in places if place]
    if len(found) == len(quotes):
        start, end = max(found, key=lambda place: place[1] - place[0])
        verdict = replace(
            _at(page, "quoted", start, end, "The quoted words stand in the source."),
            quote=max(quotes, key=len),
        )
        filled = sum(map(len, quotes)) / len(claim)
        if filled > _MOST or any(map(elided, quotes)) or _says_little(claim, quotes, page):
            return verdict
        said = _verbatim(claim, page) or _compared(claim, page, foreign)
        may_turn = filled > 0.5 and said.reason == TURNED  # `said X` for `X said`
        return said if said.reason in FAULTS and not may_turn else verdict
    nearest = _compared(claim, page, foreign)
    missing = quotes[places.index(None)]
    if foreign or not same_language(missing, claim, page):
        reason = "The quoted words are in another language than the source."
        return replace(nearest, verdict="unclear", reason=reason)
    reason = "The quoted words are not in the source."
    return replace(nearest, verdict="misquoted", reason=reason, quote=missing)


def _foreign(claim: str, lang: str, page: Page) -> bool:
    """Tells whether claim and page differ in language, or at least in script."""
    if lang and page.lang:
        return lang != page.lang
    return lang in SCRIPTS or (page.lang in SCRIPTS and len(claim.split()) > _TELLING)


def _says_little(claim: str, quotes: list[str], page: Page) -> bool:
    """Tells whether the words around quotations, as in `The page says "..."`, claim nothing."""
    for quote in quotes:
        claim = claim.replace(quote, " ")
    rest = tokens(claim, page.lang)
    return len(rest) < 6 and not any(t.named or t.kind in ("number", "letter", "not") for t in rest)


def _verbatim(claim: str, page: Page) -> Verdict | None:
    """Returns the verdict on a claim that stands word for word in the page, else None."""
    words = words_of(claim, page.lang)
    at, few = 0, len(words.starts) < 2
    for _ in range(0 if few else _REPEATS):
        found = page.words.find(words.joined, at)
        if found is None:
            return None
        if _free(page, *found):
            return _at(page, "supported", *found, "The source says it word for word.")
        at = page.words.joined.find(words.joined, at) + 1
    return None


def _free(page: Page, start: int, end: int) -> bool:
    """Tells whether nothing just around a part of a sentence denies it or goes on with a number."""
    before = page.tokens(page.sentence_of(start))
    behind = page.tokens(page.sentence_of(end - 1))
    around = [t for t in before if t.end <= start][-6:] + [t for t in behind if t.start >= end][:3]
    cut = any(
        t.number and (t.start < start < t.end or t.start < end < t.end) for t in (*before, *behind)
    )
    return not cut and not any(t.kind == "not" for t in around)


def _compared(claim: str, page: Page, foreign: bool) -> Verdict:
    """Compares the claim as a whole; then, where it is several sentences, each by itself."""
    whole = _judged(claim, page, foreign)
    parts = [claim[start:end] for start, end in sentences(claim)]
    if foreign or whole.verdict != "unclear" or whole.reason in FAULTS or len(parts) < 2:
        return whole
    each = [_verbatim(part, page) or _judged(part, page, foreign) for part in parts]
    against = next((v for v in each if v.verdict == "contradicted"), None)
    if against:
        return against
    if all(v.verdict == "supported" for v in each):
        return replace(each[0], reason="The source says each sentence.")
    return whole


def _judged(claim: str, page: Page, foreign: bool) -> Verdict:
    said = tokens(claim, page.lang)[:_TOKENS]
    weights = {t.key: page.weight(t.key) for t in said if t.kind in ("word", "number", "letter")}
    if len(weights) < 2:
        return Verdict("unclear", reason="The claim is too short to be compared.")
    windows = _windows(page, weights)
    if not windows:
        return Verdict("unclear", reason="Nothing like it stands in the source.")
    seen: list[_Seen] = []
    for cover, first, last in windows[:_WINDOWS]:
        if cover >= ENOUGH or not seen:
            window = [t for k in range(first, last + 1) for t in page.tokens(k)][:_TOKENS]
            seen.append((compare(said, window, weights, page.about), first, last))
    found, first, last = max(_deciding(seen), key=_rank)
    start, end = page.spans[first][0], page.spans[last][1]
    if foreign:
        return _at(page, "unclear", start, end, "The source is in another language.")
    if not found.fault:
        return _at(page, "supported", start, end, "The source says it in these sentences.")
    name: VerdictName = "contradicted" if found.denied else "unclear"
    return _at(page, name, start, end, found.fault)


_Seen = tuple[Comparison, int, int]


def _deciding(seen: list[_Seen]) -> list[_Seen]:
    """Returns the shortest windows that are nearly the claim; without one, all windows.

    A sentence that is the claim but for a number decides, whatever stands around it; but sentences
    that hold all of the claim in order decide with it.
    """
    near = [each for each in seen if each[0].near]
    shortest = min((last - first for _, first, last in near), default=0)
    return [each for each in near if each[2] - each[1] == shortest or each[0].whole] or seen


def _rank(each: _Seen) -> tuple[bool, bool, float, int, int]:
    found, first, last = each
    return not found.fault, found.denied, found.cover, first - last, -first


def _windows(page: Page, weights: Mapping[str, float]) -> list[tuple[float, int, int]]:
    """Returns (share of the weights it may hold, first, last sentence), the best first.

    Numbers count as held: only the comparison reads their scale and words.
    """
    ranges = {
        (k + before, k + behind)
        for k in page.nearest(set(weights))
        for before, behind in _SHAPES
        if k + before >= 0 and k + behind < len(page.spans)
        if before == behind or not page.has_items(k + before, k + behind)
    }
    total = sum(weights.values())
    found = []
    for first, last in ranges:
        keys = frozenset().union(*page.keys[first : last + 1])
        held = sum(w for key, w in weights.items() if key in keys or key[0] in "#~")
        found.append((held / total, first, last))
    return sorted(found, key=lambda each: (-each[0], each[2] - each[1], each[1]))


def _at(page: Page, name: VerdictName, start: int, end: int, reason: str) -> Verdict:
    return Verdict(name, page.text[start:end], start, end, reason)
